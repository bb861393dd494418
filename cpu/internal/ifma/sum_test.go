package ifma

import (
	"context"
	"errors"
	"testing"

	"github.com/snarkline/snarkline/curve"
)

func TestSum(t *testing.T) {
	onGroups(t, func(t *testing.T, o oracle, g *Group) {
		const most = 6500
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
		check := func(points []byte, keep func(int) bool, workers int) {
			t.Helper()
			n := len(points) / size
			if err := g.Sum(context.Background(), points, keep, workers, make([]byte, g.SumScratch(workers)), out); err != nil {
				t.Fatal(err)
			}
			picked := points
			if keep != nil {
				picked = nil
				for i := range n {
					if keep(i) {
						picked = append(picked, points[i*size:(i+1)*size]...)
					}
				}
			}
			if want := o.msm(picked, unit[:len(picked)/size]); string(mem(out)) != string(want) {
				t.Fatalf("n=%d workers=%d: wrong sum", n, workers)
			}
		}
		for _, n := range []int{1, 2, 3, 4, 63, 64, 65, 129, most} {
			check(pts[:n*size], nil, 1+n%3)
		}
		check(pts[:most*size], func(i int) bool { return i%3 == 1 }, 2)
		check(make([]byte, 10*size), nil, 1) // all infinite
		buf := make([]byte, g.SumScratch(1))
		if err := g.Sum(context.Background(), nil, nil, 1, buf, out); err != nil || !allZero(mem(out)) {
			t.Error("empty sum:", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := g.Sum(ctx, pts[:6000*size], nil, 1, buf, out); !errors.Is(err, context.Canceled) {
			t.Error("cancelled:", err)
		}
		if g.Sum(ctx, pts, nil, 2, buf, out) == nil {
			t.Error("too little scratch is not noticed")
		}
	})
}

// TestLongSum takes more than partials·pieces points, so that partial sums are
// summed before the end.
func TestLongSum(t *testing.T) {
	if !Available() || testing.Short() {
		t.Skip("no AVX-512 IFMA here, or short")
	}
	o := oracles()[2]
	g := NewGroup(o.id, o.g)
	const n, few = partials*pieces + 12345, 1000
	size := g.k.pointBytes()
	pts := o.random(few)
	count := make([]curve.Scalar, few)
	for i := range count {
		count[i][0] = n / few
		if i < n%few {
			count[i][0]++
		}
	}
	want := o.msm(pts, montgomery(o.id, count))
	for len(pts) < n*size {
		pts = append(pts, pts[:few*size]...)
	}
	out := make([]uint64, size/8)
	if err := g.Sum(context.Background(), pts[:n*size], nil, 1, make([]byte, g.SumScratch(1)), out); err != nil {
		t.Fatal(err)
	}
	if string(mem(out)) != string(want) {
		t.Fatal("wrong sum")
	}
}
