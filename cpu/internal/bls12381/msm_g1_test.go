package bls12381

import (
	"context"
	"math/big"
	"math/rand/v2"
	"testing"
	"unsafe"

	"golang.org/x/sync/semaphore"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// engineG1 is an engine without vector kernels for 1, 2 and 5 workers, and with
// them for so many and 10 more.
func engineG1(workers int) *Engine {
	return New(workers%10, semaphore.NewWeighted(1), workers > 10)
}

// pointsG1 is n points: multiples of the generator, with infinities, repeats
// and opposites among them when mixed.
func pointsG1(rng *rand.Rand, n int, mixed bool) []pointG1 {
	g := generatorG1()
	pts := make([]pointG1, n)
	var p xyzzG1
	p.setAffine(&g)
	p.times(int(rng.Uint32()>>1) + 1)
	step := p.affine()
	for i := range pts {
		p.addAffine(&step)
		pts[i] = p.affine()
		if !mixed || i == 0 {
			continue
		}
		switch rng.IntN(8) {
		case 0:
			pts[i] = pointG1{}
		case 1:
			pts[i] = pts[rng.IntN(i)]
		case 2:
			pts[i].Neg(&pts[rng.IntN(i)])
		}
	}
	return pts
}

func queryG1(pts []pointG1) curve.Query {
	return curve.Query{Points: curve.Points{Curve: id, Group: curve.InG1, Data: curve.Bytes(pts)}}
}

// refG1 is gnark-crypto's sum of the same terms.
func refG1(t testing.TB, q curve.Query, w []curve.Scalar, pick []uint32) curve.G1 {
	t.Helper()
	all, err := curve.View[pointG1](q.Points.Data)
	if err != nil {
		t.Fatal(err)
	}
	if pick == nil {
		for j := range all {
			pick = append(pick, uint32(j))
		}
	}
	pts := make([]pointG1, len(pick))
	s := make([]fr.Element, len(pick))
	for i, j := range pick {
		pts[i], s[i] = all[j], fr.Element(w[q.Wire(int(j))])
	}
	var p pointG1
	if len(pick) > 0 {
		if _, err := p.MultiExp(pts, s, ecc.MultiExpConfig{NbTasks: 2}); err != nil {
			t.Fatal(err)
		}
	}
	return valueG1(&p)
}

// scalarKinds are the shapes of witnesses that are tried.
var scalarKindsG1 = []string{"random", "zero", "one", "r-1", "small", "signed", "bits", "equal", "skewed", "short"}

func scalarsG1(rng *rand.Rand, n int, kind string) []curve.Scalar {
	w := make([]curve.Scalar, n)
	equal := randomScalar(rng)
	for i := range w {
		var s fr.Element
		switch kind {
		case "random":
			s = randomScalar(rng)
		case "one":
			s.SetOne()
		case "r-1":
			s.SetInt64(-1)
		case "small":
			s.SetUint64(uint64(rng.IntN(1 << 16)))
		case "signed":
			s.SetInt64(int64(rng.IntN(1<<20)) - 1<<19)
		case "bits":
			switch rng.IntN(20) {
			case 0, 1:
				s = randomScalar(rng)
			case 2, 3, 4, 5, 6, 7:
				s.SetOne()
			}
		case "equal":
			s = equal
		case "skewed":
			if s = equal; rng.IntN(3) == 0 {
				s = randomScalar(rng)
			}
		case "short":
			// every bit length, all ones or a power of two
			v := new(big.Int).Lsh(big.NewInt(1), uint(rng.IntN(fr.Bits)))
			if rng.IntN(2) == 0 {
				v.Sub(v, big.NewInt(1))
			}
			s.SetBigInt(v)
			if rng.IntN(2) == 0 {
				s.Neg(&s)
			}
		}
		w[i] = curve.Scalar(s)
	}
	return w
}

func TestMSMG1(t *testing.T) {
	defer alloc.CheckLeaks(t)
	rng := newRand(t)
	ctx := context.Background()
	sizes := []int{0, 1, 2, 3, 7, tinyG1, tinyG1 + 1, 63, 64, 65, 127, 255, 257, 1000, 1025}
	if !testing.Short() && bytesG1 <= 96 {
		sizes = append(sizes, 4097)
	}
	for _, n := range sizes {
		pts := pointsG1(rng, n, n%2 == 1)
		q := queryG1(pts)
		for _, kind := range scalarKindsG1 {
			w := scalarsG1(rng, n, kind)
			want := refG1(t, q, w, nil)
			some := []int{1, 2, 5, 12}
			if n > 130 {
				some = []int{5, 12}
			}
			for _, workers := range some {
				got, err := engineG1(workers).MSMG1(ctx, nil, q, w, nil)
				if err != nil {
					t.Fatal(err)
				}
				if got != want {
					t.Errorf("n %d, %s, %d workers: wrong sum", n, kind, workers)
				}
			}
		}
	}
}

// TestMSMG1EverySize has every number of terms from 1 to 70, and those around
// powers of two.
func TestMSMG1EverySize(t *testing.T) {
	rng := newRand(t)
	var sizes []int
	for n := 1; n <= 70; n++ {
		sizes = append(sizes, n)
	}
	for p := 128; p <= 1024; p *= 2 {
		sizes = append(sizes, p-1, p, p+1)
	}
	ctx, pts := context.Background(), pointsG1(rng, 1025, true)
	for _, n := range sizes {
		q := queryG1(pts[:n])
		w := scalarsG1(rng, n, []string{"random", "short", "bits"}[n%3])
		got, err := engineG1(2+10*(n%2)).MSMG1(ctx, nil, q, w, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got != refG1(t, q, w, nil) {
			t.Errorf("n %d: wrong sum", n)
		}
	}
}

func TestMSMG1QueriesAndPicks(t *testing.T) {
	defer alloc.CheckLeaks(t)
	for _, workers := range []int{2, 12} {
		testQueriesG1(t, engineG1(workers))
	}
}

func testQueriesG1(t *testing.T, e *Engine) {
	rng := newRand(t)
	const n = 700
	pts := pointsG1(rng, n, true)
	w := scalarsG1(rng, n+50, "bits")
	q := queryG1(pts)
	q.First = 37
	wired := queryG1(pts)
	for range n {
		wired.Wires = append(wired.Wires, rng.Uint32N(uint32(len(w))))
	}
	some := []uint32{}
	for j := range uint32(n) {
		if rng.IntN(3) == 0 {
			some = append(some, j)
		}
	}
	// the same points, at an address that is a multiple of 4 only
	raw := make([]byte, len(q.Points.Data)+12)
	off := 4
	if uintptr(unsafe.Pointer(&raw[4]))%8 == 0 {
		off = 8
	}
	copy(raw[off:], q.Points.Data)
	odd := q
	odd.Points.Data = raw[off : off+len(q.Points.Data)]

	for name, q := range map[string]curve.Query{"first": q, "wires": wired, "unaligned": odd} {
		for what, pick := range map[string][]uint32{"all": nil, "none": {}, "one": {5}, "some": some, "few": some[:30]} {
			got, err := e.MSMG1(context.Background(), nil, q, w, pick)
			if err != nil {
				t.Fatal(err)
			}
			if got != refG1(t, q, w, pick) {
				t.Errorf("query %s, pick %s: wrong sum", name, what)
			}
		}
	}
}

func TestMSMG1RefusesWhatDoesNotFit(t *testing.T) {
	defer alloc.CheckLeaks(t)
	e := engineG1(2)
	pts := pointsG1(newRand(t), 100, false)
	w := make([]curve.Scalar, 100)
	q := queryG1(pts)
	bad := map[string]func() (curve.Query, []curve.Scalar, []uint32){
		"short witness": func() (curve.Query, []curve.Scalar, []uint32) { return q, w[:99], nil },
		"first beyond":  func() (curve.Query, []curve.Scalar, []uint32) { q := q; q.First = 1; return q, w, nil },
		"wires too few": func() (curve.Query, []curve.Scalar, []uint32) { q := q; q.Wires = make([]uint32, 99); return q, w, nil },
		"pick beyond":   func() (curve.Query, []curve.Scalar, []uint32) { return q, w, []uint32{0, 100} },
		"wrong group": func() (curve.Query, []curve.Scalar, []uint32) {
			q := q
			q.Points.Group = 3 - q.Points.Group
			return q, w, nil
		},
		"wrong curve": func() (curve.Query, []curve.Scalar, []uint32) { q := q; q.Points.Curve ^= 3; return q, w, nil },
		"half a point": func() (curve.Query, []curve.Scalar, []uint32) {
			q := q
			q.Points.Data = q.Points.Data[:100]
			return q, w, nil
		},
		"huge wire":     func() (curve.Query, []curve.Scalar, []uint32) { q := q; q.First = 1<<32 - 1; return q, w, nil },
		"pick far away": func() (curve.Query, []curve.Scalar, []uint32) { return q, w, make30(1 << 31) },
	}
	for name, f := range bad {
		q, w, pick := f()
		if _, err := e.MSMG1(context.Background(), nil, q, w, pick); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestMSMG1WithoutMemory gives a sum ever more memory: it is an error until
// there is enough, never another sum.
func TestMSMG1WithoutMemory(t *testing.T) {
	defer alloc.CheckLeaks(t)
	for _, workers := range []int{2, 12} {
		testNoMemoryG1(t, engineG1(workers))
	}
}

func testNoMemoryG1(t *testing.T, e *Engine) {
	rng := newRand(t)
	const n = 900
	q := queryG1(pointsG1(rng, n, false))
	w := scalarsG1(rng, n, "random")
	want := refG1(t, q, w, nil)
	bound := e.MSMScratch(curve.InG1, n)
	failed := 0
	for part := 0; part <= 16; part++ {
		budget := alloc.NewBudget(bound)
		give := alloc.HostBytes(1 + (bound[alloc.Host]-1)*int64(part)/16)
		res, err := budget.Reserve(context.Background(), give)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.MSMG1(context.Background(), alloc.NewScope(alloc.StageOf("test"), alloc.Host, res), q, w, nil)
		switch {
		case err != nil && got != curve.G1{}:
			t.Errorf("%v of %v: an error and a sum", give, bound)
		case err != nil:
			failed++
		case got != want:
			t.Errorf("%v of %v: wrong sum", give, bound)
		}
		if part == 16 && err != nil {
			t.Errorf("with the whole bound: %v", err)
		}
		if used := res.Used(); !used.IsZero() {
			t.Errorf("%v still in use", used)
		}
		res.Close()
	}
	if failed == 0 {
		t.Error("never out of memory")
	}
}

func TestMSMG1Bound(t *testing.T) {
	rng := newRand(t)
	pts := pointsG1(rng, 1<<13, false)
	for _, workers := range []int{1, 2, 5, 12} {
		e := engineG1(workers)
		for _, n := range []int{tinyG1 + 1, 100, 1000, 5000, 1 << 13} {
			q := queryG1(pts[:n])
			bound := e.MSMScratch(curve.InG1, n)[alloc.Host]
			for _, kind := range scalarKindsG1 {
				if n > 100 && kind != "random" && (kind != "short" || bytesG1 > 96) {
					continue
				}
				budget := alloc.NewBudget(alloc.HostBytes(bound))
				res, err := budget.Reserve(context.Background(), alloc.HostBytes(bound))
				if err != nil {
					t.Fatal(err)
				}
				sc := alloc.NewScope(alloc.StageOf("test"), alloc.Host, res)
				if _, err := e.MSMG1(context.Background(), sc, q, scalarsG1(rng, n, kind), nil); err != nil {
					t.Errorf("n %d, %s, %d workers: %v", n, kind, workers, err)
				}
				peak := res.Peak()[alloc.Host]
				res.Close()
				if kind == "random" && float64(bound) > 1.5*float64(peak) {
					t.Errorf("n %d, %d workers: bound %d, drawn %d", n, workers, bound, peak)
				}
			}
		}
	}
}

// TestPicksDrawNoMoreG1: a sum over some of the points stays within the bound of
// all of them, for which the caller has reserved, however many they are.
func TestPicksDrawNoMoreG1(t *testing.T) {
	rng := newRand(t)
	const n = 5469
	pts := pointsG1(rng, n, false)
	q, w := queryG1(pts), scalarsG1(rng, n, "random")
	for _, workers := range []int{1, 2, 4} {
		e := engineG1(workers)
		bound := alloc.HostBytes(e.MSMScratch(curve.InG1, n)[alloc.Host])
		for _, m := range []int{600, 1000, 1366, 2050, 2516, 2800, 4096, 5000, n} {
			pick := make([]uint32, m)
			for i := range pick {
				pick[i] = uint32(i * n / m)
			}
			res, err := alloc.NewBudget(bound).Reserve(context.Background(), bound)
			if err != nil {
				t.Fatal(err)
			}
			sc := alloc.NewScope(alloc.StageOf("test"), alloc.Host, res)
			if _, err := e.MSMG1(context.Background(), sc, q, w, pick); err != nil {
				t.Errorf("%d of %d points, %d workers: %v", m, n, workers, err)
			}
			res.Close()
		}
	}
}

// countdown is a context that is done after so many looks at it.
type countdownG1 struct {
	context.Context
	left chan struct{}
}

func (c countdownG1) Err() error {
	select {
	case <-c.left:
		return nil
	default:
		return context.Canceled
	}
}

func TestMSMG1Cancelled(t *testing.T) {
	defer alloc.CheckLeaks(t)
	rng := newRand(t)
	q := queryG1(pointsG1(rng, 1500, false))
	w := scalarsG1(rng, 1500, "random")
	want := refG1(t, q, w, nil)
	stopped := 0
	for i, looks := range []int{0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 8, 10, 13, 17, 20, 30, 50, 1 << 14} {
		left := make(chan struct{}, looks)
		for range looks {
			left <- struct{}{}
		}
		got, err := engineG1(2+10*(i%2)).MSMG1(countdownG1{context.Background(), left}, nil, q, w, nil)
		if err == nil && got != want {
			t.Errorf("%d looks: wrong sum", looks)
		}
		if err != nil {
			stopped++
		}
	}
	if stopped < 5 {
		t.Errorf("stopped %d times", stopped)
	}
}
