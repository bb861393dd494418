package gpu_test

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/gpu/gputest"
)

const kib = 1 << 10

// F3: memory that was given back to the stream-ordered pool cannot be seen by
// the other one until that is trimmed.
func TestAllocationSeesWhatTheStreamPoolKeeps(t *testing.T) {
	try := func(t *testing.T, naive bool) error {
		b := set(t, 100*kib, 0)
		if naive {
			b.use.Naive()
		}
		st := must(b.NewStream(false))(t)
		defer func() { ok(t, st.Close()) }()
		p := must(st.AllocAsync(80 * kib))(t)
		ok(t, st.FreeAsync(p))
		ok(t, st.Sync())
		if used, reserved, err := b.Pooled(); err != nil || used != 0 || reserved != 80*kib {
			t.Fatalf("%d of %d, %v", used, reserved, err)
		}
		buf, err := alloc.Make[byte](b.sc, 60*kib, alloc.Scratch, 0)
		if err == nil {
			buf.Release()
		}
		return err
	}
	if err := try(t, true); !errors.Is(err, gpu.ErrNoMemory) {
		t.Fatalf("without the second try: %v", err)
	}
	if err := try(t, false); err != nil {
		t.Fatal(err)
	}
}

// The same the other way around.
func TestScratchSeesWhatThePoolOfBuffersKeeps(t *testing.T) {
	b := set(t, 100*kib, 0)
	alloc.Default().SetPoolLimitOf(b.Space(), 1<<20)
	defer alloc.Default().SetPoolLimitOf(b.Space(), 0)
	b.make(t, 80*kib).Release()
	if b.Stats().Plain == 0 {
		t.Fatal("nothing is pooled: this test shows nothing")
	}
	w := must(b.card.Workers(1, false))(t)
	ok(t, w.Do(ctx, func(w *gpu.Worker) error {
		if _, err := w.Stream().AllocAsync(60 * kib); !errors.Is(err, gpu.ErrNoMemory) {
			t.Errorf("the naive way works: %v", err)
		}
		live := alloc.Default().Live(b.Space())
		s, err := w.Scratch(b.sc, 60*kib, alloc.Scratch)
		if err != nil {
			return err
		}
		if n := alloc.Default().Live(b.Space()) - live; n != 60*kib {
			t.Errorf("%d bytes are counted", n)
		}
		// What this stream has yet to give back is there once it got there.
		ok(t, s.Free())
		if s, err = w.Scratch(b.sc, 90*kib, alloc.Scratch); err != nil {
			return err
		}
		return errors.Join(s.Free(), s.Free())
	}))
	b.card.Reaper.Flush()
	if n := alloc.Default().Live(b.Space()); n != 0 {
		t.Fatalf("%d bytes are counted still", n)
	}
}

func TestDeviceBuffersAreClearedAndWiped(t *testing.T) {
	b := set(t, 1<<20, 0)
	buf := must(alloc.Make[uint64](b.sc, 1000, alloc.Witness, alloc.Secret))(t)
	m := b.Mem(gpu.Ptr(buf.Addr()), 8000)
	for i := range m {
		if m[i] != 0 {
			t.Fatal("not cleared")
		}
		m[i] = 0x77
	}
	if buf.Slice() != nil {
		t.Fatal("Go can see it")
	}
	b.Fail("cuMemFree", 1, gputest.Invalid) // so that it can be looked at
	b.Fail("cuMemFree", 2, gputest.Invalid)
	before, _ := alloc.Default().FreeErrors()
	buf.Release()
	if n, _ := alloc.Default().FreeErrors(); n != before+1 {
		t.Fatal("the failure is not kept")
	}
	for _, v := range b.Mem(find(m, b), 8000) {
		if v == 0x77 {
			t.Fatal("not wiped")
		}
	}
	ok(t, b.Free(find(m, b)))
}

// find finds the device's address of m.
func find(m []byte, b *bench) gpu.Ptr {
	for p := gpu.Ptr(0x7f00_0000_0000); ; p += 256 {
		if x := b.Mem(p, 1); x != nil && unsafe.SliceData(x) == unsafe.SliceData(m) {
			return p
		}
	}
}

func TestPinnedMemory(t *testing.T) {
	b := set(t, 1<<20, 0)
	sc := alloc.NewScope(alloc.StageOf("test"), alloc.Pinned, nil)
	buf := must(alloc.Make[byte](sc, 3<<20, alloc.Scratch, 0))(t)
	s := buf.Slice()
	s[0], s[len(s)-1] = 1, 2
	if !b.Locked(unsafe.Pointer(&s[0])) || !b.Locked(unsafe.Pointer(&s[len(s)-1])) {
		t.Fatal("not page-locked")
	}
	reg := must(b.card.Registry.PinBuffer(b, sc, buf))(t)
	if st := b.card.Registry.Stats(); st.Runs != 0 {
		t.Fatalf("registered twice: %+v", st)
	}
	reg.Release()
	// It outlives the context: nobody may crash by reading a result.
	b.Break()
	ok(t, b.Reset())
	if s[0] != 1 || s[len(s)-1] != 2 {
		t.Fatal("lost")
	}
	buf.Release()
	alloc.Default().TrimPoolOf(alloc.Pinned) // or it is tried again
	b.Fail("cuMemHostAlloc", 1, gputest.NoMemory)
	if _, err := alloc.Make[byte](sc, 1<<20, alloc.Scratch, 0); !errors.Is(err, gpu.ErrNoMemory) {
		t.Fatalf("%v", err)
	}
}

func TestBuffersOfAnEarlierGenerationFreeToNothing(t *testing.T) {
	b := set(t, 100*kib, 0)
	alloc.Default().SetPoolLimitOf(b.Space(), 1<<20)
	defer alloc.Default().SetPoolLimitOf(b.Space(), 0)
	old := b.make(t, 40*kib)
	pooled := b.make(t, 20*kib)
	pooled.Release()
	b.Break()
	ok(t, b.card.Reset())
	now := b.make(t, 40*kib)
	if now.Addr() != old.Addr() {
		t.Fatal("the address did not come back: this test shows nothing")
	}
	old.Release()
	if b.Mem(gpu.Ptr(now.Addr()), 40*kib) == nil {
		t.Fatal("the late free took memory of the new generation")
	}
	// Neither what was pooled nor what came back late is handed out again.
	for _, n := range []int64{20 * kib, 40 * kib} {
		x := b.make(t, n)
		if b.Mem(gpu.Ptr(x.Addr()), n) == nil {
			t.Fatal("an address of the old context is handed out")
		}
		x.Release()
	}
	now.Release()
}

func TestReleaseInAContextThatHasEnded(t *testing.T) {
	b := set(t, 100*kib, 0)
	before, _ := alloc.Default().FreeErrors()
	secret := must(alloc.Make[byte](b.sc, kib, alloc.Witness, alloc.Secret))(t)
	b.Break()
	secret.Release()
	if n, err := alloc.Default().FreeErrors(); n != before {
		t.Fatal(err)
	}
	if _, err := alloc.Make[byte](b.sc, kib, alloc.Scratch, 0); !errors.Is(err, gpu.ErrSticky) {
		t.Fatal(err)
	}
	ok(t, b.card.Reset())
	b.make(t, 100*kib).Release() // all of it is there
}

// A Reset that nobody told of costs whoever allocates next one temporary error.
func TestAllocationAfterAResetOfTheDeviceItself(t *testing.T) {
	b := set(t, 100*kib, 0)
	b.Break()
	ok(t, b.Reset())
	_, err := alloc.Make[byte](b.sc, kib, alloc.Scratch, 0)
	var stale *gpu.StaleError
	if !errors.As(err, &stale) || !stale.Temporary() || !stale.FromStart() || !errors.Is(err, gpu.ErrReset) {
		t.Fatalf("%v", err)
	}
	b.make(t, kib).Release()
}

func TestSeveralDevicesAtOnce(t *testing.T) {
	defer alloc.Marked().CheckLeaks(t)
	ds := gputest.New(gputest.Config{Total: 50 * kib}, gputest.Config{Total: 90 * kib})
	use := must(gpu.Use(ds[0], ds[1]))(t)
	a := must(alloc.Make[byte](alloc.NewScope(0, alloc.Device(0), nil), 40*kib, alloc.Scratch, 0))(t)
	c := must(alloc.Make[byte](alloc.NewScope(0, alloc.Device(1), nil), 80*kib, alloc.Scratch, 0))(t)
	if ds[0].Mem(gpu.Ptr(a.Addr()), 40*kib) == nil || ds[1].Mem(gpu.Ptr(c.Addr()), 80*kib) == nil {
		t.Fatal("the wrong device")
	}
	// With the first out of order, page-locked memory comes by the second.
	ds[0].Break()
	p := must(alloc.Make[byte](alloc.NewScope(0, alloc.Pinned, nil), kib, alloc.Scratch, 0))(t)
	if ds[1].Stats().Pinned != 1 {
		t.Fatal("not by the second")
	}
	p.Release()
	a.Release()
	c.Release()
	ok(t, use.Restore())
	ok(t, use.Restore())
	if _, err := alloc.Make[byte](alloc.NewScope(0, alloc.Device(1), nil), kib, alloc.Scratch, 0); !errors.Is(err, alloc.ErrNoProvider) {
		t.Fatalf("%v", err)
	}
	if _, err := gpu.Use(ds[1], ds[1]); err == nil {
		t.Fatal("a device twice")
	}
	if _, err := gpu.Use(); !errors.Is(err, gpu.ErrNoDevice) {
		t.Fatal("none")
	}
	for _, d := range ds {
		ok(t, d.Close())
	}
}

// A reset takes what alloc's pool keeps, and until the providers are renewed the
// pool does not know: it hands out none of it meanwhile.
func TestPoolHandsOutNothingOfAnEndedContext(t *testing.T) {
	b := set(t, 100*kib, 0)
	alloc.Default().SetPoolLimitOf(b.Space(), 1<<20)
	defer alloc.Default().SetPoolLimitOf(b.Space(), 0)
	b.make(t, 40*kib).Release()
	if b.Stats().Plain == 0 {
		t.Fatal("nothing is pooled: this test shows nothing")
	}
	b.Break()
	ok(t, b.Reset()) // as Card.Reset does, before it renews
	if buf, err := alloc.Make[byte](b.sc, 40*kib, alloc.Scratch, alloc.Dirty); err == nil {
		t.Error("memory of before the reset is handed out after it")
		buf.Release()
	} else if !errors.Is(err, gpu.ErrReset) {
		t.Error(err)
	}
	ok(t, b.use.Renew(b.Device))
	buf := b.make(t, 40*kib)
	ok(t, b.Free(must(b.Alloc(kib))(t))) // the context is in order
	buf.Release()
}
