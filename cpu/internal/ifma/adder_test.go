package ifma

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/snarkline/snarkline/curve"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	blsfr "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	bn "github.com/consensys/gnark-crypto/ecc/bn254"
	bnfr "github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// oracle is gnark-crypto's arithmetic of a group on points in memory.
type oracle struct {
	id     curve.ID
	g      curve.Group
	random func(n int) []byte                      // fresh points
	sum    func(a, b []byte) []byte                // affine
	neg    func(a []byte) []byte                   // affine
	msm    func(p []byte, s []curve.Scalar) []byte // scalars in Montgomery form
}

func mem[T any](v []T) []byte { return curve.Bytes(v) }

func view[T any](b []byte) []T {
	v, err := curve.View[T](b)
	if err != nil {
		panic(err)
	}
	return v
}

func oracles() []oracle {
	_, _, blsG1, blsG2 := bls.Generators()
	_, _, bnG1, bnG2 := bn.Generators()
	blsScalars := func(n int) []blsfr.Element {
		s := make([]blsfr.Element, n)
		for i := range s {
			s[i].MustSetRandom()
		}
		return s
	}
	bnScalars := func(n int) []bnfr.Element {
		s := make([]bnfr.Element, n)
		for i := range s {
			s[i].MustSetRandom()
		}
		return s
	}
	return []oracle{
		{
			curve.BLS12381, curve.InG1,
			func(n int) []byte { return mem(bls.BatchScalarMultiplicationG1(&blsG1, blsScalars(n))) },
			func(a, b []byte) []byte {
				var r bls.G1Affine
				r.Add(&view[bls.G1Affine](a)[0], &view[bls.G1Affine](b)[0])
				return mem([]bls.G1Affine{r})
			},
			func(a []byte) []byte {
				var r bls.G1Affine
				r.Neg(&view[bls.G1Affine](a)[0])
				return mem([]bls.G1Affine{r})
			},
			func(p []byte, s []curve.Scalar) []byte {
				var r bls.G1Affine
				if _, err := r.MultiExp(view[bls.G1Affine](p), view[blsfr.Element](mem(s)), serial); err != nil {
					panic(err)
				}
				return mem([]bls.G1Affine{r})
			},
		},
		{
			curve.BLS12381, curve.InG2,
			func(n int) []byte { return mem(bls.BatchScalarMultiplicationG2(&blsG2, blsScalars(n))) },
			func(a, b []byte) []byte {
				var r bls.G2Affine
				r.Add(&view[bls.G2Affine](a)[0], &view[bls.G2Affine](b)[0])
				return mem([]bls.G2Affine{r})
			},
			func(a []byte) []byte {
				var r bls.G2Affine
				r.Neg(&view[bls.G2Affine](a)[0])
				return mem([]bls.G2Affine{r})
			},
			func(p []byte, s []curve.Scalar) []byte {
				var r bls.G2Affine
				if _, err := r.MultiExp(view[bls.G2Affine](p), view[blsfr.Element](mem(s)), serial); err != nil {
					panic(err)
				}
				return mem([]bls.G2Affine{r})
			},
		},
		{
			curve.BN254, curve.InG1,
			func(n int) []byte { return mem(bn.BatchScalarMultiplicationG1(&bnG1, bnScalars(n))) },
			func(a, b []byte) []byte {
				var r bn.G1Affine
				r.Add(&view[bn.G1Affine](a)[0], &view[bn.G1Affine](b)[0])
				return mem([]bn.G1Affine{r})
			},
			func(a []byte) []byte {
				var r bn.G1Affine
				r.Neg(&view[bn.G1Affine](a)[0])
				return mem([]bn.G1Affine{r})
			},
			func(p []byte, s []curve.Scalar) []byte {
				var r bn.G1Affine
				if _, err := r.MultiExp(view[bn.G1Affine](p), view[bnfr.Element](mem(s)), serial); err != nil {
					panic(err)
				}
				return mem([]bn.G1Affine{r})
			},
		},
		{
			curve.BN254, curve.InG2,
			func(n int) []byte { return mem(bn.BatchScalarMultiplicationG2(&bnG2, bnScalars(n))) },
			func(a, b []byte) []byte {
				var r bn.G2Affine
				r.Add(&view[bn.G2Affine](a)[0], &view[bn.G2Affine](b)[0])
				return mem([]bn.G2Affine{r})
			},
			func(a []byte) []byte {
				var r bn.G2Affine
				r.Neg(&view[bn.G2Affine](a)[0])
				return mem([]bn.G2Affine{r})
			},
			func(p []byte, s []curve.Scalar) []byte {
				var r bn.G2Affine
				if _, err := r.MultiExp(view[bn.G2Affine](p), view[bnfr.Element](mem(s)), serial); err != nil {
					panic(err)
				}
				return mem([]bn.G2Affine{r})
			},
		},
	}
}

// onGroups runs f as a subtest for each group.
func onGroups(t *testing.T, f func(t *testing.T, o oracle, g *Group)) {
	if !Available() {
		t.Skip("no AVX-512 IFMA here")
	}
	for _, o := range oracles() {
		t.Run(fmt.Sprintf("%v/%v", o.id, o.g), func(t *testing.T) { f(t, o, NewGroup(o.id, o.g)) })
	}
}

// rowPoint is a row as an affine point in memory.
func rowPoint(g *Group, s *adder, i uint32) []byte {
	out := make([]uint64, g.k.pointBytes()/8)
	if !s.isInf(i) {
		a := g.accs(1)
		a.addRow(0, s.row(i))
		a.affine(0, out)
	}
	return mem(out)
}

func testAdder(g *Group, most, rows int) *adder {
	buf := make([]byte, adderBytes(g.k, most)+64+rows*8*g.k.rowWords())
	s := newScratch(buf)
	a := newAdder(g.k, g.ops, most, s)
	a.rows = s.bytes(rows * 8 * g.k.rowWords())
	a.dummy = uint32(rows - 1)
	return a
}

// TestAdder adds pairs at every tail length, first points to rows, then rows to
// rows, with signs, and with equal and opposite operands mixed in.
func TestAdder(t *testing.T) {
	onGroups(t, func(t *testing.T, o oracle, g *Group) {
		rng := rand.New(rand.NewPCG(1, 2))
		pb := g.k.pointBytes()
		const most = 96
		pts := o.random(64)
		copy(pts[5*pb:6*pb], o.neg(pts[4*pb:5*pb]))
		copy(pts[7*pb:8*pb], pts[6*pb:7*pb])
		point := func(name uint32) []byte {
			p := pts[int(name>>1)*pb : int(name>>1+1)*pb]
			if name&1 != 0 {
				return o.neg(p)
			}
			return p
		}
		for n := 1; n <= most; n += 1 + n/20 {
			for _, odd := range []bool{false, true} {
				s := testAdder(g, most+32, 2*most+1)
				s.fromPoints, s.pts = true, pts
				want := make([][]byte, n)
				for i := range n {
					a, b := uint32(rng.IntN(64)), uint32(64+rng.IntN(64))
					if odd {
						switch rng.IntN(4) {
						case 0:
							b = a // doubling
						case 1:
							b = a ^ 1 // cancellation
						case 2:
							a, b = 8, 10+uint32(rng.IntN(6)) // equal or opposite in memory
						}
					}
					want[i] = o.sum(point(a), point(b))
					s.push(a, b, uint32(i))
				}
				s.flush()
				if odd == (s.exceptions == 0) && n > 10 {
					t.Fatalf("n=%d odd=%v: %d exceptions", n, odd, s.exceptions)
				}
				var live []uint32
				for i := range n {
					if got := rowPoint(g, s, uint32(i)); string(got) != string(want[i]) {
						t.Fatalf("n=%d odd=%v: sum of points %d is wrong", n, odd, i)
					}
					if !s.isInf(uint32(i)) {
						live = append(live, uint32(i))
					}
				}
				s.fromPoints = false
				want2 := map[uint32][]byte{}
				for i := range live {
					a, b := live[i], live[rng.IntN(len(live))]
					if !odd && a == b {
						b = live[(i+1)%len(live)]
					}
					sa, sb := uint32(rng.IntN(2)), uint32(rng.IntN(2))
					pa, pb := want[a], want[b]
					if sa != 0 {
						pa = o.neg(pa)
					}
					if sb != 0 {
						pb = o.neg(pb)
					}
					d := uint32(most + i)
					want2[d] = o.sum(pa, pb)
					s.push(a<<1|sa, b<<1|sb, d)
				}
				s.flush()
				for d, w := range want2 {
					if string(rowPoint(g, s, d)) != string(w) {
						t.Fatalf("n=%d odd=%v: sum of rows %d is wrong", n, odd, d)
					}
				}
			}
		}
	})
}

// TestConvert writes points to rows at every tail length.
func TestConvert(t *testing.T) {
	onGroups(t, func(t *testing.T, o oracle, g *Group) {
		pts := o.random(16)
		pb := g.k.pointBytes()
		s := testAdder(g, 32, 33)
		a, d := make([]uint32, 16+ahead), make([]uint32, 16)
		for i := range 16 {
			a[i], d[i] = uint32(i<<1|i&1), uint32(15-i)
		}
		g.k.convert(&s.rows[0], &pts[0], &a[0], &d[0], &s.tmp[0], 2)
		for i := range 16 {
			want := pts[i*pb : (i+1)*pb]
			if i&1 != 0 {
				want = o.neg(want)
			}
			if string(rowPoint(g, s, uint32(15-i))) != string(want) {
				t.Fatalf("point %d is wrong", i)
			}
		}
	})
}
