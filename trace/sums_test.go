package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// badWeather is a graph in which stages fail for now, for good, panic and end their
// goroutine, and wait for their turn at something, by chance.
func badWeather(seed uint64, opts ...pipeline.Option) *pipeline.Graph {
	g := pipeline.New("bad weather", append(opts, pipeline.Budget(alloc.Host, 400))...)
	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(seed, 1))
	roll := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return dice.IntN(n)
	}
	weather := func(ctx context.Context) error {
		if roll(3) == 0 {
			since := time.Now()
			time.Sleep(100 * time.Microsecond)
			pipeline.Waited(ctx, time.Since(since))
		}
		switch roll(25) {
		case 0:
			return flaky{errTest}
		case 1:
			return errTest
		case 2:
			if roll(3) == 0 {
				panic("thunder")
			}
		case 3:
			if roll(3) == 0 {
				runtime.Goexit()
			}
		}
		return nil
	}
	src := pipeline.FromSlice(g, counted(60), intKey, pipeline.Restart(2))
	other := pipeline.FromSlice(g, counted(30), func(n int) pipeline.Key { return pipeline.Key{Job: "other", Part: n} }, pipeline.Name("other"))
	a := pipeline.Via(src, pipeline.WithNeeds(pipeline.NewStage("a", func(ctx context.Context, _ int) (*pair, error) {
		p, err := makePair(ctx, 30, 20)
		if err != nil {
			return nil, err
		}
		well := false
		defer func() {
			if !well {
				p.a.Release()
				p.b.Release()
			}
		}()
		err = weather(ctx)
		well = err == nil
		return p, err
	}), func(any) pipeline.Need {
		return pipeline.Need{Makes: []pipeline.Part{{Name: "p", Bytes: alloc.HostBytes(50)}}}
	}), pipeline.Workers(2))
	b := pipeline.Via(src, pipeline.NewStage("b", func(ctx context.Context, n int) (int, error) { return n, weather(ctx) }),
		pipeline.Workers(3), pipeline.Retry(2), pipeline.Ordered())
	pipeline.ToFunc(pipeline.Join2(a, b, pipeline.Name("join")), func(ctx context.Context, _ pipeline.Key, _ pipeline.Pair[*pair, int]) error {
		return weather(ctx)
	}, pipeline.Retry(1), pipeline.Name("end"))
	pipeline.ToFunc(other, func(ctx context.Context, _ pipeline.Key, _ int) error { return weather(ctx) }, pipeline.Name("other end"))
	return g
}

// TestSumsAreTheReports: whatever happens to a run, its trace can be read, and
// sums up to what the report says.
func TestSumsAreTheReports(t *testing.T) {
	for seed := range uint64(24) {
		policy := []pipeline.Policy{pipeline.FailKey, pipeline.StopAll}[seed/3%2]
		cancelled := seed%3 == 2
		t.Run(fmt.Sprintf("%d %v cancelled=%v", seed, policy, cancelled), func(t *testing.T) {
			clean(t)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			tr, rep := recordWith(t, ctx, func(opts ...pipeline.Option) *pipeline.Graph {
				var ended atomic.Int64
				if cancelled {
					opts = append(opts, pipeline.Listen(pipeline.ListenerFunc(func(e pipeline.Event) {
						if e.Kind == pipeline.End && ended.Add(1) == 40 {
							cancel()
						}
					})))
				}
				return badWeather(seed, append(opts, pipeline.OnError(policy))...)
			})
			waited := time.Duration(0)
			for _, s := range tr.Stages() {
				r := rep.Stage(s.Stage)
				if int64(s.Items) != r.Items || int64(s.Retries) != r.Retries || s.Busy != r.Busy {
					t.Errorf("%s: %d items, %d retries, busy for %v; the report: %d, %d, %v", s.Stage, s.Items, s.Retries, s.Busy, r.Items, r.Retries, r.Busy)
				}
				waited += s.Waited
			}
			if policy == pipeline.FailKey && !cancelled && waited == 0 {
				t.Error("nothing has waited")
			}
			count := make(map[NoteKind]int64)
			for _, n := range tr.Notes {
				count[n.Kind]++
			}
			if count[Failed] != rep.Failed || count[Restarted] != rep.Restarted || tr.Err != rep.Error || tr.Cut {
				t.Errorf("notes %v, error %q; the report: %d failed, %d restarted, %q", count, tr.Err, rep.Failed, rep.Restarted, rep.Error)
			}
			if live, _ := tr.CountTracked(alloc.Host); live != alloc.Default().Live(alloc.Host) {
				t.Errorf("%d bytes in the end, %d are tracked", live, alloc.Default().Live(alloc.Host))
			}
			rewritten(t, tr)
		})
	}
}

func recordWith(t *testing.T, ctx context.Context, build func(opts ...pipeline.Option) *pipeline.Graph) (*Trace, *pipeline.Report) {
	t.Helper()
	file := new(bytes.Buffer)
	rec := NewRecorder(file)
	rep, err := build(rec.Option()).Run(ctx)
	if rep == nil {
		t.Fatal(err)
	}
	if err := rec.Close(rep); err != nil {
		t.Fatal(err)
	}
	tr, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	check(t, tr)
	return tr, rep
}

// TestOneRecorderOneGraph: a recorder that two graphs have records the first, and
// says so of the other; two recorders record two graphs that run at once.
func TestOneRecorderOneGraph(t *testing.T) {
	clean(t)
	file := new(bytes.Buffer)
	rec := NewRecorder(file)
	if _, err := diamond(5, rec.Option()).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := diamond(7, rec.Option()).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := rec.Close(nil); !errors.Is(err, ErrSecondGraph) {
		t.Errorf("the error is %v", err)
	}
	if tr, err := Read(file); err != nil || len(tr.Items) != 5 || tr.Cut {
		t.Errorf("%v, %+v", err, tr)
	}
	if alloc.Default().Observed() {
		t.Error("it observes after its end")
	}

	var group sync.WaitGroup
	for _, n := range []int{9, 12} {
		group.Go(func() {
			var tr *Trace
			tr, _ = recordWith(t, context.Background(), func(opts ...pipeline.Option) *pipeline.Graph { return diamond(n, opts...) })
			own := 0
			for _, b := range tr.Buffers {
				if b.Call != None {
					own++
				}
			}
			if len(tr.Items) != n || own != 2*n {
				t.Errorf("%d items, %d buffers of theirs, want %d", len(tr.Items), own, n)
			}
		})
	}
	group.Wait()
}

// TestClosedBeforeTheRun: a graph can run with a recorder that is closed.
func TestClosedBeforeTheRun(t *testing.T) {
	clean(t)
	file := new(bytes.Buffer)
	rec := NewRecorder(file)
	if err := rec.Close(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := diamond(5, rec.Option()).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if file.Len() != 0 || alloc.Default().Observed() {
		t.Errorf("%d bytes written, observes: %v", file.Len(), alloc.Default().Observed())
	}
}
