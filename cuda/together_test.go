package cuda

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/stages"
)

// openEngines are engines on cards of a configuration, closed at the test's end.
func openEngines(t *testing.T, id curve.ID, config emulator.Config, opts ...Option) (out []*Engine) {
	t.Helper()
	onlyEmulated(t)
	leakFree(t)
	d, err := Open(emulator.Need(t, config))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		clean(t)
	})
	for _, c := range d.Cards() {
		e, err := New(c, id, host(t, id), append(append([]Option{}, small...), opts...)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
		out = append(out, e)
	}
	return out
}

// onCard is what of a kept vector is in the card's memory.
func onCard(t *testing.T, e *Engine, p curve.Points) []byte {
	t.Helper()
	k, err := e.keys.hold(ctx(), p)
	if err != nil || k == nil {
		t.Fatalf("%s: %v", e.Name(), err)
	}
	defer e.keys.letGo(k)
	out, err := alloc.Make[byte](scope().In(alloc.Pinned), len(p.Data), alloc.Scratch, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Release()
	ws, err := e.card.Workers(1, false)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close() //nolint:errcheck // what it could say is said by the work
	err = ws.Do(ctx(), func(w *gpu.Worker) error {
		return errors.Join(w.Stream().CopyOut(unsafe.Pointer(unsafe.SliceData(out.Slice())), k.mem.ptr(), int64(len(p.Data))), w.Stream().Sync())
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(out.Slice())
}

// pointsOf are n points of no meaning.
func pointsOf(id curve.ID, n int) curve.Points {
	data := make([]byte, n*id.PointBytes(curve.InG1))
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	return curve.Points{Curve: id, Group: curve.InG1, Data: data}
}

// TestKeyIsReadOnce: however many cards there are, each byte of a key is read
// once, page-locked once, and is on every card.
func TestKeyIsReadOnce(t *testing.T) {
	id := curve.BN254
	es := openEngines(t, id, emulator.Config{Cards: make([]emulator.Card, 3)}, Chunk(4096))
	one, two := pointsOf(id, 1000), pointsOf(id, 7)
	others := []any{es[1], es[2]}
	before := alloc.Default().Live(alloc.Pinned)
	alloc.Default().ResetPeaks()
	drops, errs := es[0].KeepWith(ctx(), others, one, curve.Points{Curve: id}, two)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if peak := alloc.Default().Peak(alloc.Pinned) - before; peak > 2*4096 {
		t.Errorf("%d bytes were page-locked for three cards, two pieces of 4096 would do", peak)
	}
	for i, e := range es {
		if !e.Resident(one) || !e.Resident(two) {
			t.Errorf("%s lacks points", e.Name())
		}
		if up := e.Stats().Up; up != int64(len(one.Data)+len(two.Data)) {
			t.Errorf("%s: %d bytes up", e.Name(), up)
		}
		for _, p := range []curve.Points{one, two} {
			if !bytes.Equal(onCard(t, e, p), p.Data) {
				t.Errorf("%s has other points", e.Name())
			}
		}
		drops[i]()
		drops[i]()
		if n := e.keys.bytes(); n != 0 {
			t.Errorf("%s: %d bytes are left", e.Name(), n)
		}
	}
	// The reading itself says how much it read.
	r := newReading(es[0], []part{{0, one.Data}}, 3)
	done := make(chan error, 3)
	var kept []*keptPoints
	for n, e := range es {
		k := e.keys.add(r.kept(&keptPoints{id: idOfPoints(one), bytes: int64(len(one.Data))}, n))
		kept = append(kept, k)
		go func() {
			_, err := e.keys.bring(ctx(), k)
			r.members[n].leave()
			done <- err
		}()
	}
	r.run(ctx())
	r.close()
	if err := errors.Join(<-done, <-done, <-done); err != nil || r.read != int64(len(one.Data)) {
		t.Errorf("%d bytes were read for three cards, the points have %d: %v", r.read, len(one.Data), err)
	}
	for i, e := range es {
		e.keys.drop(kept[i])
	}
}

// TestKeyOnCardsThatCannot: a card with no room and one that is lost in the middle
// hold up nobody; what was given up is brought again by itself.
func TestKeyOnCardsThatCannot(t *testing.T) {
	id := curve.BN254
	p := pointsOf(id, 3000)
	es := openEngines(t, id, emulator.Config{NoRevival: true, Cards: []emulator.Card{{}, {Total: 192 << 10}, {}}}, Chunk(4096))
	drops, errs := es[0].KeepWith(ctx(), []any{es[1], es[2], "no engine"}, p)
	if errs[0] != nil || errs[1] != nil || errs[2] != nil || errs[3] == nil || drops[3] != nil {
		t.Fatalf("%v", errs)
	}
	if !es[0].Resident(p) || es[1].Resident(p) || !es[2].Resident(p) {
		t.Error("who has the points?")
	}
	es[0].forget()
	if !bytes.Equal(onCard(t, es[0], p), p.Data) {
		t.Error("points that were brought again are others")
	}
	for _, d := range drops[:3] {
		d()
	}
	emulator.Fault("copy", 8, 700, true)
	drops, errs = es[0].KeepWith(ctx(), []any{es[1], es[2]}, p)
	emulator.Clear()
	for i, e := range es {
		if (errs[i] != nil) != (e.Lost() != nil) || (drops[i] == nil) != (errs[i] != nil) {
			t.Errorf("%s: %v, lost: %v", e.Name(), errs[i], e.Lost())
		}
		if e.Lost() == nil && i != 1 && !bytes.Equal(onCard(t, e, p), p.Data) {
			t.Errorf("%s has other points", e.Name())
		}
		if drops[i] != nil {
			drops[i]()
		}
	}
	if es[0].Lost() == nil && es[2].Lost() == nil {
		t.Error("no card is lost")
	}
}

// TestKeepOfASet: the stages have a set's key and the matrices of its circuit read
// once; a call that was given up is an error of each.
func TestKeepOfASet(t *testing.T) {
	id := curve.BN254
	k := key(t, id, 60, 40, keyKinds["coset folded"])
	es := openEngines(t, id, emulator.Config{Cards: make([]emulator.Card, 3)}, Chunk(4096))
	set, err := stages.Spread(nil, es[0], es[1], es[2])
	if err != nil {
		t.Fatal(err)
	}
	p := prover(k, set)
	p.B2 = stages.Either(set, host(t, id))
	copyOf := *k.pk // keeps end with it, and not with the key that tests share
	p.Key = &copyOf
	before := alloc.Default().Live(alloc.Pinned)
	alloc.Default().ResetPeaks()
	if err := stages.Keep(ctx(), p); err != nil {
		t.Fatal(err)
	}
	if peak := alloc.Default().Peak(alloc.Pinned) - before; peak > 2*4096 {
		t.Errorf("%d bytes were page-locked for three cards, two pieces of 4096 would do: what is there once is read more than once", peak)
	}
	sys, _ := k.toy.r1cs.System()
	for _, e := range es {
		for _, v := range []curve.Points{k.pk.H, k.pk.L.Points, k.pk.A.Points, k.pk.B1.Points, k.pk.B2.Points} {
			if len(v.Data) > 0 && !e.Resident(v) {
				t.Errorf("%s lacks points", e.Name())
			}
		}
		for i, m := range matricesOf(sys) {
			x := e.keys.take(idOfMatrix(m))
			if x == nil {
				t.Errorf("%s lacks matrix %d", e.Name(), i)
				continue
			}
			e.keys.letGo(x)
		}
		if up, want := e.Stats().Up, es[0].Stats().Up; up != want || up == 0 {
			t.Errorf("%s: %d bytes up, %d to the first card", e.Name(), up, want)
		}
	}
	ended, cancel := context.WithCancel(ctx())
	cancel()
	q := pointsOf(id, 100)
	_, errs := es[0].KeepWith(ended, []any{es[1], es[2]}, q)
	for i := range es {
		if !errors.Is(errs[i], context.Canceled) {
			t.Errorf("%v", errs[i])
		}
	}
	for range es { // each card has proofs, of what was kept there
		if out := proveOne(t, p, k, 1); out.Attempts != 1 || !strings.Contains(out.Staged, "evaluated there") {
			t.Errorf("%+v", out)
		}
	}
	es[1].forget() // and brings matrices by itself that it has given up
	es[1].restoreSystems(ctx())
	one := *p
	one.Arith, one.B2 = es[1], nil
	if out := proveOne(t, &one, k, 2); !strings.Contains(out.Staged, "evaluated there") {
		t.Errorf("%+v", out)
	}
	wrong := sys
	wrong.Wires = 3
	drops, errs := es[0].KeepSystemWith(ctx(), []any{es[1], 5}, wrong)
	for i := range errs {
		if errs[i] == nil || drops[i] != nil {
			t.Errorf("engine %d keeps matrices of wires that there are not: %v", i, errs[i])
		}
	}
}

// TestKeyWithoutPinned: where page-locked memory to read through ends in the middle,
// each card goes on alone, through what it has itself.
func TestKeyWithoutPinned(t *testing.T) {
	id := curve.BN254
	p, q := pointsOf(id, 1000), pointsOf(id, 500)
	const limit = 1 << 20
	es := openEngines(t, id, emulator.Config{Cards: make([]emulator.Card, 3), Pinned: limit}, Chunk(4096), Streams(1))
	for _, e := range es { // of which each has its own from now on
		drop, err := e.Keep(ctx(), q)
		if err != nil {
			t.Fatal(err)
		}
		defer drop()
	}
	s, err := emulator.Stats()
	if err != nil {
		t.Fatal(err)
	}
	free := int64(limit)
	for _, c := range s.Cards {
		free -= c.Pinned + c.Registered
	}
	for _, left := range []int64{4096, 0} {
		rest, err := es[0].card.Pinned(es[0].card.own, free-left, alloc.Scratch)
		if err != nil {
			t.Fatal(err)
		}
		if more, err := es[0].card.Pinned(es[0].card.own, left+1, alloc.Scratch); !errors.Is(err, gpu.ErrNoMemory) {
			more.Release()
			t.Fatalf("more than %d bytes are left: %v", left, err)
		}
		again := againOf(es)
		drops, errs := es[0].KeepWith(ctx(), []any{es[1], es[2]}, p)
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
		// Every operation is tried twice, which would bring the points as well.
		if n := againOf(es) - again; n != 0 {
			t.Errorf("with %d bytes left: %d operations failed at first, of none that should", left, n)
		}
		rest.Release()
		for i, e := range es {
			if !bytes.Equal(onCard(t, e, p), p.Data) {
				t.Errorf("%s has other points", e.Name())
			}
			drops[i]()
		}
	}
}

// againOf is how often engines have tried something again.
func againOf(es []*Engine) (n int64) {
	for _, e := range es {
		n += e.stats.again.Load()
	}
	return n
}
