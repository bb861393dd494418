package cuda

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// TestPinnedOfSmallCircuits: a circuit of a few kilobytes does not page-lock what
// a large one would.
func TestPinnedOfSmallCircuits(t *testing.T) {
	id := curve.BN254
	k := key(t, id, 300, 200, keyKinds["coset folded"])
	e := newEngine(t, id, emulator.Config{}, Chunk(defaults().chunk))
	base := alloc.Default().Live(alloc.Pinned)
	alloc.Default().ResetPeaks()
	p := prover(k, e)
	for seed := range 3 {
		proveOne(t, p, k, seed)
	}
	pinned := alloc.Default().Snapshot().Space(alloc.Pinned)
	if peak := pinned.Peak - base; peak <= 0 || peak > 2*alloc.MiB {
		t.Errorf("%d bytes of page-locked memory for a circuit of 300 constraints", peak)
	}
}

// TestPinnedGrows: the buffers of a belt are as large as what came needed, at most
// those of Chunk, and stay when they are.
func TestPinnedGrows(t *testing.T) {
	const chunk = 1 << 20
	e := newEngine(t, curve.BN254, emulator.Config{}, Chunk(chunk))
	b, err := newBelt(e)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	dst, err := alloc.Make[byte](scope().In(e.card.space), 3*chunk, alloc.Scratch, alloc.Dirty)
	if err != nil {
		t.Fatal(err)
	}
	defer dst.Release()
	at0 := gpu.Ptr(dst.Addr())
	send := func(n int) {
		t.Helper()
		src := bytes.Repeat([]byte{byte(n), 1, 2, byte(n >> 8), 4}, n/5+1)[:n]
		if err := b.carry(ctx(), at0, src); err != nil {
			t.Fatal(err)
		}
		if err := b.drain(); err != nil {
			t.Fatal(err)
		}
		back := make([]byte, n)
		for at := 0; at < n; {
			_, p, err := b.pin(min(chunk, int64(n-at)))
			if err != nil {
				t.Fatal(err)
			}
			k := min(len(p), n-at)
			if err := b.stream.CopyOut(unsafe.Pointer(unsafe.SliceData(p)), at0+gpu.Ptr(at), int64(k)); err != nil {
				t.Fatal(err)
			}
			if err := b.drain(); err != nil {
				t.Fatal(err)
			}
			at += copy(back[at:], p[:k])
		}
		if !bytes.Equal(back, src) {
			t.Fatalf("%d bytes came otherwise than they went", n)
		}
	}
	for _, s := range []struct{ n, size int }{{1, pinMin}, {pinMin, pinMin}, {pinMin + 1, 2 * pinMin}, {chunk/2 + 1, chunk}, {3 * chunk, chunk}, {5, chunk}} {
		send(s.n) // through one of them there, and through the other one back
		for range 2 {
			send(s.n)
		}
		for i, p := range b.pins {
			if p.Len() != s.size {
				t.Errorf("after %d bytes buffer %d has %d, want %d", s.n, i, p.Len(), s.size)
			}
		}
	}
	before := alloc.Default().Snapshot().Space(alloc.Pinned).Allocated
	for _, n := range []int{7, 3 * chunk, chunk, 100 << 10} {
		send(n)
	}
	if after := alloc.Default().Snapshot().Space(alloc.Pinned).Allocated; after != before {
		t.Errorf("%d bytes were page-locked anew", after-before)
	}
}
