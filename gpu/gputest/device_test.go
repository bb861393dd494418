package gputest_test

import (
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/gpu/gputest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestThePoolsDoNotSeeEachOther(t *testing.T) {
	d := gputest.One(100 << 10)
	st, err := d.NewStream(false)
	ok(t, err)
	p, err := st.AllocAsync(60 << 10)
	ok(t, err)
	ok(t, st.FreeAsync(p))
	ok(t, st.Sync())
	if _, err := d.Alloc(60 << 10); !errors.Is(err, gpu.ErrNoMemory) {
		t.Fatal(err)
	}
	if err := st.FreeAsync(p); err == nil {
		t.Fatal("freed twice")
	}
	ok(t, d.Trim(10<<10))
	if used, reserved, err := d.Pooled(); used != 0 || reserved != 10<<10 || err != nil {
		t.Fatal(used, reserved, err)
	}
	q, err := d.Alloc(60 << 10)
	ok(t, err)
	if _, err := st.AllocAsync(60 << 10); !errors.Is(err, gpu.ErrNoMemory) {
		t.Fatal(err)
	}
	ok(t, d.Free(q))
	if err := d.Free(q); err == nil {
		t.Fatal("freed twice")
	}
	ok(t, st.Close())
	if s := d.Stats(); !s.Empty() {
		t.Fatalf("%+v", s)
	}
	ok(t, d.Close())
}

func TestAWildAddressEndsTheContext(t *testing.T) {
	d := gputest.One(100 << 10)
	st, err := d.NewStream(false)
	ok(t, err)
	ev, err := d.NewEvent(false)
	ok(t, err)
	ok(t, st.Fill(0x42, 0, 8))
	_ = st.Record(ev)
	if err := st.Sync(); !errors.Is(err, gpu.ErrSticky) {
		t.Fatal(err)
	}
	for _, err := range []error{ev.Sync(), st.Record(ev), d.Trim(0), d.Sticky()} {
		if !errors.Is(err, gpu.ErrSticky) {
			t.Fatal(err)
		}
	}
	ok(t, d.Reset())
	if err := st.Fill(0x42, 0, 8); !errors.Is(err, gpu.ErrSticky) {
		t.Fatal(err)
	}
	ok(t, errors.Join(st.Close(), ev.Close(), d.Sticky(), d.Trim(0)))
	if d.Generation() != 1 {
		t.Fatal(d.Generation())
	}
	ok(t, d.Close())
}

// A late free of an earlier generation does not take the new owner's memory.
func TestAnAddressOfTwoGenerations(t *testing.T) {
	d := gputest.One(100 << 10)
	old, err := d.Alloc(1 << 10)
	ok(t, err)
	d.Break()
	ok(t, d.Reset())
	now, err := d.Alloc(1 << 10)
	ok(t, err)
	if now != old {
		t.Fatal("addresses do not come back")
	}
	ok(t, d.Free(old))
	if d.Mem(now, 1<<10) == nil {
		t.Fatal("gone")
	}
	ok(t, d.Free(now))
	if d.Mem(now, 1<<10) != nil {
		t.Fatal("still there")
	}
	ok(t, d.Close())
}

func TestUnregisteringUnderACopyIsNoticed(t *testing.T) {
	d := gputest.One(100 << 10)
	st, err := d.NewStream(false)
	ok(t, err)
	p, err := d.Alloc(64)
	ok(t, err)
	host := make([]byte, 64)
	at := unsafe.Pointer(&host[0])
	ok(t, d.Register(at, 64))
	if err := d.Register(at, 64); err == nil {
		t.Fatal("a page twice")
	}
	d.Hold()
	ok(t, st.CopyIn(p, at, 64))
	ok(t, d.Unregister(at))
	if len(d.Violations()) != 1 {
		t.Fatal(d.Violations())
	}
	d.Go()
	ok(t, st.Close())
	ok(t, d.Close())
}

// The second allocation from now has no memory; the others do.
func ExampleDevice_Fail() {
	dev := gputest.One(1 << 20)
	dev.Fail("cuMemAlloc", 2, gputest.NoMemory)
	for range 3 {
		_, err := dev.Alloc(1000)
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// cuMemAlloc(1000 bytes): CUDA_ERROR_OUT_OF_MEMORY (2): out of memory
	// <nil>
}
