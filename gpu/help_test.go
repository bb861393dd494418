package gpu_test

import (
	"context"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/gpu/gputest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// bench is a device in use, all of which is given back when the test ends.
type bench struct {
	*gputest.Device
	card *gpu.Card
	use  *gpu.Providers
	sc   *alloc.Scope // on the device
	host *alloc.Scope
}

func set(t testing.TB, total, margin int64) *bench {
	t.Helper()
	if margin == 0 {
		margin = -1
	}
	return setOf(t, gputest.Config{Total: total}, margin)
}

func setOf(t testing.TB, config gputest.Config, margin int64) *bench {
	t.Helper()
	mark := alloc.Marked()
	dev := gputest.New(config)[0]
	use, err := gpu.Use(dev)
	ok(t, err)
	b := &bench{Device: dev, use: use, card: gpu.NewCard(dev, gpu.CardOptions{Providers: use, Margin: margin}),
		sc: alloc.NewScope(alloc.StageOf("test"), dev.Space(), nil), host: alloc.NewScope(alloc.StageOf("test"), alloc.Host, nil)}
	t.Cleanup(func() {
		dev.Go()
		ok(t, b.card.Close())
		ok(t, use.Restore())
		if st := b.card.Registry.Stats(); st.Runs != 0 || st.Failures != 0 {
			t.Errorf("registrations are left: %+v", st)
		}
		if n := b.card.Planner.Claimed(); n != 0 {
			t.Errorf("%d bytes are claimed still", n)
		}
		alloc.Default().TrimPool()
		if st := dev.Stats(); !st.Empty() {
			t.Errorf("the device has not got back everything: %+v", st)
		}
		for _, v := range dev.Violations() {
			t.Error(v)
		}
		ok(t, dev.Close())
		mark.CheckLeaks(t)
	})
	return b
}

func (b *bench) make(t testing.TB, n int64) *alloc.Buffer[byte] {
	t.Helper()
	return must(alloc.Make[byte](b.sc, int(n), alloc.Scratch, alloc.Dirty))(t)
}

func (b *bench) hostBytes(t testing.TB, n int) *alloc.Buffer[byte] {
	t.Helper()
	return must(alloc.Make[byte](b.host, n, alloc.Evaluation, 0))(t)
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

// pages is n pages of memory that is not Go's, and how to give it back.
func pages(t testing.TB, n int) (unsafe.Pointer, func()) {
	b := must(alloc.Make[byte](nil, (n+2)*page, alloc.Scratch, 0))(t)
	at := (b.Addr() + uintptr(page) - 1) &^ (uintptr(page) - 1)
	return unsafe.Pointer(&b.Slice()[at-b.Addr()]), b.Release
}

// until waits for f.
func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !f(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// ref is an alloc.Ref that counts.
type ref struct{ n, ends int }

func (r *ref) Retain()            { r.n++ }
func (r *ref) Release()           { r.ends++ }
func (r *ref) Bytes() int64       { return 7 }
func (r *ref) Space() alloc.Space { return alloc.Host }

// mapped is n pages that are not of Go's heap in any build.
func mapped(t testing.TB, n int) (unsafe.Pointer, func()) {
	t.Helper()
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(n*page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	ok(t, err)
	return p, func() { ok(t, unix.MunmapPtr(p, uintptr(n*page))) }
}
