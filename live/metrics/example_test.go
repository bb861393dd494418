package metrics_test

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/live"
	"github.com/snarkline/snarkline/live/metrics"
	"github.com/snarkline/snarkline/pipeline"
)

func Example() {
	state := live.New(live.Options{})
	m, err := metrics.New(state)
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := metrics.Listen("127.0.0.1:0", m) // scrape server.URL()
	if err != nil {
		fmt.Println(err)
		return
	}
	g := pipeline.New("squares", pipeline.Listen(state, m))
	in := pipeline.FromSlice(g, []int{1, 2, 3}, func(n int) pipeline.Key { return pipeline.Key{Part: n} })
	pipeline.ToFunc(in, func(context.Context, pipeline.Key, int) error { return nil })
	state.Watch(g)
	report, err := g.Run(context.Background())
	state.End(report, err)

	families, err := m.Registry().Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		if f.GetName() == "snarkline_stage_items_total" {
			for _, s := range f.GetMetric() {
				fmt.Println(s.GetLabel()[0].GetValue(), s.GetCounter().GetValue())
			}
		}
	}
	if err := server.Close(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// sink 3
	// source 3
}
