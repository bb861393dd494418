package alloc

import (
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestLeaseEndsEachReferenceOnce(t *testing.T) {
	tr := newTracker()
	sc := scope(tr, "lease", Host, nil)
	a := must[*Buffer[byte]](t)(Make[byte](sc, 100, Scratch, 0))
	b := must[*Buffer[byte]](t)(Make[byte](sc, 200, Scratch, 0))
	l := NewLease(a, nil, b)
	if a.Refs() != 2 || b.Refs() != 2 || l.Bytes()[Host] != 300 || !l.Holds(a) {
		t.Fatal("a lease must retain")
	}
	a.Release()
	b.Release()
	if !l.Drop(a) || l.Drop(a) || l.Holds(a) {
		t.Fatal("Drop must end exactly one reference")
	}
	if tr.Live(Host) != 200 {
		t.Fatalf("%d bytes are live after an early release", tr.Live(Host))
	}
	l.Done()
	l.Done()
	if l.Drop(b) || tr.Live(Host) != 0 || !l.Bytes().IsZero() {
		t.Fatal("a lease that is done holds something")
	}
}

func TestAdoptTakesOver(t *testing.T) {
	a := must[*Buffer[byte]](t)(Make[byte](scope(newTracker(), "lease", Host, nil), 1, Scratch, 0))
	l := Adopt(a)
	if a.Refs() != 1 {
		t.Fatal("Adopt must not retain")
	}
	l.Done()
	if a.Refs() != 0 {
		t.Fatal("Done must release")
	}
}

func TestLeaseProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := newTracker()
		n := rapid.IntRange(1, 8).Draw(t, "buffers")
		refs := make([]Ref, n)
		held := make([]int, n)
		l := new(Lease)
		for i := range refs {
			b, err := Make[byte](scope(tr, "lease", Host, nil), i+1, Scratch, 0)
			if err != nil {
				t.Fatal(err)
			}
			refs[i] = b
		}
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, 2*n-1), 0, 30).Draw(t, "ops") {
			if i < n {
				l.Add(refs[i])
				held[i]++
			} else if ok := l.Drop(refs[i-n]); ok != (held[i-n] > 0) {
				t.Fatalf("Drop says %v with %d held", ok, held[i-n])
			} else if ok {
				held[i-n]--
			}
		}
		for i, r := range refs {
			if got := r.(*Buffer[byte]).Refs(); got != held[i]+1 {
				t.Fatalf("buffer %d has %d references, want %d", i, got, held[i]+1)
			}
			r.Release()
		}
		l.Done()
		if tr.Live(Host) != 0 {
			t.Fatal("something is live")
		}
	})
}

func TestLeaseEndedByMany(t *testing.T) {
	for range 50 {
		tr := newTracker()
		var refs []Ref
		for range 20 {
			refs = append(refs, must[*Buffer[byte]](t)(Make[byte](scope(tr, "lease", Host, nil), 64, Scratch, 0)))
		}
		l := Adopt(refs...)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := g; i < len(refs); i += 3 {
					l.Drop(refs[i])
				}
				l.Done()
			})
		}
		wg.Wait()
		if tr.Live(Host) != 0 {
			t.Fatalf("%d bytes are live", tr.Live(Host))
		}
	}
}
