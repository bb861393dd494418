//go:build linux

package ifma

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"golang.org/x/sys/unix"

	"github.com/snarkline/snarkline/curve"
)

// cpuTime is the processor time of this process so far: on a shared machine it
// says more than the clock on the wall.
func cpuTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// compare runs the two in turns, b.N times, and reports the least processor
// time of each for an item and their ratio.
func compare(b *testing.B, items int, theirs, ours func()) {
	least := [2]float64{math.Inf(1), math.Inf(1)}
	for range b.N {
		for i, f := range []func(){theirs, ours} {
			t := cpuTime()
			f()
			least[i] = min(least[i], float64(cpuTime()-t)/float64(items))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(least[0], "gnark-ns/item")
	b.ReportMetric(least[1], "ifma-ns/item")
	b.ReportMetric(least[0]/least[1], "ratio")
}

func BenchmarkMSM(b *testing.B) {
	if !Available() {
		b.Skip("no AVX-512 IFMA here")
	}
	for _, o := range oracles() {
		g := NewGroup(o.id, o.g)
		for _, log := range []int{6, 8, 10, 12, 14, 16} {
			n := 1 << log
			pts, s := o.random(n), randomScalars(o.id, n)
			mont := montgomery(o.id, s)
			buf := make([]byte, g.MSMScratch(n, 1))
			out := make([]uint64, g.k.pointBytes()/8)
			work := make([]curve.Scalar, n)
			b.Run(fmt.Sprintf("%v/%v/%d", o.id, o.g, log), func(b *testing.B) {
				compare(b, n, func() { o.msm(pts, mont) }, func() {
					copy(work, s)
					if err := g.MSM(context.Background(), pts, nil, work, 1, buf, out); err != nil {
						b.Fatal(err)
					}
				})
			})
		}
	}
}

func BenchmarkNTT(b *testing.B) {
	if !Available() {
		b.Skip("no AVX-512 IFMA here")
	}
	for _, id := range curve.All() {
		for _, log := range []int{8, 10, 12, 14, 16, 18, 20} {
			f := newFFT(id, log)
			n := newNTT(b, id, f.d)
			a := randomScalars(id, 1<<log)
			buf := make([]byte, NTTScratch(log, 1))
			for _, k := range []struct {
				name           string
				in             Order
				coset, inverse bool
			}{
				{"split", Natural, false, false}, {"join coset", Reversed, true, false},
				{"split inverse", Natural, false, true}, {"split inverse coset", Natural, true, true},
			} {
				b.Run(fmt.Sprintf("%v/%d/%s", id, log, k.name), func(b *testing.B) {
					theirs, ours := f.forward, n.Forward
					if k.inverse {
						theirs, ours = f.inverse, n.Inverse
					}
					compare(b, 1<<log, func() { theirs(a, k.in, k.coset, 1) }, func() {
						if err := ours(context.Background(), a, k.in, k.coset, 1, buf); err != nil {
							b.Fatal(err)
						}
					})
				})
			}
		}
	}
}

// BenchmarkAdder compares with gnark-crypto's addition in Jacobian coordinates,
// one affine operand: what its sums of points are made of.
func BenchmarkAdder(b *testing.B) {
	if !Available() {
		b.Skip("no AVX-512 IFMA here")
	}
	for _, o := range oracles() {
		g := NewGroup(o.id, o.g)
		const n = 1 << 12
		pts := o.random(n)
		size := g.k.pointBytes()
		perm := rand.New(rand.NewPCG(1, 2)).Perm(n)
		for _, most := range []int{256, 512, 1024, 2048} {
			s := testAdder(g, most, most+1)
			s.fromPoints, s.pts = true, pts
			acc := g.accs(1)
			b.Run(fmt.Sprintf("%v/%v/%d", o.id, o.g, most), func(b *testing.B) {
				compare(b, n/2, func() {
					for i := 0; i < n; i += 2 {
						acc.addAffine(0, words(pts, perm[i]*size, size/8))
					}
				}, func() {
					for i := 0; i < n; i += 2 {
						s.push(uint32(perm[i]<<1), uint32(perm[i+1]<<1), uint32(i/2%most))
					}
					s.flush()
				})
			})
		}
	}
}

// BenchmarkTables compares a sum with what it would be from a table that holds
// 2^(i·b)·P for every point P, i < k: k times the points, scalars of a k-th of the
// length, and buckets to be weighted once for k windows.
func BenchmarkTables(b *testing.B) {
	if !Available() {
		b.Skip("no AVX-512 IFMA here")
	}
	const id, most = curve.BLS12381, 4
	g := NewGroup(id, curve.InG1)
	for _, log := range []int{14, 16, 18} {
		points := multiples(most << log)
		for _, k := range []int{2, most} {
			sum := func(k int) func() {
				n, length := k<<log, (g.bits+k-1)/k
				s := randomScalars(id, n)
				for i := range s {
					for w := range s[i] {
						switch keep := length - 64*w; {
						case keep <= 0:
							s[i][w] = 0
						case keep < 64:
							s[i][w] &= 1<<keep - 1
						}
					}
				}
				p := g.Plan(n, length, n*length/g.bits, 1, 0)
				work, buf, out := make([]curve.Scalar, n), make([]byte, p.Bytes(g)), make([]uint64, g.k.pointBytes()/8)
				return func() {
					copy(work, s)
					if err := g.Folded(context.Background(), p, points, nil, work, buf, out); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.Run(fmt.Sprintf("2^%d/%d times the memory", log, k), func(b *testing.B) {
				least := [2]float64{math.Inf(1), math.Inf(1)}
				turns := []func(){sum(1), sum(k)}
				for range b.N {
					for i, f := range turns {
						t := cpuTime()
						f()
						least[i] = min(least[i], (cpuTime()-t).Seconds()*1e3)
					}
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(least[0], "plain-ms")
				b.ReportMetric(least[1], "table-ms")
				b.ReportMetric(least[1]/least[0], "of-plain")
			})
		}
	}
}

// multiples are n distinct points of BLS12-381 in G1.
func multiples(n int) []byte {
	_, _, g, _ := bls.Generators()
	var next, step bls.G1Jac
	step.FromAffine(&g)
	next.Set(&step)
	out := make([]bls.G1Affine, 0, n)
	for len(out) < n {
		some := make([]bls.G1Jac, min(n-len(out), 1<<14))
		for i := range some {
			some[i] = next
			next.AddAssign(&step)
		}
		out = append(out, bls.BatchJacobianToAffineG1(some)...)
	}
	return mem(out)
}
