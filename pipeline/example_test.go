package pipeline_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/reugn/go-streams/extension"
	"github.com/reugn/go-streams/flow"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// column is a value that carries a buffer.
type column struct{ data *alloc.Buffer[uint32] }

func (c column) Buffers() []alloc.Ref { return []alloc.Ref{c.data} }

// load makes a column of n elements, and says beforehand what that takes.
type load struct{ n int }

func (load) Name() string { return "load" }

func (l load) Needs(any) pipeline.Need {
	return pipeline.Need{Makes: []pipeline.Part{{Name: "column", Bytes: alloc.HostBytes(4 * int64(l.n))}}}
}

func (l load) Run(ctx context.Context, first uint32) (column, error) {
	b, err := alloc.Make[uint32](alloc.ScopeOf(ctx), l.n, alloc.Other, alloc.Dirty)
	if err != nil {
		return column{}, err
	}
	for i := range b.Slice() {
		b.Slice()[i] = first + uint32(i)
	}
	return column{b}, nil
}

// A whole pipeline: columns are loaded under a budget of three of them, summed
// and searched side by side, and the results paired by key.
func Example() {
	const n = 1 << 14
	g := pipeline.New("columns", pipeline.Budget(alloc.Host, 3*4*n))
	src := pipeline.FromSlice(g, []uint32{10, 20, 30, 40}, func(v uint32) pipeline.Key {
		return pipeline.Key{Job: "column", Part: int(v)}
	})
	col := pipeline.Via(src, load{n}, pipeline.Workers(4), pipeline.Ordered())
	sum := pipeline.Via(col, pipeline.NewStage("sum", func(_ context.Context, c column) (uint64, error) {
		var s uint64
		for _, v := range c.data.Slice() {
			s += uint64(v)
		}
		return s, nil
	}))
	most := pipeline.Via(col, pipeline.NewStage("max", func(_ context.Context, c column) (m uint32, err error) {
		for _, v := range c.data.Slice() {
			m = max(m, v)
		}
		return m, nil
	}))
	both := pipeline.Via(pipeline.Join2(sum, most), pipeline.NewStage("show",
		func(ctx context.Context, v pipeline.Pair[uint64, uint32]) (string, error) {
			return fmt.Sprintf("%v: sum %d, max %d", pipeline.KeyOf(ctx), v.A, v.B), nil
		}), pipeline.Ordered())
	pipeline.ToFunc(both, func(_ context.Context, _ pipeline.Key, line string) error {
		fmt.Println(line)
		return nil
	})
	report, err := g.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Items, "items, within the budget:", report.Budget.Peak[alloc.Host] <= 3*4*n)
	// Output:
	// column/10: sum 134373376, max 16393
	// column/20: sum 134537216, max 16403
	// column/30: sum 134701056, max 16413
	// column/40: sum 134864896, max 16423
	// 4 items, within the budget: true
}

// Any go-streams source, flow and sink connects, and a stage is a flow.
func Example_goStreams() {
	in := make(chan any)
	go func() {
		defer close(in)
		for _, w := range []string{"typed", "ports", "any"} {
			in <- w
		}
	}()
	source := extension.NewChanSource(in).Via(flow.NewFilter(func(s string) bool { return s != "any" }, 1))

	g := pipeline.New("words")
	words := pipeline.From[string](g, source, nil)
	loud := pipeline.Via(words, pipeline.NewStage("loud", func(_ context.Context, s string) (string, error) {
		return strings.ToUpper(s), nil
	}))
	pipeline.To(loud, extension.NewStdoutSink())
	if _, err := g.Run(context.Background()); err != nil {
		fmt.Println(err)
	}

	numbers := make(chan any, 2)
	numbers <- 1
	numbers <- 2
	close(numbers)
	half := pipeline.AsFlow(pipeline.NewStage("half", func(_ context.Context, n int) (float64, error) {
		return float64(n) / 2, nil
	}))
	extension.NewChanSource(numbers).Via(half).To(extension.NewStdoutSink())
	// Output:
	// TYPED
	// PORTS
	// 0.5
	// 1
}

// A pipeline in a file: stages come from a registry, sources and sinks are bound
// in code.
func Example_toml() {
	type params struct {
		Factor int `toml:"factor"`
	}
	reg := pipeline.NewRegistry()
	err := reg.Add("scale", pipeline.NewFactory(func(p params) (pipeline.Stage[int, int], error) {
		return pipeline.NewStage("scale", func(_ context.Context, n int) (int, error) { return n * p.Factor, nil }), nil
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	b := pipeline.NewBindings()
	pipeline.BindSource(b, "numbers", func(g *pipeline.Graph, opts ...pipeline.NodeOption) *pipeline.Port[int] {
		return pipeline.FromSlice(g, []int{1, 2, 3}, nil, opts...)
	})
	pipeline.BindSink(b, "print", func(p *pipeline.Port[int], opts ...pipeline.NodeOption) {
		pipeline.ToFunc(p, func(_ context.Context, _ pipeline.Key, n int) error {
			fmt.Println(n)
			return nil
		}, opts...)
	})
	text := `
name = "scaled"
[[source]]
name = "numbers"
[[stage]]
name = "ten"
use = "scale"
from = "numbers"
workers = 2
ordered = true
params = {factor = 10}
[[sink]]
name = "print"
from = "ten"
`
	g, err := pipeline.Load(reg, text, b)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := g.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	// A mistake is told with its line.
	_, err = pipeline.Load(reg, strings.Replace(text, "workers", "wrokers", 1), b)
	fmt.Println(err)
	// Output:
	// 10
	// 20
	// 30
	// read a pipeline: line 9: unknown key wrokers
}

// Settings are numbers to try: from a file, or from the command line.
func ExampleSettings() {
	s, err := pipeline.ParseSettings("scale.workers=4", "scale.capacity=2", "budget.host=4GiB")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := s.WriteTOML(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// [budget]
	//   host = "4GiB"
	//
	// [stages]
	//   [stages.scale]
	//     workers = 4
	//     capacity = 2
}
