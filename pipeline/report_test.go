package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/snarkline/snarkline/alloc"
)

// slowLine is make → wait → sink with a join on the way.
func slowLine(opts ...Option) *Graph {
	g := New("slow line", append([]Option{Budget(alloc.Host, 1<<20)}, opts...)...)
	src := FromSlice(g, count0(8), intKey)
	w := Via(src, WithNeeds(NewStage("make", func(ctx context.Context, n int) (*block, error) { return makeBlock(ctx, 1000, 500) }),
		makes(hostPart("w", 1500))), Workers(2), Capacity(3))
	s := Via(w, NewStage("wait", func(_ context.Context, b *block) (int, error) {
		time.Sleep(2 * time.Millisecond)
		return 1, nil
	}), Capacity(2))
	ToFunc(Join2(w, s), func(context.Context, Key, Pair[*block, int]) error { return nil }, Name("end"))
	return g
}

func TestReport(t *testing.T) {
	clean(t)
	g := slowLine()
	if g.Stats() != nil {
		t.Error("stats before the run")
	}
	rep := mustRun(t, g)
	mk, wait, join := rep.Stage("make"), rep.Stage("wait"), rep.Stage("join")
	if mk.Items != 8 || wait.Items != 8 || join.Items != 8 || rep.Stage("end").Items != 8 || rep.Stage("source").Items != 8 {
		t.Errorf("items: %+v", rep)
	}
	if wait.Busy < 16*time.Millisecond || mk.WaitOut <= 0 || rep.Stage("end").WaitIn <= 0 || rep.Wall < wait.Busy {
		t.Errorf("times: busy %v, out %v, in %v, wall %v", wait.Busy, mk.WaitOut, rep.Stage("end").WaitIn, rep.Wall)
	}
	if wait.Held.Peak != host(1500) || wait.Queued.Peak != host(3000) || wait.QueuePeak != 2 {
		t.Errorf("wait: held %v, queued %v, queue %d", wait.Held.Peak, wait.Queued.Peak, wait.QueuePeak)
	}
	if join.Pending.Peak[0] < 3000 || join.QueuePeak < 2 || !join.Pending.Now.IsZero() {
		t.Errorf("join: %+v", join)
	}
	if mk.Made.Peak[0] < 3000 {
		t.Errorf("made: %v", mk.Made)
	}
	if rep.PeakInFlight < 2 || rep.InFlight != 0 || rep.Budget == nil || rep.Budget.Peak[0] < 3000 || rep.Budget.Reserved[0] != 0 {
		t.Errorf("%+v, %+v", rep, rep.Budget)
	}
	if rep.Stage("nobody") != nil {
		t.Error("a stage that is not there")
	}
	if live := g.Stats(); live.Wall != rep.Wall || live.Items != 8 {
		t.Error("stats after the run differ")
	}
	data, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if again, _ := json.Marshal(&back); !bytes.Equal(data, again) {
		t.Errorf("JSON does not come back:\n%s\n%s", data, again)
	}
}

func TestTableWidth(t *testing.T) {
	rep := &Report{Graph: strings.Repeat("long name ", 9), Items: 12345678, Failed: 7, Stopped: 9, Wall: 3*time.Hour + 1, PeakInFlight: 40,
		Budget: &BudgetReport{Limit: host(1 << 40), Peak: host(1<<40 - 1), Waits: 5, WaitTime: time.Second}}
	rep.Peak[0], rep.Peak[2] = 1<<50, 5
	for _, n := range []string{"synthesize", "a stage with quite a long name", "ß"} {
		rep.Stages = append(rep.Stages, StageReport{Name: n, Workers: 128, Capacity: Unbounded, Items: 123456789, Failed: 999999, Retries: 1e9,
			Busy: 999 * time.Hour, WaitIn: 3 * time.Microsecond, WaitOut: 123456 * time.Microsecond, Queue: 100, QueuePeak: 9999,
			Held: Level{Peak: host(1<<40 - 1)}, Made: Level{Peak: alloc.BytesIn(alloc.Device(0), 1023*alloc.MiB)}})
	}
	rep.Failures = append(rep.Failures, Failure{Error: strings.Repeat("x", 300)})
	var b strings.Builder
	if err := rep.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, l := range strings.Split(b.String(), "\n") {
		if utf8.RuneCountInString(l) > 100 {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(l), l)
		}
	}
	for _, s := range []string{"12,345,678 items, 7 failed, 9 stopped in", "               host            device0\n", "- / 1024 GiB", "1023 MiB /        -\n", "reserved at most", "admission: 5 of the items", "and 6 more"} {
		if !strings.Contains(b.String(), s) {
			t.Errorf("no %q in\n%s", s, b.String())
		}
	}
}

// TestTableOfSpaces: with memory in every space the columns still fit, in parts.
func TestTableOfSpaces(t *testing.T) {
	rep := &Report{Graph: "many", Budget: &BudgetReport{}}
	var all alloc.Amount
	for i := range all {
		all[i] = 1023 * alloc.MiB
	}
	rep.Peak, rep.Live, rep.Budget.Limit, rep.Budget.Peak = all, all, all, all
	rep.Stages = []StageReport{{Name: "a stage with quite a long name", Made: Level{Peak: all}, Queued: Level{Peak: all}}, {Name: "idle"}}
	var b strings.Builder
	if err := rep.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	_, memory, _ := strings.Cut(b.String(), "memory, peaks")
	if strings.Contains(memory, "idle") || strings.Count(memory, "1023 MiB / 1023 MiB") != alloc.MaxSpaces {
		t.Error(b.String())
	}
	for l := range strings.SplitSeq(b.String(), "\n") {
		if utf8.RuneCountInString(l) > 100 {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(l), l)
		}
	}
	var one strings.Builder
	rep.Peak, rep.Live, rep.Stages, rep.Budget = host(5), host(5), nil, nil
	if err := rep.WriteTable(&one); err != nil || !strings.Contains(one.String(), "host memory, peaks          made by stage      held by stage") {
		t.Error(one.String(), err)
	}
}

func TestTableOfOne(t *testing.T) {
	var b strings.Builder
	if err := (&Report{Graph: "one", Items: 1}).WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(b.String(), "one: 1 item in ") {
		t.Error(b.String())
	}
}

func TestEvents(t *testing.T) {
	clean(t)
	var mu sync.Mutex
	seen := map[EventKind]int{}
	order := map[string][]EventKind{}
	g := slowLine(Listen(ListenerFunc(func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		seen[e.Kind]++
		if e.Kind == Begin || e.Kind == End {
			at := e.Stage + e.Key.String()
			order[at] = append(order[at], e.Kind)
		}
		if e.Kind == End && e.Stage == "make" && e.Bytes != 1500 {
			t.Errorf("make ends with %d bytes", e.Bytes)
		}
	})))
	mustRun(t, g)
	for k, n := range map[EventKind]int{Admitted: 8, Left: 8, Queued: 8 * 5, Begin: 24, End: 24, Failed: 0, Retried: 0, Dropped: 0} {
		if seen[k] != n {
			t.Errorf("%d events %v, want %d", seen[k], k, n)
		}
	}
	if seen[WaitedIn] == 0 || seen[WaitedOut] == 0 {
		t.Errorf("%v", seen)
	}
	for at, ks := range order {
		if len(ks) != 2 || ks[0] != Begin || ks[1] != End {
			t.Errorf("%s: %v", at, ks)
		}
	}
	if EventKind(200).String() != "unknown" {
		t.Error("a name for what is none")
	}
}

func TestOrdered(t *testing.T) {
	clean(t)
	g := New("ordered", OnError(FailKey))
	p := Via(FromSlice(g, count0(200), intKey), NewStage("jitter", func(_ context.Context, n int) (int, error) {
		time.Sleep(time.Duration(n*7919%97) * time.Microsecond)
		if n%10 == 9 {
			return 0, errOdd
		}
		return n, nil
	}), Workers(8), Capacity(4), Ordered())
	c := Collect(p)
	mustRun(t, g)
	last := -1
	for _, n := range c.Values() {
		if n <= last || n%10 == 9 {
			t.Fatalf("%d after %d", n, last)
		}
		last = n
	}
	if len(c.Values()) != 180 {
		t.Errorf("%d values", len(c.Values()))
	}
}

// TestChangeWhileRunning: more workers help at once, fewer retire.
func TestChangeWhileRunning(t *testing.T) {
	clean(t)
	g := New("change")
	var mu sync.Mutex
	running, most := 0, 0
	gate := make(chan struct{})
	ToFunc(FromSlice(g, count0(40), intKey), func(_ context.Context, k Key, _ int) error {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		<-gate
		mu.Lock()
		running--
		mu.Unlock()
		return nil
	})
	go func() {
		until := func(n int) {
			for {
				mu.Lock()
				r := running
				mu.Unlock()
				if r == n {
					return
				}
				time.Sleep(100 * time.Microsecond)
			}
		}
		until(1)
		_ = g.SetCapacity("sink", 10)
		_ = g.SetWorkers("sink", 6)
		until(6)
		for q := 0; q < 10; q = g.Stats().Stage("sink").Queue {
			time.Sleep(100 * time.Microsecond)
		}
		_ = g.SetWorkers("sink", 2)
		_ = g.SetCapacity("sink", 1)
		for range 6 {
			gate <- struct{}{}
		}
		until(2)
		if g.Workers("sink") != 2 || g.Capacity("sink") != 1 || g.Workers("nobody") != 0 || g.Capacity("nobody") != 0 {
			t.Error("numbers are not told")
		}
		close(gate)
	}()
	rep := mustRun(t, g)
	if most != 6 || rep.Items != 40 || rep.Stage("sink").QueuePeak != 10 {
		t.Errorf("at most %d at once, %d items, queue of %d", most, rep.Items, rep.Stage("sink").QueuePeak)
	}
}

func TestDraw(t *testing.T) {
	g := slowLine()
	if err := g.SetCapacity("end", Unbounded); err != nil {
		t.Fatal(err)
	}
	dot := g.DOT()
	for _, s := range []string{`digraph "slow line"`, `label="budget: host 1.0 MiB"`, `[shape=box, label="make\n2 workers"]`, `n0 -> n1 [label="3"]`, `n3 -> n4 [label="unbounded"]`} {
		if !strings.Contains(dot, s) {
			t.Errorf("no %s in\n%s", s, dot)
		}
	}
	mm := g.Mermaid()
	for _, s := range []string{"flowchart LR", `n1["make<br/>2 workers"]`, `n0 -- "3" --> n1`, `n2 --> n3`, `title: "slow line, budget: host 1.0 MiB"`} {
		if !strings.Contains(mm, s) {
			t.Errorf("no %s in\n%s", s, mm)
		}
	}
}
