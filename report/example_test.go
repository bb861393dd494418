package report_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/report"
	"github.com/snarkline/snarkline/trace"
)

// A run is recorded, and its recording drawn as a page.
func ExampleWrite() {
	var recording bytes.Buffer
	rec := trace.NewRecorder(&recording)
	g := pipeline.New("squares", rec.Option())
	numbers := pipeline.FromSlice(g, []int{1, 2, 3}, func(n int) pipeline.Key { return pipeline.Key{Job: "n", Part: n} })
	square := pipeline.NewStage("square", func(ctx context.Context, n int) (*alloc.Buffer[int64], error) {
		return alloc.Make[int64](alloc.ScopeOf(ctx), n*n, alloc.Scratch, 0)
	})
	pipeline.ToFunc(pipeline.Via(numbers, square), func(context.Context, pipeline.Key, *alloc.Buffer[int64]) error {
		time.Sleep(time.Millisecond)
		return nil
	})
	result, err := g.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := rec.Close(result); err != nil {
		fmt.Println(err)
		return
	}

	t, err := trace.Read(&recording)
	if err != nil {
		fmt.Println(err)
		return
	}
	var page bytes.Buffer // or a file
	if err := report.Write(&page, t); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Contains(page.String(), "3 items went through"))
	// Output: true
}
