package alloc

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// ledger adds up what it hears.
type ledger struct {
	list  []Change
	live  Amount
	peak  Amount
	stage map[Stage]int64
	seen  map[uint64]Change
}

func newLedger() *ledger {
	return &ledger{stage: make(map[Stage]int64), seen: make(map[uint64]Change)}
}

func (l *ledger) OnMemory(c Change) {
	l.list = append(l.list, c)
	n := c.Bytes
	switch c.What {
	case Handed:
		l.stage[c.From] -= n
		l.stage[c.Stage] += n
		return
	case Died:
		n = -n
	case Born:
		l.seen[c.ID] = c
	}
	if c.Kind == MappedFile {
		return
	}
	l.stage[c.Stage] += n
	l.live[c.Space] += n
	l.peak = l.peak.Max(l.live)
}

// TestObserverCountsWhatTheTrackerCounts lets many goroutines make, hand over
// and free memory in two spaces: what the observer adds up has the tracker's
// totals and its very peaks.
func TestObserverCountsWhatTheTrackerCounts(t *testing.T) {
	tr := newTracker()
	must[Provider](t)(tr.Register(Device(0), newTestProvider(1<<30)))
	before := must[*Buffer[byte]](t)(Make[byte](scope(tr, "before", Host, nil), 1000, Witness, 0))
	tr.ResetPeaks()
	l := newLedger()
	stop := tr.Observe(l)
	if len(l.list) != 1 || l.list[0].What != Present || l.list[0].Bytes != 1000 || l.list[0].Stage != StageOf("before") {
		t.Fatalf("what was there is told as %+v", l.list)
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(g)))
			var held []Ref
			for range 2000 {
				space := Host
				if r.IntN(3) == 0 {
					space = Device(0)
				}
				sc := scope(tr, []string{"one", "two", "three"}[r.IntN(3)], space, nil)
				switch k := r.IntN(8); {
				case k == 0:
					if c, err := Foreign(sc, External, int64(r.IntN(1<<20))); err == nil {
						held = append(held, c)
					}
				case k < 4:
					b, err := Make[byte](sc, r.IntN(5000), Scratch, Dirty)
					if err != nil {
						t.Error(err)
						return
					}
					if k == 1 {
						b.Hand(StageOf("heir"))
					}
					held = append(held, b)
				case len(held) > 0:
					i := r.IntN(len(held))
					held[i].Release()
					held = slices.Delete(held, i, i+1)
				}
			}
			for _, h := range held[:len(held)/2] {
				h.Release()
			}
			for _, h := range held[len(held)/2:] {
				defer h.Release()
			}
		})
	}
	wg.Wait()
	before.Release()
	for _, s := range []Space{Host, Device(0)} {
		if l.live[s] != tr.Live(s) || l.peak[s] != tr.Peak(s) {
			t.Errorf("%v: live %d, peak %d; the tracker says %d and %d", s, l.live[s], l.peak[s], tr.Live(s), tr.Peak(s))
		}
	}
	for _, st := range []string{"one", "two", "three", "heir", "before"} {
		var want int64
		for _, n := range tr.StageLive(StageOf(st)) {
			want += n
		}
		if got := l.stage[StageOf(st)]; got != want {
			t.Errorf("stage %s: %d live, the tracker says %d", st, got, want)
		}
	}
	if l.peak[Host] == 0 || l.peak[Device(0)] == 0 {
		t.Error("nothing was seen")
	}
	n := len(l.list)
	stop()
	stop()
	must[*Buffer[byte]](t)(Make[byte](scope(tr, "after", Host, nil), 10, Witness, 0)).Release()
	if len(l.list) != n || tr.Observed() {
		t.Error("it is told of what comes after the end")
	}
}

// TestObserverSeesWhoseItIs follows one buffer, one mapping and their tags.
func TestObserverSeesWhoseItIs(t *testing.T) {
	tr := newTracker()
	l, other := newLedger(), newLedger()
	defer tr.Observe(l)()
	stop := tr.Observe(other)
	tag := tr.NextTag()
	sc := scope(tr, "maker", Pinned, nil)
	must[Provider](t)(tr.Register(Pinned, newTestProvider(1<<20)))
	b := must[*Buffer[uint64]](t)(Make[uint64](sc.Tagged(tag).In(Pinned), 4, Evaluation, 0))
	if b.ID() == 0 || IDOf(b) != b.ID() || l.seen[b.ID()] != (Change{What: Born, Space: Pinned, Purpose: Evaluation,
		Stage: StageOf("maker"), Bytes: 32, ID: b.ID(), Tag: tag}) {
		t.Errorf("a birth is told as %+v", l.seen[b.ID()])
	}
	b.Hand(StageOf("maker")) // nothing to tell
	b.Hand(StageOf("reader"))
	stop()
	b.Retain()
	b.Release()
	b.Release()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	m := must[*Mapping](t)(MapFile(scope(tr, "files", Host, nil).Tagged(tag), path))
	if c := l.seen[m.ID()]; c.Kind != MappedFile || c.Tag != tag || c.Bytes != 100 {
		t.Errorf("a mapping is told as %+v", c)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	var what []ChangeKind
	for _, c := range l.list {
		what = append(what, c.What)
	}
	if want := []ChangeKind{Born, Handed, Died, Born, Died}; !slices.Equal(what, want) {
		t.Errorf("changes %v, want %v", what, want)
	}
	if d := l.list[2]; d.Stage != StageOf("reader") || d.ID != b.ID() || l.list[1].From != StageOf("maker") {
		t.Errorf("hand-over and death are told as %+v, %+v", l.list[1], d)
	}
	if len(other.list) != 2 {
		t.Errorf("one that stopped was told of %d changes, want 2", len(other.list))
	}
}

// TestObserversComeAndGo lets observers come and go while memory is made and
// freed; the race detector looks on.
func TestObserversComeAndGo(t *testing.T) {
	tr := newTracker()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range 500 {
				b, err := Make[byte](scope(tr, "busy", Host, nil), 100, Scratch, Dirty)
				if err != nil {
					t.Error(err)
					return
				}
				b.Release()
			}
		})
	}
	for range 50 {
		stop := tr.Observe(newLedger())
		stop()
	}
	wg.Wait()
	if tr.Live(Host) != 0 {
		t.Errorf("%d bytes are counted in the end", tr.Live(Host))
	}
}

type nobody struct{}

func (nobody) OnMemory(Change) {}

// BenchmarkObserved is BenchmarkMake of 4 KiB while somebody observes.
func BenchmarkObserved(b *testing.B) {
	tr := newTracker()
	defer tr.Observe(nobody{})()
	sc := scope(tr, "bench", Host, nil)
	b.ReportAllocs()
	for b.Loop() {
		x, err := Make[byte](sc, 4<<10, Scratch, Dirty)
		if err != nil {
			b.Fatal(err)
		}
		x.Release()
	}
}
