package plan_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
)

// A stage that makes 1 GiB an item in a second, and one that takes three seconds to
// read it: what would a second worker there bring, and what would it cost?
func ExampleSimulate() {
	g := pipeline.New("what-if")
	made := pipeline.Via(pipeline.FromSlice(g, []int{1, 2, 3}, nil), nop("make"))
	sink(pipeline.Via(made, nop("use")))

	costs := &plan.Costs{
		Machine: plan.Machine{Cores: 4, Memory: alloc.HostBytes(8 * alloc.GiB)},
		Nodes: map[string]plan.Node{
			"make": {Steps: []plan.Step{{Seconds: 1, Cores: 1}}, Makes: []plan.Buffer{{Name: "w", Bytes: alloc.GiB}}},
			"use":  {Steps: []plan.Step{{Seconds: 3, Cores: 1}}},
		},
	}
	for _, what := range []string{"use.workers=1", "use.workers=2", "use.capacity=4"} {
		set := plan.Settings{Items: 100}
		if err := set.Set(what); err != nil {
			log.Fatal(err)
		}
		p, err := plan.Simulate(g, costs, set)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%-14s  %.2f items/s, %v\n", what, p.Throughput, p.Peak)
	}
	// Output:
	// use.workers=1   0.33 items/s, host 3.0 GiB
	// use.workers=2   0.66 items/s, host 4.0 GiB
	// use.capacity=4  0.33 items/s, host 6.0 GiB
}

// A run that does not fit the machine is predicted to be killed, with what held the
// memory.
func ExamplePrediction_killed() {
	g := pipeline.New("what-if")
	made := pipeline.Via(pipeline.FromSlice(g, []int{1, 2, 3}, nil), nop("make"))
	sink(pipeline.Via(made, nop("use"), pipeline.Capacity(pipeline.Unbounded)))
	costs, err := plan.ReadModel(strings.NewReader(`
[machine]
cores = 4
memory = { host = "8GiB" }
base = { host = "2GiB" }

[[node.make.step]]
seconds = 1
cores = 1
[[node.make.makes]]
name = "w"
bytes = "1GiB"

[[node.use.step]]
seconds = 3
cores = 1
`))
	if err != nil {
		log.Fatal(err)
	}
	p, err := plan.Simulate(g, costs, plan.Settings{Items: 100})
	if err != nil {
		log.Fatal(err)
	}
	k := p.Killed
	fmt.Printf("killed at %v: %v memory\n", k.At, k.Space)
	for _, s := range k.Shares {
		fmt.Printf("%s: %d GiB %s, of %d items\n", s.Stage, s.Bytes/alloc.GiB, s.State, s.Items)
	}
	// Output:
	// killed at 8s: host memory
	// use: 5 GiB queued, of 5 items
	// make: 1 GiB held, of 1 items
	// use: 1 GiB held, of 1 items
}
