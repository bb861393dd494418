package plan_test

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
)

// twoStages is a pipeline whose second stage is three times as slow, and keeps a
// core busy as the first does.
func twoStages() (pipeline.Topology, *plan.Costs) {
	graph, err := plan.TopologyOf(`
name = "two"
[[source]]
name = "in"
[[stage]]
name = "make"
from = "in"
[[stage]]
name = "use"
from = "make"
[[sink]]
name = "out"
from = "use"
`)
	if err != nil {
		panic(err) // of an example
	}
	return graph, &plan.Costs{
		Machine: plan.Machine{Cores: 4},
		Nodes: map[string]plan.Node{
			"make": {Steps: []plan.Step{{Seconds: 1, Cores: 1}}, Makes: []plan.Buffer{{Name: "x", Bytes: alloc.GiB}}},
			"use":  {Steps: []plan.Step{{Seconds: 3, Cores: 1}}},
		},
	}
}

func ExampleSweep() {
	graph, costs := twoStages()
	run, err := plan.NewSimulated(graph, costs, plan.Settings{Items: 60})
	if err != nil {
		fmt.Println(err)
		return
	}
	space, err := plan.ParseSpace([]string{"make", "use"}, pipeline.Settings{}, "use.workers=1..3", "use.capacity=1")
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := plan.Sweep(context.Background(), space, run)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range r.Rows {
		fmt.Printf("%s: %.2f items/s in %v\n", row.Values[0], row.Outcome().Throughput, row.Outcome().Peak)
	}
	fmt.Println("best:", r.Best().Values[0])
	// Output:
	// 1: 0.33 items/s in host 3.0 GiB
	// 2: 0.65 items/s in host 4.0 GiB
	// 3: 0.95 items/s in host 4.0 GiB
	// best: 3
}

func ExampleTune() {
	graph, costs := twoStages()
	run, err := plan.NewSimulated(graph, costs, plan.Settings{Items: 60})
	if err != nil {
		fmt.Println(err)
		return
	}
	base, err := pipeline.ParseSettings("budget.host=3GiB")
	if err != nil {
		fmt.Println(err)
		return
	}
	space, err := plan.ParseSpace([]string{"make", "use"}, base, "each.workers=1..6", "each.capacity=1,4")
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := plan.Tune(context.Background(), space, run)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range t.Choice.Settings.List() {
		fmt.Println(s)
	}
	fmt.Printf("%d runs of %d settings\n", t.Runs, space.Size())
	fmt.Println("limited by", t.Limits[0].Text)
	for _, buy := range t.Buys {
		fmt.Println(buy.Text)
	}
	// Output:
	// budget.host=3GiB
	// make.capacity=1
	// make.workers=3
	// use.capacity=1
	// use.workers=3
	// 25 runs of 144 settings
	// limited by the budget: for 95% of the time an item waits for memory at the door
	// one more core would bring nothing
	// 1 GiB more of host memory would bring 33.3% more (with other settings: make.workers=4 use.workers=4)
}
