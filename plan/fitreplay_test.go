package plan_test

import (
	"bytes"
	"context"
	"math"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
	"github.com/snarkline/snarkline/trace"
)

// piled is a graph in which finished blocks wait for a stage that is slower than
// the one that makes them. Stages sleep: they use no core.
func piled(opts ...pipeline.Option) *pipeline.Graph {
	g := pipeline.New("piled", opts...)
	blocks := pipeline.Via(pipeline.FromSlice(g, make([]int, 16), func(i int) pipeline.Key { return pipeline.Key{Part: i} }),
		pipeline.NewStage("make", func(ctx context.Context, _ int) (*alloc.Buffer[byte], error) {
			time.Sleep(2 * time.Millisecond)
			return alloc.Make[byte](alloc.ScopeOf(ctx), 1<<20, alloc.Witness, 0)
		}))
	used := pipeline.Via(blocks, pipeline.NewStage("use", func(ctx context.Context, b *alloc.Buffer[byte]) (int, error) {
		s, err := alloc.Make[byte](alloc.ScopeOf(ctx), 3<<20, alloc.Scratch, 0)
		if err != nil {
			return 0, err
		}
		defer s.Release()
		time.Sleep(20 * time.Millisecond)
		return b.Len(), nil
	}), pipeline.Capacity(4))
	pipeline.ToFunc(used, func(context.Context, pipeline.Key, int) error { return nil })
	return g
}

// TestReplay: a real run that was recorded, simulated from its own recording, has
// the peak of tracked bytes that it had; and the run with another setting too.
func TestReplay(t *testing.T) {
	defer goleak.VerifyNone(t)
	defer alloc.CheckLeaks(t)
	g, tr := record(t)
	_, peak, _ := tr.Peak(alloc.Host)
	base := int64(0)
	for _, b := range tr.Buffers {
		if b.Born == 0 && b.Kind != alloc.MappedFile {
			base += b.Bytes
		}
	}
	f := fitted(t, tr)
	p := simulate(t, g, &f.Costs, plan.Settings{Items: 16})
	got, want := float64(p.Peak[alloc.Host]), float64(peak-base)
	t.Logf("a peak of %v, %v recorded; %v s, %v recorded", got, want, p.Wall.Seconds(), tr.Wall.Seconds())
	if math.Abs(got/want-1) > 0.12 { // a block more or less
		t.Errorf("a peak of %v, %v was recorded", got, want)
	}
	set := plan.Settings{Items: 16}
	if err := set.Set("use.capacity=1"); err != nil {
		t.Fatal(err)
	}
	// One at use with its scratch, one in the queue, one that waits for room.
	if p := simulate(t, g, &f.Costs, set); p.Peak[alloc.Host] != 6<<20 {
		t.Errorf("a peak of %v, want 6 MiB", p.Peak)
	}
}

func record(t testing.TB) (*pipeline.Graph, *trace.Trace) {
	t.Helper()
	var file bytes.Buffer
	rec := trace.NewRecorder(&file)
	report, err := piled(rec.Option()).Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Close(report); err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	return piled(), tr
}
