package ifma

import (
	"context"
	"errors"
	"testing"

	"github.com/snarkline/snarkline/curve"
)

func TestSum(t *testing.T) {
	onGroups(t, func(t *testing.T, o oracle, g *Group) {
		const most = 10000
		size := g.k.pointBytes()
		pts := o.random(most / 4)
		for len(pts) < most*size { // repeated points
			pts = append(pts, pts...)
		}
		clear(pts[3*size : 4*size])
		copy(pts[5*size:6*size], o.neg(pts[6*size:7*size]))
		unit := make([]curve.Scalar, most)
		for i := range unit {
			unit[i] = curve.Scalar{1}
		}
		unit = montgomery(o.id, unit)
		out := make([]uint64, size/8)
		pick := make([]uint32, 5000)
		for i := range pick {
			pick[i] = uint32(7*i) % most
		}
		check := func(points []byte, pick []uint32, n, workers int) {
			t.Helper()
			buf := make([]byte, g.SumScratch(workers))
			if err := g.Sum(context.Background(), points, pick, n, workers, buf, out); err != nil {
				t.Fatal(err)
			}
			picked := points[:n*size]
			if pick != nil {
				picked = nil
				for _, i := range pick {
					picked = append(picked, points[int(i)*size:int(i+1)*size]...)
				}
				n = len(pick)
			}
			if want := o.msm(picked, unit[:n]); string(mem(out)) != string(want) {
				t.Fatalf("n=%d workers=%d: wrong sum", n, workers)
			}
		}
		for _, n := range []int{1, 2, 3, 4, 63, 64, 65, 129, 4097, most} {
			check(pts, nil, n, 1+n%3)
		}
		check(pts, pick, 0, 2)
		check(make([]byte, 10*size), nil, 10, 1) // all infinite
		buf := make([]byte, g.SumScratch(1))
		if err := g.Sum(context.Background(), pts, nil, 0, 1, buf, out); err != nil || !allZero(mem(out)) {
			t.Error("empty sum:", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := g.Sum(ctx, pts, nil, most, 1, buf, out); !errors.Is(err, context.Canceled) {
			t.Error("cancelled:", err)
		}
		if g.Sum(ctx, pts, nil, 1, 2, buf, out) == nil || g.Sum(ctx, pts, []uint32{1 << 30}, 0, 1, buf, out) == nil {
			t.Error("errors are missed")
		}
	})
}

// TestLongSum takes more than chunk·pieces points, so that partial sums are
// summed before the end.
func TestLongSum(t *testing.T) {
	if !Available() || testing.Short() {
		t.Skip("no AVX-512 IFMA here, or short")
	}
	o := oracles()[2]
	g := NewGroup(o.id, o.g)
	const n = chunk*pieces + 12345
	size := g.k.pointBytes()
	few := o.random(1000)
	pick := make([]uint32, n)
	count := make([]curve.Scalar, 1000)
	for i := range pick {
		p := (i * i) % 1000
		pick[i] = uint32(p)
		count[p][0]++
	}
	out := make([]uint64, size/8)
	if err := g.Sum(context.Background(), few, pick, 0, 1, make([]byte, g.SumScratch(1)), out); err != nil {
		t.Fatal(err)
	}
	if want := o.msm(few, montgomery(o.id, count)); string(mem(out)) != string(want) {
		t.Fatal("wrong sum")
	}
}
