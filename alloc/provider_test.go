package alloc

import (
	"context"
	"errors"
	"testing"
)

func TestProviderServesASpace(t *testing.T) {
	tr := newTracker()
	p := newTestProvider(10_000)
	if old, err := tr.Register(Device(2), p); err != nil || old != nil {
		t.Fatalf("%v, %v", old, err)
	}
	sc := scope(tr, "device", Device(2), nil)
	b := must[*Buffer[uint64]](t)(Make[uint64](sc, 100, Evaluation, Secret))
	if b.Slice() != nil || b.Len() != 100 || b.Bytes() != 800 || b.Space() != Device(2) {
		t.Fatalf("%v", b)
	}
	m := p.mem[b.Addr()]
	if len(m) != 800 {
		t.Fatalf("the device gave %d bytes: without a pool nothing is rounded up", len(m))
	}
	for _, v := range m {
		if v != 0 {
			t.Fatal("the memory was not cleared")
		}
	}
	fillBytes(m, 0x77)
	at := b.Addr()
	b.Release()
	for _, v := range p.freed[at] {
		if v == 0x77 {
			t.Fatal("the memory was not wiped before it went back")
		}
	}
	if p.inUse() != 0 || tr.Live(Device(2)) != 0 {
		t.Fatal("not freed")
	}
	if old, err := tr.Register(Device(2), nil); err != nil || old != p {
		t.Fatalf("%v, %v", old, err)
	}
	if _, err := Make[byte](sc, 1, Scratch, 0); !errors.Is(err, ErrNoProvider) {
		t.Fatalf("%v", err)
	}
	if _, err := tr.Register(Host, nil); err == nil {
		t.Fatal("host memory can be taken away")
	}
	if _, err := tr.Register(MaxSpaces, p); err == nil {
		t.Fatal("an invalid space is accepted")
	}
}

func TestLiveMemoryGoesBackWhereItCameFrom(t *testing.T) {
	tr := newTracker()
	one, two := newTestProvider(1<<20), newTestProvider(1<<20)
	_, _ = tr.Register(Device(0), one)
	tr.SetPoolLimitOf(Device(0), 1<<20)
	sc := scope(tr, "device", Device(0), nil)
	a := must[*Buffer[byte]](t)(Make[byte](sc, 5000, Scratch, Dirty))
	pooled := must[*Buffer[byte]](t)(Make[byte](sc, 5000, Scratch, Dirty))
	pooled.Release()
	if _, err := tr.Register(Device(0), two); err != nil {
		t.Fatal(err)
	}
	b := must[*Buffer[byte]](t)(Make[byte](sc, 5000, Scratch, Dirty))
	a.Release()
	if one.inUse() != 0 || two.inUse() == 0 {
		t.Fatalf("in use: %d of the old, %d of the new", one.inUse(), two.inUse())
	}
	b.Release()
	tr.TrimPool()
	if two.inUse() != 0 {
		t.Fatal("the pool keeps memory after TrimPool")
	}
	if n, err := tr.FreeErrors(); n != 0 {
		t.Fatal(err)
	}
}

// F3: memory in the pool must not make an allocation fail.
func TestPoolIsTrimmedBeforeFailing(t *testing.T) {
	tr := newTracker()
	p := newTestProvider(100_000)
	_, _ = tr.Register(Device(0), p)
	tr.SetPoolLimitOf(Device(0), 1<<20)
	sc := scope(tr, "device", Device(0), nil)
	for range 2 {
		must[*Buffer[byte]](t)(Make[byte](sc, 60_000, Scratch, Dirty)).Release()
	}
	if p.inUse() == 0 || p.allocs != 1 {
		t.Fatalf("%d bytes pooled after %d allocations", p.inUse(), p.allocs)
	}
	must[*Buffer[byte]](t)(Make[byte](sc, 90_000, Scratch, Dirty)).Release()
}

// F14: the counters return to zero on every path that fails or skips.
func TestCountersReturnToZeroOnFailure(t *testing.T) {
	tr := newTracker()
	p := newTestProvider(10_000)
	_, _ = tr.Register(Device(0), p)
	budget := NewBudget(on(1<<20, 1<<20))
	zero := func(what string) {
		t.Helper()
		for _, s := range []Space{Host, Device(0)} {
			if tr.Live(s) != 0 {
				t.Errorf("%s: %d bytes of %v memory stay counted", what, tr.Live(s), s)
			}
		}
		if a := tr.StageLive(StageOf("fails")); !a.IsZero() {
			t.Errorf("%s: the stage keeps %v", what, a)
		}
		for _, r := range tr.Snapshot().Rows {
			if r.Live != 0 || r.Allocs != r.Frees {
				t.Errorf("%s: %+v", what, r)
			}
		}
		if c := budget.Stats().Charged; !c.IsZero() {
			t.Errorf("%s: %v stays charged", what, c)
		}
		if p.inUse() != 0 {
			t.Errorf("%s: the device has %d bytes in use", what, p.inUse())
		}
	}
	try := func(what string, f func(sc *Scope) error) {
		t.Helper()
		r := must[*Reservation](t)(budget.Reserve(context.Background(), on(1<<20, 1<<20)))
		if err := f(scope(tr, "fails", Device(0), r)); err == nil {
			t.Errorf("%s: no error", what)
		}
		if u := r.Used(); !u.IsZero() {
			t.Errorf("%s: the reservation has %v in use", what, u)
		}
		r.Close()
		zero(what)
	}
	try("no memory", func(sc *Scope) error {
		_, err := Make[byte](sc, 10_001, Scratch, 0)
		if !errors.Is(err, errNoDevice) {
			t.Errorf("the cause is lost: %v", err)
		}
		return err
	})
	try("second of two fails", func(sc *Scope) error {
		a, err := Make[byte](sc, 6000, Scratch, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Release()
		_, err = Make[byte](sc, 6000, Scratch, 0)
		return err
	})
	try("cannot clear", func(sc *Scope) error {
		p.failFill = true
		defer func() { p.failFill = false }()
		_, err := Make[byte](sc, 100, Scratch, 0)
		return err
	})
	try("overdraw", func(sc *Scope) error {
		_, err := Make[byte](sc, 1<<20+1, Scratch, 0)
		return err
	})
	try("overdraw of host memory", func(sc *Scope) error {
		_, err := Make[byte](sc.In(Host), 1<<20+1, Scratch, 0)
		return err
	})
	try("pointers", func(sc *Scope) error { return second(Make[*int](sc, 1, Scratch, 0)) })
	try("negative", func(sc *Scope) error { return second(Make[byte](sc, -1, Scratch, 0)) })
	try("foreign", func(sc *Scope) error { return second(Foreign(sc, External, 1<<21)) })
	try("no such space", func(sc *Scope) error { return second(Make[byte](sc.In(Pinned), 1, Scratch, 0)) })
	// Skipped: reserved, and then nothing was made.
	must[*Reservation](t)(budget.Reserve(context.Background(), on(5, 5))).Close()
	zero("skipped")
	if n, _ := tr.FreeErrors(); n != 0 {
		t.Errorf("%d frees failed", n)
	}
	// A device that cannot free: Release has no error to return, so it is kept,
	// and the memory is not counted as ours any more.
	b := must[*Buffer[byte]](t)(Make[byte](scope(tr, "fails", Device(0), nil), 10, Scratch, 0))
	p.failFree = true
	b.Release()
	zero("cannot free")
	if n, err := tr.FreeErrors(); n != 1 || err == nil || tr.Snapshot().FreeErrors != 1 {
		t.Errorf("the error of a free is lost: %d, %v", n, err)
	}
	p.failFree = false
	// One that cannot wipe gives the memory back and says so.
	s := must[*Buffer[byte]](t)(Make[byte](scope(tr, "fails", Device(0), nil), 10, Witness, Secret))
	p.failFill = true
	s.Release()
	zero("cannot wipe")
	if n, _ := tr.FreeErrors(); n != 2 {
		t.Errorf("%d errors are kept, want 2", n)
	}
}
