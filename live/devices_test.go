package live_test

import (
	"context"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/live"
	"github.com/snarkline/snarkline/pipeline"
)

// TestDevices: which items are on which card, by what the stages say, and how many
// have left it.
func TestDevices(t *testing.T) {
	state := live.New(live.Options{NameOf: func(k pipeline.Key) string { return []string{"a", "b", "c"}[k.Part] }})
	state.SetDevices([]live.Device{{Name: "cuda:0", Model: "X", Space: alloc.Device(0), Memory: 9}, {Name: "cuda:1", Space: alloc.Device(1)}})
	g := pipeline.New("cards", pipeline.Listen(state), pipeline.Budget(alloc.Device(1), 77))
	src := pipeline.FromSlice(g, []int{0, 1, 2}, nil)
	on := pipeline.Via(src, pipeline.NewStage("on", func(ctx context.Context, n int) (int, error) {
		if n < 2 {
			pipeline.OnDevice(ctx, alloc.Device(1))
		}
		return n, nil
	}), pipeline.Capacity(3))
	reached, goOn := make(chan int, 3), make(chan struct{})
	held := pipeline.Via(on, pipeline.NewStage("held", func(_ context.Context, n int) (int, error) {
		reached <- n
		<-goOn
		return n, nil
	}), pipeline.Workers(3))
	pipeline.ToFunc(held, func(context.Context, pipeline.Key, int) error { return nil })
	state.Watch(g)
	done := make(chan error)
	var report *pipeline.Report
	go func() {
		var err error
		report, err = g.Run(t.Context())
		done <- err
	}()
	for range 3 {
		<-reached
	}
	d := state.Snapshot().Devices
	if len(d) != 2 || d[0].Count != 0 || d[0].Memory != 9 || d[0].Model != "X" || d[1].Count != 2 || len(d[1].Items) != 2 || d[1].Items[0] != "a" || d[1].Items[1] != "b" ||
		d[1].Limit != 77 || d[1].Space != "device1" || d[1].Done != 0 {
		t.Errorf("%+v", d)
	}
	close(goOn)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	state.End(report, nil)
	if d = state.Snapshot().Devices; d[1].Count != 0 || d[1].Done != 2 || d[0].Done != 0 {
		t.Errorf("%+v", d)
	}
}
