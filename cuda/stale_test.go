package cuda

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/groth16"
)

// unstaged is Prestage that finds no room on the card, so that QuotientOf brings
// everything.
func unstaged(t *testing.T, e *Engine, d curve.Domain, a, b *alloc.Buffer[curve.Scalar]) held {
	t.Helper()
	e.card.mem.setMargin(1 << 40)
	v, err := e.Prestage(ctx(), scope(), d, curve.Coset, a, b, nil)
	e.card.mem.setMargin(0)
	if err != nil {
		t.Fatal(err)
	}
	if v.(*evaluations).tier.Tier != 2 {
		t.Fatal("the vectors have found room")
	}
	return v
}

// TestFetchFails: a copy of a vector that QuotientOf brings fails. What is on the
// card of it then is not taken for the vector at the next try.
func TestFetchFails(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	for _, packed := range []bool{true, false} {
		t.Run(fmt.Sprintf("packed %v", packed), func(t *testing.T) { fetchFails(t, id, packed) })
	}
}

func fetchFails(t *testing.T, id curve.ID, packed bool) {
	e := newEngine(t, id, emulator.Config{}, Packing(packed), func(o *options) { o.packFrom = min(o.packFrom, 8) })
	faultsAllowed.Store(true)
	d, err := groth16.NewDomain(id, 1<<13, curve.Coset)
	if err != nil {
		t.Fatal(err)
	}
	a, b := buffer(t, mixture(id, d.Size(), 80, 3)), buffer(t, mixture(id, d.Size(), 80, 4))
	defer a.Release()
	defer b.Release()
	quotientOf := func() ([]curve.Scalar, error) {
		v := unstaged(t, e, d, a, b)
		defer releaseAll(v)
		q, err := e.QuotientOf(ctx(), scope(), v)
		emulator.Clear()
		if err != nil {
			return nil, err
		}
		defer releaseAll(q)
		return fetchVector(t, e, q.(*quotient).h), nil
	}
	want, err := quotientOf()
	if err != nil {
		t.Fatal(err)
	}
	base := left(t, e)
	right := 0
	for _, f := range []struct {
		call string
		code int
	}{{"cuMemcpyHtoDAsync", codeUnknown}, {"cuEventRecord", codeUnknown}, {"cuStreamWaitEvent", codeUnknown},
		{"cuLaunchKernel", codeUnknown}, {"cuMemAlloc", codeNoMemory}, {"cuMemAllocAsync", codeNoMemory}} {
		for n := 0; n < 12; n += 3 {
			emulator.Fault(f.call, n+1, f.code, false)
			if f.code == codeNoMemory { // and the try after the pools were trimmed, and the one that follows
				for range 2 {
					emulator.Fault(f.call, n+2, f.code, false)
					emulator.Fault(f.call, n+3, f.code, false)
				}
			}
			got, err := quotientOf()
			if err == nil {
				right++
				if !slices.Equal(got, want) {
					t.Errorf("packed %v, %s %d fails: the quotient is wrong", packed, f.call, n+1)
				}
			}
			e.Flush()
			if now := left(t, e); now != base {
				t.Fatalf("packed %v, %s %d fails (%v): what is left changes from %+v to %+v", packed, f.call, n+1, err, base, now)
			}
		}
	}
	if right == 0 {
		t.Error("no quotient came through, so this test shows nothing")
	}
}

// TestKeptPointsAfterReset: an operation that waits while another's error has the
// card reset does not read points where they were before.
func TestKeptPointsAfterReset(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	e := newEngine(t, id, emulator.Config{})
	p := points(t, id, curve.InG1, 300)
	drop, err := e.Keep(ctx(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer drop()
	w := scalars(id, 300, 3, 3, 1)
	x := &terms{q: curve.Query{Points: p}, host: w}
	if x.kept, err = e.keys.hold(ctx(), p); err != nil || x.kept == nil {
		t.Fatal(x.kept, err)
	}
	emulator.Fault("cuMemGetInfo", 1, codeAddress, true)
	if _, _, err := e.card.Memory(); !errors.Is(err, gpu.ErrSticky) {
		t.Fatal(err)
	}
	if err := e.card.revive(); err != nil {
		t.Fatal(err)
	}
	_, err = e.msm(ctx(), scope(), "test", mMSM1, curve.InG1, x, false)
	var known *Error
	if !errors.As(err, &known) || !known.Temporary() || !errors.Is(err, gpu.ErrReset) {
		t.Errorf("the sum of points that are gone: %v", err)
	}
	e.keys.letGo(x.kept)
	want, err := host(t, id).MSMG1(ctx(), scope(), x.q, w, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := e.MSMG1(ctx(), scope(), x.q, w, nil); err != nil || got != want {
		t.Errorf("the next sum differs (%v)", err)
	}
}

// TestPartsAfterFetch: memory gets short while vectors are brought, and what is
// left does for parts of them. What the tries before have brought is not lost.
func TestPartsAfterFetch(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	e := newEngine(t, id, emulator.Config{})
	d, err := groth16.NewDomain(id, 1<<14, curve.Coset)
	if err != nil {
		t.Fatal(err)
	}
	a, b := buffer(t, scalars(id, d.Size(), 4, 4, 3)), buffer(t, scalars(id, d.Size(), 4, 4, 4))
	defer a.Release()
	defer b.Release()
	want := slices.Clone(a.Slice())
	if err := host(t, id).Quotient(ctx(), scope(), d, curve.Coset, want, slices.Clone(b.Slice()), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := e.loadNTT(); err != nil {
		t.Fatal(err)
	}
	// Tables first, so that no allocation but the vectors' comes here.
	x := slices.Clone(a.Slice())
	if err := e.Quotient(ctx(), scope(), d, curve.Coset, x, slices.Clone(b.Slice()), nil); err != nil {
		t.Fatal(err)
	}
	if err := e.card.trim(); err != nil {
		t.Fatal(err)
	}
	base := left(t, e)
	v := unstaged(t, e, d, a, b)
	for n := 2; n <= 5; n++ { // a is brought; then b is not, with and without a trimmed pool, at two tries
		emulator.Fault("cuMemAlloc", n, codeNoMemory, false)
	}
	q, err := e.QuotientOf(ctx(), scope(), v)
	if n := emulator.Clear(); n != 0 {
		t.Errorf("%d faults have not come: this test shows nothing", n)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(fetchVector(t, e, q.(*quotient).h), want) {
		t.Error("the quotient is wrong")
	}
	releaseAll(q)
	releaseAll(v)
	e.Flush()
	if now := left(t, e); now != base {
		t.Errorf("what is left changes from %+v to %+v", base, now)
	}
}

// TestClosedWithWorkUnderWay: an engine is closed while vectors are on their way,
// and what jobs hold goes after that. Nothing is left, in either pool of the card.
func TestClosedWithWorkUnderWay(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	for _, mode := range []emulator.Mode{emulator.Async, emulator.Late} {
		for _, transfer := range []Transfer{Bounced, Registered} {
			for _, space := range []alloc.Space{alloc.Host, alloc.Pinned} {
				t.Run(fmt.Sprint(mode, " ", transfer, " ", space), func(t *testing.T) {
					e := newEngine(t, id, emulator.Config{Mode: mode}, Transfers(transfer), Chunk(4096))
					d, err := groth16.NewDomain(id, 1<<12, curve.Coset)
					if err != nil {
						t.Fatal(err)
					}
					a, w := buffer(t, mixture(id, d.Size(), 80, 3), space), buffer(t, mixture(id, d.Size(), 80, 4), space)
					s, _, err := e.Split(ctx(), scope(), w)
					if err != nil {
						t.Fatal(err)
					}
					v, err := e.Prestage(ctx(), scope(), d, curve.Coset, a, a, nil)
					if err != nil {
						t.Fatal(err)
					}
					a.Release()
					w.Release()
					if err := e.Close(); err != nil {
						t.Error(err)
					}
					if st, err := emulator.Stats(); err != nil || st.Cards[0].PoolReserved != 0 {
						t.Errorf("a closed engine's card keeps %d bytes for streams (%v)", st.Cards[0].PoolReserved, err)
					}
					releaseAll(v)
					releaseAll(s)
					if n, taken := e.card.mem.sum(), e.card.taken.Load(); n != 0 || taken != 0 {
						t.Errorf("%d bytes granted and %d taken are left", n, taken)
					}
				})
			}
		}
	}
}

// TestTablesGoneMeanwhile: a reset takes tables that an operation counted on when
// it asked for its memory. That is told as what it is, and not as too little memory.
func TestTablesGoneMeanwhile(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	e := newEngine(t, id, emulator.Config{})
	d, err := groth16.NewDomain(id, 1<<8, curve.Coset)
	if err != nil {
		t.Fatal(err)
	}
	s := scalars(id, d.Size(), 3, 3, 1)
	quotient := func() error {
		return e.Quotient(ctx(), scope(), d, curve.Coset, slices.Clone(s), slices.Clone(s), nil)
	}
	if err := quotient(); err != nil {
		t.Fatal(err)
	}
	ntt, err := e.loadNTT()
	if err != nil {
		t.Fatal(err)
	}
	k := tableKey{d, curve.Coset}
	tab, missing := e.tables.hold(k, ntt.TableBytes(d, curve.Coset))
	if missing != 0 {
		t.Fatal("the tables are not kept: this test shows nothing")
	}
	emulator.Fault("cuMemGetInfo", 1, codeAddress, true)
	if _, _, err := e.card.Memory(); !errors.Is(err, gpu.ErrSticky) {
		t.Fatal(err)
	}
	if err := e.card.revive(); err != nil {
		t.Fatal(err)
	}
	err = e.run(ctx(), scope(), &op{name: "test", body: func(t *task) error {
		ntt, err := e.set.NTT()
		if err == nil {
			_, err = e.tables.use(t, ntt, k, tab)
		}
		return err
	}})
	e.tables.letGo(k, tab)
	if !errors.Is(err, gpu.ErrReset) || errors.Is(err, gpu.ErrNoMemory) {
		t.Errorf("tables that are gone: %v", err)
	}
	if err := quotient(); err != nil {
		t.Error(err)
	}
}
