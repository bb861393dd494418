package live_test

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/live"
	"github.com/snarkline/snarkline/pipeline"
)

func Example() {
	state := live.New(live.Options{Total: 3})
	g := pipeline.New("squares", pipeline.Listen(state))
	in := pipeline.FromSlice(g, []int{1, 2, 3}, func(n int) pipeline.Key { return pipeline.Key{Job: "n", Part: n} })
	out := pipeline.Via(in, pipeline.NewStage("square", func(_ context.Context, n int) (int, error) { return n * n, nil }))
	pipeline.ToFunc(out, func(context.Context, pipeline.Key, int) error { return nil })

	state.Watch(g)
	report, err := g.Run(context.Background())
	state.End(report, err)

	s := state.Snapshot()
	fmt.Println(s.Phase, s.Done, "of", s.Total)
	for _, stage := range s.Stages {
		fmt.Println(stage.Kind, stage.Name, stage.Items)
	}
	// Output:
	// ended 3 of 3
	// source source 3
	// stage square 3
	// sink sink 3
}
