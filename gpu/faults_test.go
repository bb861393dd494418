package gpu_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/gpu/gputest"
)

// item is a small proof: a vector is brought to the device as its tier says,
// doubled there with the help of scratch, and copied back.
type item struct {
	b  *bench
	ws *gpu.Workers
	n  int
}

func (it *item) do() (err error) {
	b := it.b
	host, err := alloc.Make[uint32](b.host, it.n, alloc.Evaluation, 0)
	if err != nil {
		return err
	}
	defer host.Release()
	for i := range host.Slice() {
		host.Slice()[i] = uint32(i)
	}
	out, err := alloc.Make[uint32](b.host.In(alloc.Pinned), it.n, alloc.Evaluation, alloc.Dirty)
	if err != nil {
		return err
	}
	defer out.Release()

	var dev *alloc.Buffer[uint32]
	take := func(c *gpu.Claim) error {
		if c.Decision().Chosen().Bytes == 0 {
			return nil
		}
		dev, err = gpu.TakeBuffer[uint32](c, b.sc, it.n, alloc.Evaluation, alloc.Dirty)
		return err
	}
	claim, err := b.card.Planner.Place(gpu.Request{Tiers: []gpu.Tier{{Holds: "a", Bytes: host.Bytes()}, {Holds: "nothing"}}}, take)
	if err != nil {
		return err
	}
	defer claim.Close()
	if dev == nil {
		if dev, err = alloc.Make[uint32](b.sc, it.n, alloc.Evaluation, alloc.Dirty); err != nil {
			return err
		}
	}
	defer dev.Release()

	ready := make(chan error, 1)
	var gen uint64
	err = it.ws.At(0).Do(ctx, func(w *gpu.Worker) error { // upload
		gen = w.Generation()
		reg, err := b.card.Registry.PinBuffer(b, b.host, host)
		if err != nil {
			return err
		}
		err = reg.CopyIn(w.Stream(), gpu.Ptr(dev.Addr()), 0, host.Bytes())
		dev.Retain()
		b.card.Reaper.After(w.Stream(), func(err error) { ready <- err }, reg, dev)
		return err
	})
	if err == nil {
		err = <-ready
	}
	if err != nil {
		b.card.Reaper.Flush()
		return err
	}
	err = it.ws.At(1).Do(ctx, func(w *gpu.Worker) error {
		if err := w.Check(gen, "a"); err != nil {
			return err
		}
		mod, err := b.Load("m", nil)
		if err != nil {
			return err
		}
		f, err := mod.Function("double")
		if err == nil {
			err = it.compute(w, f, dev, out)
		}
		if e := w.Stream().Sync(); err == nil {
			err = e
		}
		if e := mod.Close(); err == nil {
			err = e
		}
		return err
	})
	b.card.Reaper.Flush()
	if err != nil {
		return err
	}
	for i, v := range out.Slice() {
		if v != 2*uint32(i) {
			return fmt.Errorf("WRONG: place %d is %d", i, v)
		}
	}
	return nil
}

func (it *item) compute(w *gpu.Worker, f gpu.Function, dev, out *alloc.Buffer[uint32]) error {
	s, err := w.Scratch(it.b.sc, dev.Bytes(), alloc.Scratch)
	if err != nil {
		return err
	}
	st, p := w.Stream(), gpu.Ptr(dev.Addr())
	out.Retain()
	w.Hold(out)
	dev.Retain()
	w.Hold(dev)
	err = st.Copy(s.Ptr, p, dev.Bytes())
	if err == nil {
		err = st.Launch(f, gpu.Linear(int64(it.n), 32), w.Args().Reset().Ptr(s.Ptr).Ptr(p).U32(uint32(it.n)))
	}
	if err == nil {
		err = st.CopyOut(unsafe.Pointer(&out.Slice()[0]), p, out.Bytes())
	}
	return errors.Join(err, s.Free())
}

// Every call of an item fails once, in each way: the item is right after a
// retry or says why not, nothing stays behind, and the next one is right.
func TestEveryCallFailsOnce(t *testing.T) {
	for _, kind := range []gputest.Fault{gputest.NoMemory, gputest.Invalid, gputest.Sticky} {
		t.Run([]string{"memory", "invalid", "sticky"}[kind], func(t *testing.T) {
			b := set(t, 64*kib, 4*kib)
			b.Define("double", func(c *gputest.Call) error {
				n := int64(c.U32(2)) * 4
				from, to := c.Mem(0, n), c.Mem(1, n)
				if from == nil || to == nil {
					return errors.New("a wild address")
				}
				for i := int64(0); i < n; i += 4 {
					binary.NativeEndian.PutUint32(to[i:], 2*binary.NativeEndian.Uint32(from[i:]))
				}
				return nil
			})
			ws := must(b.card.Workers(2, false))(t)
			it := &item{b: b, ws: ws, n: 3000}
			ok(t, it.do()) // makes streams
			before := b.Calls("")
			ok(t, it.do())
			calls := b.Calls("") - before
			alloc.Default().TrimPoolOf(alloc.Pinned)
			rest := b.Stats()
			live := alloc.Default().Live(b.Space()) + alloc.Default().Live(alloc.Pinned)
			if calls < 15 {
				t.Fatalf("an item makes %d calls: this test shows little", calls)
			}
			var right, failed int
			for n := 1; n <= calls+2; n++ {
				b.Fail("", n, kind)
				err := it.do()
				if errors.Is(err, gpu.ErrSticky) {
					ok(t, b.card.Reset())
				}
				if err == nil {
					right++
				} else {
					failed++
					var e *gpu.Error
					if !errors.As(err, &e) || e.Name == "" {
						t.Errorf("call %d: %v", n, err)
					}
				}
				b.Heal()
				if b.Sticky() != nil { // met where nobody needed an answer
					ok(t, b.card.Reset())
				}
				if err := it.do(); err != nil {
					t.Fatalf("after a failure of call %d: %v", n, err)
				}
				if got := alloc.Default().Live(b.Space()) + alloc.Default().Live(alloc.Pinned); got != live {
					t.Errorf("call %d: %d bytes are counted, %d before", n, got, live)
				}
				alloc.Default().TrimPoolOf(alloc.Pinned) // debug builds keep some for a while
				st := b.Stats()
				if st.Events, st.Reserved = rest.Events, rest.Reserved; st != rest {
					t.Fatalf("call %d: %+v, before %+v", n, st, rest)
				}
			}
			t.Logf("%d calls: right in spite of it %d, failed with an error %d", calls, right, failed)
			if failed == 0 || right == 0 {
				t.Error("all the same: the faults were not met")
			}
		})
	}
}
