package alloc

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

func TestMakeGivesZeroedAlignedMemory(t *testing.T) {
	tr := newTracker()
	sc := scope(tr, "synthesize", Host, nil)
	var total int64
	var all []*Buffer[[4]uint64]
	for round := range 2 { // the second round reuses memory that was written to
		for _, n := range []int{0, 1, 2, 3, 63, 64, 65, 1000, 4097, 100_000, 1 << 17} {
			b := must[*Buffer[[4]uint64]](t)(Make[[4]uint64](sc, n, Witness, 0))
			if b.Len() != n || len(b.Slice()) != n || b.Bytes() != int64(n)*32 || b.Refs() != 1 {
				t.Fatalf("n=%d: Len %d, slice %d, Bytes %d, Refs %d", n, b.Len(), len(b.Slice()), b.Bytes(), b.Refs())
			}
			if b.Addr()%64 != 0 {
				t.Fatalf("n=%d: address %#x is not 64-byte aligned", n, b.Addr())
			}
			for i, v := range b.Slice() {
				if v != [4]uint64{} {
					t.Fatalf("round %d, n=%d: element %d is %v", round, n, i, v)
				}
				b.Slice()[i] = [4]uint64{1, 2, 3, uint64(i)}
			}
			total += b.Bytes()
			all = append(all, b)
		}
		if live := tr.Live(Host); live != total {
			t.Fatalf("live is %d, want %d", live, total)
		}
		for _, b := range all {
			b.Release()
		}
		all, total = nil, 0
	}
	if tr.Live(Host) != 0 {
		t.Fatalf("%d bytes are live at the end", tr.Live(Host))
	}
}

func TestMakeRefuses(t *testing.T) {
	type inner struct{ P [2]struct{ S string } }
	sc := scope(newTracker(), "s", Host, nil)
	for name, err := range map[string]error{
		"[]byte":    second(Make[[]byte](sc, 1, Scratch, 0)),
		"string":    second(Make[string](sc, 1, Scratch, 0)),
		"*int":      second(Make[*int](sc, 0, Scratch, 0)),
		"map":       second(Make[map[int]int](sc, 1, Scratch, 0)),
		"interface": second(Make[any](sc, 1, Scratch, 0)),
		"chan":      second(Make[chan int](sc, 1, Scratch, 0)),
		"func":      second(Make[func()](sc, 1, Scratch, 0)),
		"unsafe":    second(Make[unsafe.Pointer](sc, 1, Scratch, 0)),
		"nested":    second(Make[inner](sc, 1, Scratch, 0)),
	} {
		if err == nil || !strings.Contains(err.Error(), "pointer") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := second(Make[inner](sc, 1, Scratch, 0)); !strings.Contains(err.Error(), ".P[0].S") {
		t.Errorf("the field is not named: %v", err)
	}
	if b, err := Make[[0]*int](sc, 3, Scratch, 0); err != nil {
		t.Errorf("an array of no pointers: %v", err)
	} else {
		b.Release()
	}
	if _, err := Make[byte](sc, -1, Scratch, 0); err == nil || !strings.Contains(err.Error(), "negative") {
		t.Errorf("negative: %v", err)
	}
	if _, err := Make[byte](sc.In(Device(9)), 1, Scratch, 0); err == nil {
		t.Error("an invalid space is accepted")
	}
	if _, err := Make[byte](sc.In(Device(3)), 1, Scratch, 0); !errors.Is(err, ErrNoProvider) {
		t.Errorf("a space without a provider: %v", err)
	}
	for _, n := range []int{math.MaxInt, math.MaxInt / 32, 1 << 46, 1<<42 + 1} {
		var e *NoMemoryError
		if _, err := Make[[4]uint64](sc, n, Scratch, 0); !errors.As(err, &e) || e.Asked <= 0 {
			t.Errorf("%d elements: %v", n, err)
		} else if !strings.Contains(err.Error(), "stage s") {
			t.Errorf("the stage is not named: %v", err)
		}
	}
	var e *NoMemoryError
	if _, err := Make[byte](sc, 1<<47-1, Scratch, 0); !errors.As(err, &e) {
		t.Errorf("what no system maps: %v", err)
	}
	if live := sc.tracker.Live(Host); live != 0 {
		t.Errorf("refusals left %d bytes live", live)
	}
}

func second[T any](_ T, err error) error { return err }

func TestElementsWithoutSize(t *testing.T) {
	b := must[*Buffer[struct{}]](t)(Make[struct{}](scope(newTracker(), "s", Host, nil), 5, Scratch, 0))
	if b.Len() != 5 || len(b.Slice()) != 5 || b.Bytes() != 0 {
		t.Fatalf("%d elements, %d bytes", b.Len(), b.Bytes())
	}
	b.Release()
}

func TestHandMovesTheAccount(t *testing.T) {
	tr := newTracker()
	a, b := StageOf("hand-a"), StageOf("hand-b")
	buf := must[*Buffer[byte]](t)(Make[byte](scope(tr, "hand-a", Host, nil), 10_000, Evaluation, 0))
	buf.Hand(b)
	buf.Hand(b)
	if buf.Stage() != b || buf.Purpose() != Evaluation {
		t.Fatalf("it belongs to %v for %v", buf.Stage(), buf.Purpose())
	}
	if x, y := tr.StageLive(a)[Host], tr.StageLive(b)[Host]; x != 0 || y != 10_000 {
		t.Fatalf("live: %d and %d", x, y)
	}
	if x, y := tr.StagePeak(a)[Host], tr.StagePeak(b)[Host]; x != 10_000 || y != 10_000 {
		t.Fatalf("peaks: %d and %d", x, y)
	}
	if p := tr.Peak(Host); p != 10_000 {
		t.Fatalf("the peak of the space is %d: handing over is no allocation", p)
	}
	buf.Release()
	if tr.StageLive(b)[Host] != 0 {
		t.Fatal("it is still counted")
	}
}

func TestForeignIsCounted(t *testing.T) {
	tr := newTracker()
	b := NewBudget(HostBytes(1000))
	r := must[*Reservation](t)(b.Reserve(context.Background(), HostBytes(1000)))
	c := must[*Charge](t)(Foreign(scope(tr, "solver", Host, r), External, 800))
	if tr.Live(Host) != 800 || r.Left()[Host] != 200 {
		t.Fatalf("live %d, left %d", tr.Live(Host), r.Left()[Host])
	}
	var over *OverdrawError
	if _, err := Foreign(scope(tr, "solver", Host, r), External, 201); !errors.As(err, &over) || over.Left != 200 {
		t.Fatalf("overdraw: %v", err)
	}
	if _, err := Foreign(scope(tr, "solver", Host, r), External, -1); err == nil {
		t.Fatal("a negative charge is accepted")
	}
	c.Release()
	r.Close()
	if tr.Live(Host) != 0 || !b.Stats().Charged.IsZero() {
		t.Fatal("it is still counted")
	}
	rows := tr.Snapshot().Rows
	if len(rows) != 1 || rows[0].Kind != ForeignMemory || rows[0].Peak != 800 {
		t.Fatalf("rows: %+v", rows)
	}
}

func TestScopeOfContext(t *testing.T) {
	ctx := context.Background()
	if s := ScopeOf(ctx); s == nil || s.Stage() != Unowned || s.Space() != Host || s.Reservation() != nil {
		t.Fatalf("an empty context gives %+v", s)
	}
	s := NewScope(StageOf("ntt"), Device(1), nil)
	if got := ScopeOf(WithScope(ctx, s)); got != s {
		t.Fatal("another scope came out")
	}
	if got := s.In(Host); got.Space() != Host || got.Stage() != s.Stage() || s.Space() != Device(1) {
		t.Fatal("In changed the wrong thing")
	}
	if (*Scope)(nil).In(Pinned).Space() != Pinned || (*Scope)(nil).Stage() != Unowned {
		t.Fatal("a nil scope is not the unowned one")
	}
}

// References behave like a number: memory is live exactly while it is above 0.
func TestReferencesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := newTracker()
		n := rapid.IntRange(0, 5000).Draw(t, "n")
		b, err := Make[uint16](scope(tr, "refs", Host, nil), n, Scratch, 0)
		if err != nil {
			t.Fatal(err)
		}
		refs := 1
		for _, up := range rapid.SliceOf(rapid.Bool()).Draw(t, "ops") {
			if refs == 0 {
				v := thrown(func() {
					if up {
						b.Retain()
					} else {
						b.Release()
					}
				})
				_, use := v.(*UseAfterFreeError)
				_, double := v.(*DoubleReleaseError)
				if up != use || up == double {
					t.Fatalf("misuse of a freed buffer throws %v", v)
				}
			} else if up {
				b.Retain()
				refs++
			} else {
				b.Release()
				refs--
			}
			want := int64(0)
			if refs > 0 {
				want = int64(2 * n)
			}
			if b.Refs() != refs || tr.Live(Host) != want {
				t.Fatalf("refs %d, live %d; want %d, %d", b.Refs(), tr.Live(Host), refs, want)
			}
		}
		for ; refs > 0; refs-- {
			b.Release()
		}
	})
}

func TestBufferEventsDoNotAllocate(t *testing.T) {
	if Debug {
		t.Skip("debug builds keep records")
	}
	tr := newTracker()
	sc := scope(tr, "events", Host, nil)
	b := must[*Buffer[byte]](t)(Make[byte](sc, 1<<16, Scratch, Dirty))
	defer b.Release()
	to := [2]Stage{StageOf("events-a"), StageOf("events-b")}
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		b.Retain()
		b.Release()
		b.Hand(to[i%2])
		i++
		_ = b.Slice()
		_ = tr.Live(Host)
	}); n != 0 {
		t.Errorf("an event allocates %v times", n)
	}
	for _, size := range []int{100, 1 << 14, 1 << 18} {
		if n := testing.AllocsPerRun(1000, func() {
			b, err := Make[byte](sc, size, Scratch, Dirty)
			if err != nil {
				t.Error(err)
				return
			}
			b.Release()
		}); n > 1 {
			t.Errorf("%d bytes: Make and Release allocate %v times, want the Buffer alone", size, n)
		}
	}
}
