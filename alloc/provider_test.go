package alloc

import (
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

// What got into the pool while another provider was registered is not handed out
// as that one's.
func TestPoolGivesNothingOfAnotherProvider(t *testing.T) {
	tr := newTracker()
	one, two := newTestProvider(1<<20), newTestProvider(1<<20)
	_, _ = tr.Register(Device(0), one)
	tr.SetPoolLimitOf(Device(0), 1<<20)
	sc := scope(tr, "device", Device(0), nil)
	must[*Buffer[byte]](t)(Make[byte](sc, 5000, Scratch, Dirty)).Release()
	if Debug {
		t.Skip("freed memory waits in quarantine first")
	}
	if tr.Pooled(Device(0)) == 0 {
		t.Fatal("nothing is pooled: this test shows nothing")
	}
	var p Provider = two
	tr.providers[Device(0)].Store(&p) // Register, and a block that comes after it has trimmed the pool
	b := must[*Buffer[byte]](t)(Make[byte](sc, 5000, Scratch, Dirty))
	if one.inUse() != 0 || two.inUse() == 0 {
		t.Errorf("in use: %d of the old, %d of the new", one.inUse(), two.inUse())
	}
	b.Release()
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
