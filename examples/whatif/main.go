// What if: one run is recorded, and what other settings would have made of it is
// asked of the recording. The pipeline is of two stages that know no proofs: one
// fills a buffer, the other reads it for longer.
//
//	go run ./examples/whatif -o run.html
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
	"github.com/snarkline/snarkline/report"
	"github.com/snarkline/snarkline/trace"
)

func main() {
	items := flag.Int("items", 24, "items that the recorded run has")
	page := flag.String("o", "", "file for a page that shows the recorded run")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *items, *page); err != nil {
		fmt.Fprintln(os.Stderr, "whatif:", err)
		os.Exit(1)
	}
}

// graph is the pipeline, not yet run. Its stages sleep in place of work, so that it
// runs alike on every machine.
func graph(items int, opts ...pipeline.Option) *pipeline.Graph {
	g := pipeline.New("what-if", opts...)
	parts := make([]int, items)
	for i := range parts {
		parts[i] = i
	}
	src := pipeline.FromSlice(g, parts, func(i int) pipeline.Key { return pipeline.Key{Job: "item", Part: i} })
	filled := pipeline.Via(src, pipeline.NewStage("fill", func(ctx context.Context, i int) (*alloc.Buffer[byte], error) {
		b, err := alloc.Make[byte](alloc.ScopeOf(ctx), 1<<20, alloc.Scratch, 0)
		if err != nil {
			return nil, fmt.Errorf("fill item %d: %w", i, err)
		}
		time.Sleep(2 * time.Millisecond)
		return b, nil
	}), pipeline.Capacity(8))
	read := pipeline.Via(filled, pipeline.NewStage("read", func(context.Context, *alloc.Buffer[byte]) (int, error) {
		time.Sleep(8 * time.Millisecond)
		return 0, nil
	}), pipeline.Capacity(8))
	pipeline.ToFunc(read, func(context.Context, pipeline.Key, int) error { return nil })
	return g
}

func run(ctx context.Context, w io.Writer, items int, page string) error {
	var file bytes.Buffer
	rec := trace.NewRecorder(&file)
	done, err := graph(items, rec.Option()).Run(ctx)
	if err != nil {
		return err
	}
	if err := rec.Close(done); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	recording, err := trace.Read(&file)
	if err != nil {
		return err
	}
	costs, err := plan.FromTrace(recording)
	if err != nil {
		return err
	}
	sim, err := plan.NewSimulator(recording.Graph, costs)
	if err != nil {
		return err
	}
	_, peak := recording.CountTracked(alloc.Host)
	fmt.Fprintf(w, "%-36s %6.1f items/s, %s\n", "recorded", float64(items)/recording.Wall.Seconds(), humanize.IBytes(uint64(peak)))
	for _, what := range [][]string{{"read.capacity=1"}, {"read.workers=2"}, {"read.workers=4", "read.capacity=1"}} {
		set := plan.Settings{Items: items}
		for _, s := range what {
			if err := set.Set(s); err != nil {
				return err
			}
		}
		p, err := sim.Run(set)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%-36s %6.1f items/s, %s\n", fmt.Sprint(what), p.Throughput, humanize.IBytes(uint64(p.Peak[alloc.Host])))
	}
	if err := tune(ctx, w, recording, costs, items); err != nil {
		return err
	}
	if page == "" {
		return nil
	}
	out, err := os.Create(page)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := report.Write(out, recording); err != nil {
		return fmt.Errorf("write %s: %w", page, err)
	}
	return out.Close()
}

// tune looks for the fastest setting that holds no more than 6 MiB at once.
func tune(ctx context.Context, w io.Writer, recording *trace.Trace, costs *plan.Costs, items int) error {
	simulated, err := plan.NewSimulated(recording.Graph, costs, plan.Settings{Items: items})
	if err != nil {
		return err
	}
	space, err := plan.ParseSpace([]string{"fill", "read"}, pipeline.Settings{}, "each.workers=1..6", "each.capacity=1,2,4,8")
	if err != nil {
		return err
	}
	t, err := plan.Tune(ctx, space, simulated, plan.Within(alloc.HostBytes(6*alloc.MiB)))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nthe fastest within 6 MiB, by %d runs of %d settings:\n", t.Runs, space.Size())
	return t.Choice.Settings.WriteTOML(w)
}
