// Textpipe: a pipeline that proves nothing. Texts are loaded into buffers, and
// three stages look at each side by side (how often which word, how well it
// compresses, its digest); a join makes a card of it. A budget keeps the texts
// that are in memory at once below a limit, however many there are.
//
//	go run ./examples/textpipe            (texts made on the spot)
//	go run ./examples/textpipe *.md       (files of your own)
package main

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

func main() {
	texts := made(24)
	if len(os.Args) > 1 {
		texts = nil
		for _, path := range os.Args[1:] {
			info, err := os.Stat(path)
			if err != nil {
				fmt.Fprintln(os.Stderr, "textpipe:", err)
				os.Exit(1)
			}
			texts = append(texts, source{path, info.Size(), func() (io.ReadCloser, error) { return os.Open(path) }})
		}
	}
	if err := run(context.Background(), os.Stdout, texts, 2*alloc.MiB); err != nil {
		fmt.Fprintln(os.Stderr, "textpipe:", err)
		os.Exit(1)
	}
}

// source is where a text comes from: a small description, which is what a
// pipeline's source should yield. The text itself is loaded by a stage.
type source struct {
	name string
	size int64
	open func() (io.ReadCloser, error)
}

// text is a loaded text. Since it says which buffer it carries, the engine
// frees it when its last reader is done.
type text struct {
	name string
	data *alloc.Buffer[byte]
}

// Buffers implements pipeline.Holder.
func (t *text) Buffers() []alloc.Ref { return []alloc.Ref{t.data} }

// load reads a text into memory of its own. It states what it needs, so that
// admission can keep the sum below the budget.
type load struct{}

func (load) Name() string { return "load" }

func (load) Needs(job any) pipeline.Need {
	var size int64
	if s, ok := job.(source); ok {
		size = s.size
	}
	return pipeline.Need{Makes: []pipeline.Part{{Name: "text", Bytes: alloc.HostBytes(size)}}}
}

func (load) Run(ctx context.Context, s source) (*text, error) {
	r, err := s.open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := alloc.Make[byte](alloc.ScopeOf(ctx), int(s.size), alloc.Other, alloc.Dirty)
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(r, b.Slice()); err != nil {
		b.Release()
		return nil, fmt.Errorf("read %s: %w", s.name, err)
	}
	if !utf8.Valid(b.Slice()) {
		b.Release()
		return nil, fmt.Errorf("%s is no text", s.name)
	}
	return &text{s.name, b}, nil
}

// words is the most frequent long word.
func words(_ context.Context, t *text) (string, error) {
	count := make(map[string]int)
	best := ""
	for w := range bytes.FieldsFuncSeq(t.data.Slice(), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if len(w) < 5 {
			continue
		}
		s := string(w)
		count[s]++
		if count[s] > count[best] || count[s] == count[best] && s < best {
			best = s
		}
	}
	return fmt.Sprintf("%s ×%d", best, count[best]), nil
}

// squeeze is the size of the text when it is compressed, in percent.
func squeeze(_ context.Context, t *text) (float64, error) {
	var n counter
	z, err := flate.NewWriter(&n, flate.BestSpeed)
	if err != nil {
		return 0, err
	}
	_, err = z.Write(t.data.Slice())
	if err = errors.Join(err, z.Close()); err != nil {
		return 0, err
	}
	return 100 * float64(n) / float64(max(1, t.data.Len())), nil
}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func digest(_ context.Context, t *text) ([32]byte, error) { return sha256.Sum256(t.data.Slice()), nil }

// card is what is known of a text in the end.
func card(ctx context.Context, v pipeline.Tuple3[string, float64, [32]byte]) (string, error) {
	return fmt.Sprintf("%-14s %-14s %5.1f%%  %x", pipeline.KeyOf(ctx).Job, v.A, v.B, v.C[:6]), nil
}

func run(ctx context.Context, w io.Writer, texts []source, budget int64) error {
	out := &locked{w: w} // failures are told beside the finished cards
	g := pipeline.New("texts", pipeline.Budget(alloc.Host, budget), pipeline.OnError(pipeline.FailKey),
		pipeline.OnFail(func(k pipeline.Key, err error) { _, _ = fmt.Fprintf(out, "%-14s %v\n", k.Job, err) }))
	in := pipeline.FromSlice(g, texts, func(s source) pipeline.Key { return pipeline.Key{Job: s.name} }, pipeline.Name("names"))
	loaded := pipeline.Via(in, load{}, pipeline.Workers(4), pipeline.Capacity(4))
	cards := pipeline.Via(pipeline.Join3(
		pipeline.Via(loaded, pipeline.NewStage("words", words), pipeline.Workers(2)),
		pipeline.Via(loaded, pipeline.NewStage("squeeze", squeeze)),
		pipeline.Via(loaded, pipeline.NewStage("digest", digest)),
	), pipeline.NewStage("card", card), pipeline.Ordered())
	pipeline.ToFunc(cards, func(_ context.Context, _ pipeline.Key, line string) error {
		_, err := fmt.Fprintln(out, line)
		return err
	}, pipeline.Name("print"))

	report, err := g.Run(ctx)
	if err != nil {
		return err
	}
	var total int64
	for _, s := range texts {
		total += s.size
	}
	fmt.Fprintf(w, "\n%s of text went through, at most %s of it at once\n\n",
		humanize.IBytes(uint64(total)), humanize.IBytes(uint64(report.Budget.Peak[alloc.Host])))
	return report.WriteTable(w)
}

// locked is a writer for several goroutines.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// made is n texts made on the spot; the last claims to be longer than it is.
func made(n int) (texts []source) {
	stock := []string{"buffer", "stage", "budget", "queue", "proof", "channel", "graph", "memory", "witness", "the", "a", "is"}
	for i := range n {
		var b bytes.Buffer
		x := uint32(i + 1)
		for b.Len() < 200_000+20_000*(i%5) {
			x = x*1664525 + 1013904223
			b.WriteString(stock[(x>>16)%uint32(len(stock)-i%4)])
			b.WriteByte(' ')
		}
		size := int64(b.Len())
		if i == n-1 {
			size++
		}
		texts = append(texts, source{fmt.Sprintf("text %d", i), size, func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(b.Bytes())), nil
		}})
	}
	return texts
}
