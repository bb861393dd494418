package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

// scribe writes down what it is told, with what is usable during OnEvent alone.
type scribe struct {
	mu     sync.Mutex
	start  []Start
	events []Event
	refs   [][]uint64
	needs  [][]StageNeed
	born   []alloc.Change
}

func (s *scribe) OnStart(st Start) { s.start = append(s.start, st) }

func (s *scribe) OnEvent(e Event) {
	var ids []uint64
	for i := range e.NbRefs() {
		ids = append(ids, alloc.IDOf(e.Ref(i)))
	}
	needs := e.Needs()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events, s.refs, s.needs = append(s.events, e), append(s.refs, ids), append(s.needs, needs)
}

func (s *scribe) OnMemory(c alloc.Change) {
	if c.What == alloc.Born {
		s.born = append(s.born, c)
	}
}

// of are the events of a kind at a node, with their buffers.
func (s *scribe) of(k EventKind, stage string) (events []Event, refs [][]uint64) {
	for i, e := range s.events {
		if e.Kind == k && (stage == "" || e.Stage == stage) {
			events, refs = append(events, e), append(refs, s.refs[i])
		}
	}
	return events, refs
}

// TestEventsSayWhatTheyAreAbout follows two buffers through a stage that drops
// one, a join, an ordered stage and both kinds of sinks.
func TestEventsSayWhatTheyAreAbout(t *testing.T) {
	clean(t)
	l := new(scribe)
	defer alloc.Default().Observe(l)()
	g := New("told", Listen(l), Budget(alloc.Host, 1<<20))
	mk := Via(FromSlice(g, count0(3), intKey), WithNeeds(NewStage("make", func(ctx context.Context, n int) (*block, error) {
		return makeBlock(ctx, 100, 50)
	}), makes(hostPart("w", 150))))
	read := Via(mk, NewStage("read", func(ctx context.Context, b *block) (int, error) {
		Drop(ctx, b.Buffers()[1])
		return 1, nil
	}), Ordered(), Workers(2))
	joined := Join2(mk, read)
	ToFunc(joined, func(context.Context, Key, Pair[*block, int]) error { return nil }, Name("end"))
	Collect(Via(read, NewStage("pass", func(_ context.Context, n int) (int, error) { return n, nil })), Name("all"))
	mustRun(t, g)

	if len(l.start) != 1 || l.start[0].Graph.Index("read") < 0 || l.start[0].Graph.Budget[alloc.Host] != 1<<20 ||
		l.start[0].Settings.Stages["read"].Workers != 2 || time.Since(l.start[0].At) > time.Minute {
		t.Errorf("the start is told as %+v", l.start)
	}
	for kind, want := range map[EventKind]int{Arrived: 3, Admitted: 3, Left: 3, Met: 3, InTurn: 3, Taken: 3, Sent: 4 * 3, Discarded: 0, Gone: 0} {
		if got, _ := l.of(kind, ""); len(got) != want {
			t.Errorf("%v comes %d times, want %d", kind, len(got), want)
		}
	}
	items := make(map[uint64]int)
	ends, made := l.of(End, "make")
	for i, e := range ends {
		items[e.Item]++
		var born []uint64
		for _, c := range l.born {
			if c.Tag == e.Call {
				born = append(born, c.ID)
			}
		}
		if e.Call == 0 || len(born) != 2 || !slices.Equal(born, made[i]) {
			t.Errorf("call %d made %v, and what it allocated is %v", e.Call, made[i], born)
		}
		for _, next := range []struct {
			kind  EventKind
			stage string
			refs  []uint64
		}{{Queued, "read", born}, {Begin, "read", born}, {Dropped, "read", born[1:]}, {Queued, "join", born}, {Begin, "end", born}} {
			events, refs := l.of(next.kind, next.stage)
			// At the join either input may come first; what was made comes by the first one.
			at := slices.IndexFunc(events, func(o Event) bool { return o.Item == e.Item && o.Slot == 0 })
			if at < 0 || !slices.Equal(refs[at], next.refs) {
				t.Errorf("item %d, %v at %s: buffers %v, want %v", e.Item, next.kind, next.stage, refs, next.refs)
			}
		}
	}
	if len(items) != 3 || items[0] != 0 {
		t.Errorf("items are numbered %v", items)
	}
	slots := make(map[int]int)
	joins, _ := l.of(Queued, "join")
	for _, e := range joins {
		slots[e.Slot]++
	}
	if slots[0] != 3 || slots[1] != 3 {
		t.Errorf("inputs of the join: %v", slots)
	}
	for i, e := range l.events {
		if needs := l.needs[i]; (e.Kind == Admitted) != (len(needs) == 1) || len(needs) == 1 && needs[0].Need.Makes[0].Bytes[0] != 150 {
			t.Errorf("%v says needs %v", e.Kind, needs)
		}
	}
}

// TestEventsOfNeedsWithoutBudget: the stages are asked although nothing waits.
func TestEventsOfNeedsWithoutBudget(t *testing.T) {
	clean(t)
	l := new(scribe)
	g := New("free", Listen(l))
	ToFunc(Via(FromSlice(g, count0(1), intKey), WithNeeds(NewStage("make", func(context.Context, int) (int, error) { return 0, nil }),
		makes(hostPart("w", 7)))), func(context.Context, Key, int) error { return nil })
	mustRun(t, g)
	for i, e := range l.events {
		if e.Kind == Admitted && (len(l.needs[i]) != 1 || l.needs[i][0].Stage != "make") {
			t.Errorf("needs %v", l.needs[i])
		}
	}
}

// TestEventsOfFailures: what waits of a failed item is told as thrown away, an
// item that is made again as two, and changes of settings as they come.
func TestEventsOfFailures(t *testing.T) {
	clean(t)
	l := new(scribe)
	g := New("failing", Listen(l), OnError(FailKey))
	var tries sync.Map
	src := FromSlice(g, count0(3), intKey, Restart(1))
	a := Via(src, NewStage("a", func(ctx context.Context, n int) (int, error) { return n, nil }))
	b := Via(a, NewStage("b", func(ctx context.Context, n int) (int, error) {
		_, again := tries.LoadOrStore(n, true)
		switch {
		case n == 0:
			return 0, errors.New("never")
		case n == 1 && !again:
			return 0, flaky{}
		case n == 2:
			if err := g.SetWorkers("a", 3); err != nil {
				t.Error(err)
			}
			if err := g.SetCapacity("b", 5); err != nil {
				t.Error(err)
			}
		}
		return n, nil
	}))
	Collect(Join2(a, b), Name("all"))
	rep, err := g.Run(context.Background())
	if err != nil || rep.Failed != 1 || rep.Restarted != 1 {
		t.Fatalf("%+v, %v", rep, err)
	}
	arrived, _ := l.of(Arrived, "")
	gone, _ := l.of(Gone, "")
	left, _ := l.of(Left, "")
	if len(arrived) != 4 || len(gone) != 1 || len(left) != 3 || gone[0].Key.Part != 1 {
		t.Errorf("%d arrivals, %d gone, %d left", len(arrived), len(gone), len(left))
	}
	discarded, _ := l.of(Discarded, "join")
	for _, part := range []int{0, 1} {
		if !slices.ContainsFunc(discarded, func(e Event) bool { return e.Key.Part == part && e.Item != 0 }) {
			t.Errorf("nothing is told of what waited of item %d in the join", part)
		}
	}
	ids := make(map[uint64]bool)
	for _, e := range arrived {
		ids[e.Item] = true
		if e.Attempt > 0 && e.Key.Part != 1 {
			t.Errorf("attempt %d of %v", e.Attempt, e.Key)
		}
	}
	if len(ids) != 4 {
		t.Errorf("attempts are numbered %v", ids)
	}
	sized, _ := l.of(Resized, "")
	if len(sized) != 2 || sized[0].Stage != "a" || sized[0].Workers != 3 || sized[1].Stage != "b" || sized[1].Capacity != 5 {
		t.Errorf("changes of settings: %+v", sized)
	}
}
