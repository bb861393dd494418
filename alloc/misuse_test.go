package alloc

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

func freed(t *testing.T, n int) *Buffer[byte] {
	b := must[*Buffer[byte]](t)(Make[byte](scope(newTracker(), "misuse", Host, nil), n, Scratch, 0))
	b.Release()
	return b
}

func TestMisuseIsThrown(t *testing.T) {
	b := freed(t, 100)
	double, ok := thrown(b.Release).(*DoubleReleaseError)
	if !ok || !strings.Contains(double.Error(), "double release of 100 bytes") {
		t.Fatalf("double release throws %v", double)
	}
	for what, f := range map[string]func(){
		"Retain": b.Retain,
		"Slice":  func() { b.Slice() },
		"Addr":   func() { b.Addr() },
		"Hand":   func() { b.Hand(StageOf("elsewhere")) },
	} {
		e, ok := thrown(f).(*UseAfterFreeError)
		if !ok || e.What != what {
			t.Errorf("%s of a freed buffer throws %v", what, e)
		}
		if Debug && (!strings.Contains(e.Made, "misuse_test.go") || !strings.Contains(e.Freed, "misuse_test.go")) {
			t.Errorf("the places are not named:\n%v", e)
		}
	}
	if Debug && (!strings.Contains(double.Made, "alloc.freed") || !strings.Contains(double.Freed, "misuse_test.go")) {
		t.Errorf("the places are not named:\n%v", double)
	}
	if b.Refs() != 0 || b.tracker.Live(Host) != 0 {
		t.Fatalf("misuse changed the counts: %d references, %d live", b.Refs(), b.tracker.Live(Host))
	}
}

func TestLeaksAreListed(t *testing.T) {
	tr := newTracker()
	sc := scope(tr, "leaky", Host, nil)
	kept := must[*Buffer[byte]](t)(Make[byte](sc, 10, Scratch, 0))
	m := tr.mark()
	gone := must[*Buffer[byte]](t)(Make[byte](sc, 20, Scratch, 0))
	gone.Release()
	var tb memTB
	if m.CheckLeaks(&tb); len(tb.errs) != 0 {
		t.Fatalf("no leak, but: %v", tb.errs)
	}
	leak := must[*Buffer[byte]](t)(Make[byte](sc, 12345, Bucket, 0))
	empty := must[*Buffer[byte]](t)(Make[byte](sc, 0, Matrix, 0)) // a reference all the same
	leak.Retain()
	leak.Release()
	m.CheckLeaks(&tb)
	all := strings.Join(tb.errs, "\n")
	if len(tb.errs) != 2 || !strings.Contains(all, "LEAK of 12345 bytes bucket leaky") || !strings.Contains(all, "LEAK of 0 bytes matrix leaky") {
		t.Fatalf("reported: %v", tb.errs)
	}
	if Debug {
		ls := tr.Leaks()
		if len(ls) != 3 || ls[0].Bytes != 10 || ls[1].Bytes != 12345 || ls[1].Lost {
			t.Fatalf("leaks: %+v", ls)
		}
		s := ls[1].String()
		if !strings.Contains(s, "FROM ") || !strings.Contains(s, "misuse_test.go:") ||
			!strings.Contains(s, "retained at ") || !strings.Contains(s, "released at ") {
			t.Fatalf("a leak says:\n%s", s)
		}
	} else if tr.Leaks() != nil {
		t.Fatal("places are known outside debug builds")
	}
	kept.Release()
	leak.Release()
	empty.Release()
	if len(tr.Leaks()) != 0 {
		t.Fatal("what was freed is listed")
	}
}

func TestWriteAfterFreeIsFound(t *testing.T) {
	if !Debug {
		t.Skip("debug builds only")
	}
	for _, n := range []int{100, 10_000, 3 << 20} {
		tr := newTracker()
		sc := scope(tr, "writer", Host, nil)
		b := must[*Buffer[byte]](t)(Make[byte](sc, n, Scratch, 0))
		stale := b.Slice()
		b.Release()
		for _, v := range stale {
			if v != poison {
				t.Fatalf("n=%d: freed memory is not poisoned", n)
			}
		}
		stale[n/2] = 7
		var tb memTB
		if tr.mark().CheckLeaks(&tb); len(tb.errs) != 1 || !strings.Contains(tb.errs[0], "write after free") {
			t.Errorf("n=%d: CheckLeaks says %v", n, tb.errs)
		}
		e, ok := thrown(func() { tr.TrimPool() }).(*WriteAfterFreeError)
		if !ok || e.Offset != int64(n/2) || !strings.Contains(e.Made, "misuse_test.go") || !strings.Contains(e.Freed, "misuse_test.go") {
			t.Errorf("n=%d: thrown: %v", n, e)
		}
	}
}

func TestWriteAfterFreeIsFoundOnReuse(t *testing.T) {
	if !Debug {
		t.Skip("debug builds only")
	}
	tr := newTracker()
	sc := scope(tr, "writer", Host, nil)
	b := must[*Buffer[byte]](t)(Make[byte](sc, 50_000, Scratch, 0))
	stale := b.Slice()
	b.Release()
	// Push it through the quarantine into the pool, then spoil it there.
	for range maxQuarantined {
		must[*Buffer[byte]](t)(Make[byte](sc, 10, Scratch, 0)).Release()
	}
	stale[3]++
	e, ok := thrown(func() { _, _ = Make[byte](sc, 50_000, Scratch, 0) }).(*WriteAfterFreeError)
	if !ok || e.Offset != 3 {
		t.Fatalf("thrown: %v", e)
	}
}

func TestWritePastTheEndIsFound(t *testing.T) {
	if !Debug {
		t.Skip("debug builds only")
	}
	for _, n := range []int{100, 5000} {
		b := must[*Buffer[byte]](t)(Make[byte](scope(newTracker(), "writer", Host, nil), n, Scratch, 0))
		b.block.Bytes[n+1] = 0
		if e, ok := thrown(b.Release).(*WriteAfterFreeError); !ok || e.Offset != int64(n+1) {
			t.Errorf("n=%d: thrown: %v", n, e)
		}
	}
}

func TestDirtyMemoryIsNotZeroInDebug(t *testing.T) {
	if !Debug {
		t.Skip("debug builds only")
	}
	b := must[*Buffer[byte]](t)(Make[byte](scope(newTracker(), "s", Host, nil), 100, Scratch, Dirty))
	defer b.Release()
	for _, v := range b.Slice() {
		if v != dirtyPattern {
			t.Fatal("somebody could come to rely on zeros")
		}
	}
}

func TestCollectorReportsLostMemory(t *testing.T) {
	if !Debug {
		t.Skip("debug builds only")
	}
	tr := newTracker()
	told := make(chan Leak, 1)
	tr.OnLost(func(l Leak) { told <- l })
	func() {
		b := must[*Buffer[byte]](t)(Make[byte](scope(tr, "forgetful", Host, nil), 777, Scratch, 0))
		b.Slice()[0] = 1
	}()
	for range 100 {
		runtime.GC()
		select {
		case l := <-told:
			if l.Bytes != 777 || !l.Lost || !strings.Contains(l.Site, "misuse_test.go") {
				t.Fatalf("told: %+v", l)
			}
			if tr.Live(Host) != 777 {
				t.Fatal("the collector freed memory")
			}
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatal("the collector never told")
}
