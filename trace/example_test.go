package trace_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/trace"
)

// A graph records itself; afterwards the recording says when most memory was in
// use, and what it was there for.
func Example() {
	var file bytes.Buffer
	rec := trace.NewRecorder(&file, trace.WithMeta(trace.Meta{Program: "example"}))
	g := pipeline.New("example", rec.Option())
	held, both := make(chan struct{}), make(chan struct{})
	var first sync.Once
	vectors := pipeline.Via(pipeline.FromSlice(g, []int{1, 2}, nil), pipeline.NewStage("make",
		func(ctx context.Context, n int) (*alloc.Buffer[byte], error) {
			if n == 2 {
				<-held // it meets the first where that is used
			}
			v, err := alloc.Make[byte](alloc.ScopeOf(ctx), n<<20, alloc.Witness, 0)
			if n == 2 {
				close(both)
			}
			return v, err
		}))
	pipeline.ToFunc(vectors, func(_ context.Context, key pipeline.Key, v *alloc.Buffer[byte]) error {
		first.Do(func() { close(held) })
		<-both // the first is held until the second is there
		return nil
	}, pipeline.Name("end"))
	report, err := g.Run(context.Background())
	if err == nil {
		err = rec.Close(report)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := trace.Read(&file)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, peak, shares := t.Peak(alloc.Host)
	fmt.Println("peak:", alloc.HostBytes(peak))
	for _, s := range shares {
		fmt.Printf("%s %v: %v in %d item\n", s.Stage, s.State, alloc.HostBytes(s.Bytes), s.Items)
	}
	// Output:
	// peak: host 3.0 MiB
	// make held: host 2.0 MiB in 1 item
	// end held: host 1.0 MiB in 1 item
}
