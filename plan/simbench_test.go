package plan_test

import (
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
)

// groth16 is the graph of the eight stages.
func groth16(workers, capacity int, opts ...pipeline.Option) *pipeline.Graph {
	g := pipeline.New("groth16", opts...)
	o := []pipeline.NodeOption{pipeline.Capacity(capacity), pipeline.Workers(workers)}
	w := pipeline.Via(pipeline.FromSlice(g, []int{0}, nil), nop("synthesize"), o...)
	h := pipeline.Via(pipeline.Via(pipeline.Via(w, nop("prestage"), o...), nop("ntt"), o...), nop("h-msm"), o...)
	sums := pipeline.Via(pipeline.Via(w, nop("batch-add"), o...), nop("tail-msm"), o...)
	b2 := pipeline.Via(w, nop("b_g2_msm"), o...)
	p := pipeline.Via(pipeline.Join3(h, sums, b2, pipeline.Name("sums")), pipeline.NewStage("assemble", nop3))
	sink(p)
	return g
}

// groth16Costs are like those of a small circuit on two cores.
func groth16Costs(spread float64) *plan.Costs {
	step := func(seconds, cores float64) []plan.Step {
		return []plan.Step{{Seconds: seconds, Cores: cores, Spread: spread}}
	}
	buf := func(name string, bytes int64, readers ...plan.Reader) plan.Buffer {
		return plan.Buffer{Name: name, Bytes: bytes, Readers: readers}
	}
	r := func(node string, until float64) plan.Reader { return plan.Reader{Node: node, Until: until} }
	scratch := func(bytes int64) []plan.Buffer { return []plan.Buffer{{Name: "buckets", Bytes: bytes, From: 0.1}} }
	return &plan.Costs{
		Machine: plan.Machine{Cores: 2},
		Nodes: map[string]plan.Node{
			"synthesize": {Steps: step(0.4, 1), Makes: []plan.Buffer{
				buf("w", 32<<20, r("batch-add", 1), r("tail-msm", 0.2), r("b_g2_msm", 0.5)),
				buf("a", 32<<20, r("h-msm", 0.9)), buf("b", 32<<20, r("ntt", 0.8)), buf("c", 32<<20, r("ntt", 0.8)),
			}},
			"prestage":  {Steps: step(0.01, 1)},
			"ntt":       {Steps: step(0.3, 2)},
			"h-msm":     {Steps: step(0.8, 2), Scratch: scratch(8 << 20)},
			"batch-add": {Steps: step(0.1, 1), Makes: []plan.Buffer{buf("picks", 16<<20, r("tail-msm", 1))}},
			"tail-msm":  {Steps: step(0.5, 2), Scratch: scratch(8 << 20)},
			"b_g2_msm":  {Steps: step(0.9, 2), Scratch: scratch(24 << 20)},
			"assemble":  {Steps: step(0.01, 1)},
		},
	}
}

// BenchmarkSimulate is 16 items through the eight stages.
func BenchmarkSimulate(b *testing.B) {
	for _, bc := range []struct {
		name   string
		budget int64
		spread float64
	}{{"plain", 0, 0}, {"budget", 512 << 20, 0.1}} {
		b.Run(bc.name, func(b *testing.B) {
			g := groth16(2, 2, pipeline.Budget(alloc.Host, bc.budget))
			s, err := plan.NewSimulator(g.Topology(), groth16Costs(bc.spread))
			if err != nil {
				b.Fatal(err)
			}
			set := plan.Settings{Items: 16}
			b.ReportAllocs()
			for b.Loop() {
				set.Seed++
				p, err := s.Run(set)
				if err != nil || p.Items != 16 {
					b.Fatal(err, p)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "simulations/s")
		})
	}
}
