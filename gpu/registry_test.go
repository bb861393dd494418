package gpu_test

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/gpu/gputest"
)

var page = os.Getpagesize()

// F5: two workers pin the same pages.
func TestPagesPinnedTwiceAreRegisteredOnce(t *testing.T) {
	b := set(t, 1<<20, 0)
	p, free := pages(t, 4)
	defer free()
	n := int64(4 * page)

	// Without the registry the second worker fails.
	ok(t, b.Register(p, n))
	var e *gpu.Error
	if err := b.Register(p, n); !errors.As(err, &e) || e.Code != 712 {
		t.Fatalf("the device takes a page twice: %v", err)
	}
	ok(t, b.Unregister(p))

	before := alloc.Default().Live(alloc.Pinned)
	one := must(b.card.Registry.Pin(b, b.host, p, n))(t)
	two := must(b.card.Registry.Pin(b, b.host, p, n))(t)
	if b.Stats().Registrations != 1 {
		t.Fatalf("%+v", b.Stats())
	}
	if got := alloc.Default().Live(alloc.Pinned) - before; got != n {
		t.Fatalf("%d bytes are counted", got)
	}
	one.Release()
	if !b.Locked(p) {
		t.Fatal("the first to be done took it from the second")
	}
	two.Release()
	if b.Locked(p) || alloc.Default().Live(alloc.Pinned) != before {
		t.Fatal("still registered")
	}
}

func TestOverlappingRangesShareWhatOverlaps(t *testing.T) {
	b := set(t, 1<<20, 0)
	p, free := pages(t, 8)
	defer free()
	at := func(i, n int) *gpu.Registration {
		t.Helper()
		// Neither end on a page: the first and last pages are meant whole.
		return must(b.card.Registry.Pin(b, b.host, unsafe.Add(p, i*page+100), int64(n*page-200)))(t)
	}
	runs := func(want int, bytes int) {
		t.Helper()
		if st := b.card.Registry.Stats(); st.Runs != want || st.Bytes != int64(bytes*page) || b.Stats().Registrations != want {
			t.Fatalf("%+v, want %d runs of %d pages", st, want, bytes)
		}
	}
	mid := at(3, 2)
	all := at(0, 8)
	runs(3, 8)
	left := at(2, 2)
	runs(3, 8)
	mid.Release()
	runs(3, 8)
	all.Release()
	runs(2, 5) // [0,3) and [3,5): left holds a page of each
	var pieces []int64
	ok(t, left.Pieces(0, left.Bytes(), func(off, n int64) error { pieces = append(pieces, off, n); return nil }))
	if want := fmt.Sprint([]int64{0, int64(page) - 100, int64(page) - 100, int64(page) - 100}); fmt.Sprint(pieces) != want {
		t.Fatalf("%v, want %v", pieces, want)
	}
	left.Release()
	runs(0, 0)
}

func TestCopiesAcrossRegistrations(t *testing.T) {
	b := set(t, 1<<20, 0)
	host := b.hostBytes(t, 6*page)
	defer host.Release()
	for i := range host.Slice() {
		host.Slice()[i] = byte(i / 7)
	}
	inner := must(b.card.Registry.Pin(b, b.host, unsafe.Pointer(&host.Slice()[2*page]), int64(page)))(t)
	defer inner.Release()
	whole := must(b.card.Registry.PinBuffer(b, b.host, host))(t)
	defer whole.Release()
	d := b.make(t, host.Bytes())
	defer d.Release()
	st := must(b.NewStream(false))(t)
	defer func() { ok(t, st.Close()) }()
	if err := st.CopyIn(gpu.Ptr(d.Addr()), unsafe.Pointer(&host.Slice()[0]), host.Bytes()); err == nil {
		t.Fatal("the device copies across registrations: this test shows nothing")
	}
	ok(t, whole.CopyIn(st, gpu.Ptr(d.Addr())+5, 5, host.Bytes()-10))
	ok(t, st.Sync())
	clear(host.Slice())
	ok(t, whole.CopyOut(st, 5, gpu.Ptr(d.Addr())+5, host.Bytes()-10))
	ok(t, st.Sync())
	for i, v := range host.Slice() {
		if want := byte(i / 7); i >= 5 && i < 6*page-5 && v != want {
			t.Fatalf("byte %d is %d, want %d", i, v, want)
		}
	}
}

func TestFailedRegistrationsLeaveNothing(t *testing.T) {
	b := set(t, 1<<20, 0)
	p, free := pages(t, 9)
	defer free()
	r := b.card.Registry
	mid := must(r.Pin(b, b.host, unsafe.Add(p, 3*page), int64(page)))(t)
	before := alloc.Default().Live(alloc.Pinned)
	for n := 1; n <= 2; n++ { // the gap before and the gap behind
		b.Fail("cuMemHostRegister", n, gputest.Invalid)
		if _, err := r.Pin(b, b.host, p, int64(9*page)); err == nil {
			t.Fatal("no error")
		}
		if st := r.Stats(); st.Runs != 1 || st.Users != 1 || b.Stats().Registrations != 1 || alloc.Default().Live(alloc.Pinned) != before {
			t.Fatalf("gap %d: %+v", n, st)
		}
	}
	mid.Release()
	for _, bad := range []int64{0, -1, 1 << 50} {
		if _, err := r.Pin(b, b.host, p, bad); err == nil {
			t.Fatalf("%d bytes", bad)
		}
	}
	b.Fail("cuMemHostUnregister", 1, gputest.Invalid)
	b.Fail("cuMemHostUnregister", 2, gputest.Invalid)
	must(r.Pin(b, b.host, p, 1))(t).Release()
	if st := r.Stats(); st.Failures != 1 || st.Last == nil || st.Runs != 0 {
		t.Fatalf("%+v", st)
	}
	// As the device has it still, the error of the next is the device's.
	if _, err := r.Pin(b, b.host, p, 1); err == nil {
		t.Fatal("no error")
	}
	ok(t, b.Unregister(p))
	b.card.Registry = gpu.NewRegistry() // this one has had its failure
}

func TestRegistrationsAfterAReset(t *testing.T) {
	b := set(t, 1<<20, 0)
	p, free := pages(t, 3)
	defer free()
	r := b.card.Registry
	old := must(r.Pin(b, b.host, p, int64(2*page)))(t)
	b.Break()
	ok(t, b.Reset())
	if b.Locked(p) {
		t.Fatal("the reset left it")
	}
	now := must(r.Pin(b, b.host, unsafe.Add(p, page), int64(2*page)))(t)
	old.Release()
	if !b.Locked(unsafe.Add(p, page)) {
		t.Fatal("the late release took pages of the new generation")
	}
	now.Release()
}

// Two devices of one machine share what is page-locked.
func TestDevicesShareRegistrations(t *testing.T) {
	defer alloc.Marked().CheckLeaks(t)
	ds := gputest.New(gputest.Config{}, gputest.Config{})
	p, free := pages(t, 2)
	defer free()
	r := gpu.NewRegistry()
	one := must(r.Pin(ds[0], nil, p, int64(page)))(t)
	two := must(r.Pin(ds[1], nil, p, int64(2*page)))(t)
	if ds[0].Stats().Registrations != 1 || ds[1].Stats().Registrations != 1 {
		t.Fatal("not shared")
	}
	one.Release()
	if !ds[1].Locked(p) {
		t.Fatal("gone")
	}
	two.Release()
	if ds[0].Stats().Registrations+ds[1].Stats().Registrations != 0 {
		t.Fatal("left")
	}
}

func TestRegistryUnderManyWorkers(t *testing.T) {
	b := set(t, 1<<20, 0)
	p, free := pages(t, 16)
	defer free()
	b.Fail("cuMemHostRegister", 50, gputest.Invalid)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 150 {
				from := (w*5 + i*3) % 14
				n := 1 + (w+i)%(16-from)
				g, err := b.card.Registry.Pin(b, b.host, unsafe.Add(p, from*page), int64(n*page))
				if err != nil {
					var e *gpu.Error
					if !errors.As(err, &e) || e.Code != 1 {
						t.Errorf("%v", err)
					}
					continue
				}
				for k := range n {
					if !b.Locked(unsafe.Add(p, (from+k)*page)) {
						t.Error("a page is not locked")
					}
				}
				g.Release()
			}
		})
	}
	wg.Wait()
}

// The model: a count for each page.
func TestRegistryModel(t *testing.T) {
	const total = 12
	p, free := pages(t, total)
	defer free()
	rapid.Check(t, func(t *rapid.T) {
		before := alloc.Default().Live(alloc.Pinned)
		dev := gputest.One(1 << 20)
		r := gpu.NewRegistry()
		type pin struct {
			g        *gpu.Registration
			from, to int
			refs     int
		}
		var pins []*pin
		fail := false
		t.Repeat(map[string]func(*rapid.T){
			"pin": func(t *rapid.T) {
				from := rapid.IntRange(0, total*page-1).Draw(t, "from")
				n := rapid.IntRange(1, total*page-from).Draw(t, "n")
				g, err := r.Pin(dev, nil, unsafe.Add(p, from), int64(n))
				if err != nil {
					if !fail {
						t.Fatal(err)
					}
					fail = false
					return
				}
				pins = append(pins, &pin{g, from / page, (from + n + page - 1) / page, 1})
			},
			"retain": func(t *rapid.T) {
				if len(pins) > 0 {
					q := rapid.SampledFrom(pins).Draw(t, "pin")
					q.g.Retain()
					q.refs++
				}
			},
			"release": func(t *rapid.T) {
				if len(pins) == 0 {
					return
				}
				i := rapid.IntRange(0, len(pins)-1).Draw(t, "i")
				pins[i].g.Release()
				if pins[i].refs--; pins[i].refs == 0 {
					pins = append(pins[:i], pins[i+1:]...)
				}
			},
			"fail": func(*rapid.T) {
				if !fail {
					dev.Fail("cuMemHostRegister", 1, gputest.Invalid)
					fail = true
				}
			},
			"": func(t *rapid.T) {
				// A run is unregistered whole, so a page may stay for its
				// neighbours; it may never be missing, nor stay for nobody.
				var bytes int64
				for i := range total {
					used := false
					for _, q := range pins {
						used = used || q.from <= i && i < q.to
					}
					locked := dev.Locked(unsafe.Add(p, i*page))
					if used && !locked {
						t.Fatalf("page %d is in use and not locked", i)
					}
					if locked {
						bytes += int64(page)
					}
				}
				st := r.Stats()
				if st.Bytes != bytes || alloc.Default().Live(alloc.Pinned)-before != bytes || st.Runs != dev.Stats().Registrations {
					t.Fatalf("%+v; locked are %d bytes", st, bytes)
				}
				if len(pins) == 0 && st.Runs != 0 {
					t.Fatalf("registered for nobody: %+v", st)
				}
			},
		})
		for _, q := range pins {
			for range q.refs {
				q.g.Release()
			}
		}
		if st := r.Stats(); st.Runs != 0 || dev.Stats().Registrations != 0 {
			t.Fatalf("%+v", st)
		}
	})
}

func TestRegistrationReleasedTwice(t *testing.T) {
	b := set(t, 1<<20, 0)
	buf := b.hostBytes(t, 100)
	g := must(b.card.Registry.PinBuffer(b, b.host, buf))(t)
	buf.Release() // the registration keeps it
	g.Retain()
	g.Release()
	g.Release()
	thrown := func(f func()) (err error) {
		defer func() { err, _ = recover().(error) }()
		f()
		return nil
	}
	var d *alloc.DoubleReleaseError
	if err := thrown(g.Release); !errors.As(err, &d) {
		t.Fatalf("%v", err)
	}
	var u *alloc.UseAfterFreeError
	if err := thrown(g.Retain); !errors.As(err, &u) {
		t.Fatalf("%v", err)
	}
}
