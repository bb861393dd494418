package spans_test

import (
	"context"
	"fmt"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/snarkline/snarkline/live/spans"
	"github.com/snarkline/snarkline/pipeline"
)

func Example() {
	exporter := tracetest.NewInMemoryExporter() // or otlptracehttp.New
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	l := spans.New(provider)
	g := pipeline.New("squares", pipeline.Listen(l))
	in := pipeline.FromSlice(g, []int{7}, func(n int) pipeline.Key { return pipeline.Key{Part: n} })
	out := pipeline.Via(in, pipeline.NewStage("square", func(_ context.Context, n int) (int, error) { return n * n, nil }))
	pipeline.ToFunc(out, func(context.Context, pipeline.Key, int) error { return nil })
	if _, err := g.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	l.Close()
	for _, s := range exporter.GetSpans() {
		fmt.Println(s.Name)
	}
	if err := provider.Shutdown(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// square
	// sink
	// item
}
