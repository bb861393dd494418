package ifma

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/snarkline/snarkline/curve"
)

// Lanes as integers.

func setLane(v []uint64, nl, lane int, x *big.Int) {
	m := big.NewInt(mask52)
	for j := range nl {
		l := new(big.Int).Rsh(x, uint(52*j))
		if j < nl-1 {
			l.And(l, m)
		}
		v[8*j+lane] = l.Uint64()
	}
}

// rough moves carries around, so that limbs are raw but the value stays.
func rough(v []uint64, nl, lane int, rng *rand.Rand) {
	for j := range nl - 1 {
		c := int64(rng.IntN(1<<10)) - 1<<9
		v[8*j+lane] += uint64(c << 52)
		v[8*j+8+lane] -= uint64(c)
	}
}

func getLane(v []uint64, nl, lane int) *big.Int {
	x := new(big.Int)
	for j := nl - 1; j >= 0; j-- {
		x.Lsh(x, 52)
		x.Add(x, big.NewInt(int64(v[8*j+lane])))
	}
	return x
}

func normalised(v []uint64, nl, lane int) bool {
	for j := range nl {
		if v[8*j+lane]>>52 != 0 {
			return false
		}
	}
	return true
}

// edge is a value below k·p, at its ends as often as not.
func edge(p *big.Int, k int64, rng *rand.Rand) *big.Int {
	top := new(big.Int).Mul(p, big.NewInt(k))
	near := func(v *big.Int) *big.Int { return new(big.Int).Add(v, big.NewInt(int64(rng.IntN(5))-2)) }
	var v *big.Int
	switch rng.IntN(4) {
	case 0:
		v = near(new(big.Int).Mul(p, big.NewInt(rng.Int64N(k+1))))
	case 1:
		v = new(big.Int).Sub(top, big.NewInt(1+rng.Int64N(3)))
	default:
		b := make([]byte, len(top.Bytes())+8)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		v = new(big.Int).SetBytes(b)
		v.Mod(v, top)
	}
	if v.Sign() < 0 || v.Cmp(top) >= 0 {
		return new(big.Int)
	}
	return v
}

// prime is a field with the package's Montgomery radix.
type prime struct {
	p, r, rinv *big.Int
	nl         int
}

func newPrime(p *big.Int, nl int) prime {
	r := new(big.Int).Lsh(one, uint(52*nl))
	return prime{p, r, new(big.Int).ModInverse(r, p), nl}
}

// below fails the test unless the lane is normalised and below k·p.
func (f prime) below(t *testing.T, what string, v []uint64, lane int, k int64) {
	t.Helper()
	if x := getLane(v, f.nl, lane); !normalised(v, f.nl, lane) || x.Cmp(new(big.Int).Mul(f.p, big.NewInt(k))) >= 0 {
		t.Fatalf("%s: lane %d is not normalised below %dp: %x", what, lane, k, x)
	}
}

// is fails the test unless the lane is x modulo p.
func (f prime) is(t *testing.T, what string, v []uint64, lane int, x *big.Int) {
	t.Helper()
	d := new(big.Int).Sub(getLane(v, f.nl, lane), x)
	if d.Mod(d, f.p).Sign() != 0 {
		t.Fatalf("%s: lane %d is wrong", what, lane)
	}
}

// mont is a·b/R.
func (f prime) mont(a, b *big.Int) *big.Int {
	x := new(big.Int).Mul(a, b)
	x.Mul(x, f.rinv)
	return x.Mod(x, f.p)
}

// pair is an element of the base field or of its quadratic extension.
type pair [2]*big.Int

func (f prime) product(a, b pair) pair {
	if a[1] == nil {
		return pair{f.mont(a[0], b[0])}
	}
	c0 := new(big.Int).Sub(f.mont(a[0], b[0]), f.mont(a[1], b[1]))
	c1 := new(big.Int).Add(f.mont(a[0], b[1]), f.mont(a[1], b[0]))
	return pair{c0, c1}
}

func (a pair) minus(b pair) (d pair) {
	for c := range a {
		if a[c] != nil {
			d[c] = new(big.Int).Sub(a[c], b[c])
		}
	}
	return d
}

// TestGroupKernels gives the kernels of pair addition operands at the bounds
// that they state: products of values below 2p and of differences, x3 and y3 of
// any. Coordinates of BLS12-381 are below 2^32·p, those of BN254 below 2p.
func TestGroupKernels(t *testing.T) {
	onGroups(t, func(t *testing.T, o oracle, g *Group) {
		k := g.k
		f := newPrime(o.id.FieldModulus(), k.nl)
		rng := rand.New(rand.NewPCG(3, 4))
		const n = 6
		size := k.nl * 8
		point, out := int64(2), int64(2)
		if k.nl == 8 {
			point, out = 1<<32, 3
		}
		for range 40 {
			s := testAdder(g, 64, 64)
			// set puts values below top·p in a field of all records.
			set := func(field int, top int64, raw bool) [][8]pair {
				out := make([][8]pair, n)
				for v := range n {
					c := s.coord(v, field)
					for l := range 8 {
						for e := range k.nc {
							out[v][l][e] = edge(f.p, top, rng)
							setLane(c[e*size:], k.nl, l, out[v][l][e])
							if raw {
								rough(c[e*size:], k.nl, l, rng)
							}
						}
					}
				}
				return out
			}
			check := func(what string, field int, want func(v, l int) pair, top int64) {
				t.Helper()
				for v := range n {
					for l := range 8 {
						w := want(v, l)
						for e := range k.nc {
							c := s.coord(v, field)[e*size:]
							f.below(t, what, c, l, top)
							f.is(t, what, c, l, w[e])
						}
					}
				}
			}
			a, b := set(fieldPre, 2, false), set(fieldDX, 2*point, false)
			for _, backward := range []bool{false, true} {
				s.mul(0, fieldInv, fieldPre, fieldDX, n, backward)
				check("product", fieldInv, func(v, l int) pair { return f.product(a[v][l], b[v][l]) }, 2)
			}
			lambda, x1, sx, y1 := set(fieldDY, 2, false), set(fieldX1, point, false), set(fieldSX, 2*point, true), set(fieldY1, point, true)
			k.x3(s.at(0, 0), n)
			x3 := func(v, l int) pair { return f.product(lambda[v][l], lambda[v][l]).minus(sx[v][l]) }
			check("x3", fieldSX, x3, out)
			check("x1 − x3", fieldX1, func(v, l int) pair { return x1[v][l].minus(x3(v, l)) }, point+out)
			dst := make([]uint32, 8*n)
			for i := range dst {
				dst[i] = uint32((i * 5) % (8 * n))
			}
			k.y3(s.at(0, 0), &s.rows[0], &dst[0], n)
			for i, d := range dst {
				v, l := i/8, i%8
				y3 := f.product(lambda[v][l], x1[v][l].minus(x3(v, l))).minus(y1[v][l])
				for h, w := range []pair{x3(v, l), y3} {
					for e := range k.nc {
						c := rowVec(k, s.row(d), h*k.nc+e)
						f.is(t, "sum", c, 0, w[e])
						f.below(t, "sum", c, 0, out)
					}
				}
			}
		}
	})
}

// rowVec is coefficient c of a row as lane 0 of a vector.
func rowVec(k *kernels, row []uint64, c int) []uint64 {
	v := make([]uint64, 8*k.nl)
	if k.nl == 8 {
		for j := range 8 {
			v[8*j] = row[8*c+j]
		}
		return v
	}
	x := new(big.Int)
	for j := 3; j >= 0; j-- {
		x.Lsh(x, 64)
		x.Or(x, new(big.Int).SetUint64(row[4*c+j]))
	}
	setLane(v, k.nl, 0, x)
	return v
}

// TestLoadEdges loads coordinates that no point need have: 0, 1, p − 1.
func TestLoadEdges(t *testing.T) {
	onGroups(t, func(t *testing.T, o oracle, g *Group) {
		k := g.k
		f := newPrime(o.id.FieldModulus(), k.nl)
		rng := rand.New(rand.NewPCG(5, 6))
		pts := make([]byte, 32*k.pointBytes())
		w := words(pts, 0, len(pts)/8)
		up := new(big.Int).Lsh(one, uint(52*k.nl-64*k.words))
		coords := 2 * k.nc
		val := make([]*big.Int, 32*coords) // times the ratio of the radices
		for i := range val {
			x := edge(f.p, 1, rng)
			for j := range k.words {
				w[i*k.words+j] = word(x, j)
			}
			val[i] = x.Mul(x, up)
		}
		s := testAdder(g, 64, 64)
		a, b := make([]uint32, 16+ahead), make([]uint32, 16+ahead)
		for i := range 16 {
			a[i], b[i] = uint32(rng.IntN(64)), uint32(rng.IntN(64))
		}
		k.loadPoints(&s.rec[0], &pts[0], &a[0], &b[0], 2)
		at := func(name uint32, c int) *big.Int {
			x := val[int(name>>1)*coords+c]
			if c >= k.nc && name&1 != 0 {
				return new(big.Int).Neg(x)
			}
			return x
		}
		size := k.nl * 8
		top := int64(2)
		if k.nl == 8 {
			top = 1 << 32
		}
		for i := range 16 {
			v, l := i/8, i%8
			for e := range k.nc {
				x1, y1, x2, y2 := at(a[i], e), at(a[i], k.nc+e), at(b[i], e), at(b[i], k.nc+e)
				f.is(t, "x1", s.coord(v, fieldX1)[e*size:], l, x1)
				f.below(t, "x1", s.coord(v, fieldX1)[e*size:], l, top)
				f.is(t, "y1", s.coord(v, fieldY1)[e*size:], l, y1)
				f.is(t, "x1 + x2", s.coord(v, fieldSX)[e*size:], l, new(big.Int).Add(x1, x2))
				f.is(t, "dx", s.coord(v, fieldDX)[e*size:], l, new(big.Int).Sub(x2, x1))
				f.below(t, "dx", s.coord(v, fieldDX)[e*size:], l, 2*top)
				f.is(t, "dy", s.coord(v, fieldDY)[e*size:], l, new(big.Int).Sub(y2, y1))
				f.below(t, "dy", s.coord(v, fieldDY)[e*size:], l, 2*top+1) // 2·top·p itself, when both y are 0
			}
		}
	})
}

// TestScalarKernels gives the kernels of transforms the largest lazy values
// that they state, as raw limbs.
func TestScalarKernels(t *testing.T) {
	if !Available() {
		t.Skip("no AVX-512 IFMA here")
	}
	for _, id := range curve.All() {
		k, top := nttKernels254(), int64(34)
		if id == curve.BLS12381 {
			k = nttKernels381()
		}
		f := newPrime(id.ScalarModulus(), 5)
		rng := rand.New(rand.NewPCG(7, 8))
		const n = 64 // vectors
		buf := newScratch(make([]byte, 2*n*frVec+n*256+64))
		v, tab, out := buf.bytes(n*frVec), buf.bytes(n*frVec), buf.bytes(n*256)
		lane := func(b []byte, i int) []uint64 { return words(b, i*frVec, 40) }
		fill := func(b []byte, top int64, raw bool) [][8]*big.Int {
			x := make([][8]*big.Int, n)
			for i := range n {
				for l := range 8 {
					x[i][l] = edge(f.p, top, rng)
					setLane(lane(b, i), 5, l, x[i][l])
					if raw {
						rough(lane(b, i), 5, l, rng)
					}
				}
			}
			return x
		}
		element := func(i int) *big.Int { return scalarInt(curve.Scalar(words(out, 32*i, 4))) }
		for range 5 {
			x, z := fill(v, top-4, true), fill(tab, 1, false)
			// one level and two levels of splitting on a block of everything
			k.splitR4(&v[0], &tab[0], 5, 1, n/4)
			tw := func(h int) *big.Int { return z[h/8][h%8] }
			for i := range n / 4 {
				for l := range 8 {
					a, b, c, d := x[i][l], x[i+n/4][l], x[i+n/2][l], x[i+3*n/4][l]
					c, d = f.mont(c, tw(5)), f.mont(d, tw(5))
					a, c = new(big.Int).Add(a, c), new(big.Int).Sub(a, c)
					b, d = new(big.Int).Add(b, d), new(big.Int).Sub(b, d)
					b, d = f.mont(b, tw(10)), f.mont(d, tw(11))
					f.is(t, "split a", lane(v, i), l, new(big.Int).Add(a, b))
					f.is(t, "split b", lane(v, i+n/4), l, new(big.Int).Sub(a, b))
					f.is(t, "split c", lane(v, i+n/2), l, new(big.Int).Add(c, d))
					f.is(t, "split d", lane(v, i+3*n/4), l, new(big.Int).Sub(c, d))
				}
			}
			x = fill(v, top, true)
			k.storeElements(&v[0], &out[0], n, 256)
			for i := range n * 8 {
				want := new(big.Int).Mod(x[i/8][i%8], f.p)
				if element(i).Cmp(want) != 0 {
					t.Fatalf("%v: stored element %d is wrong", id, i)
				}
			}
			k.storeBlocks(&v[0], &out[0], n/8)
			for i := range n * 8 {
				want := new(big.Int).Mod(x[i&^63/8+i%8][i%64/8], f.p)
				if element(i).Cmp(want) != 0 {
					t.Fatalf("%v: element %d stored in blocks is wrong", id, i)
				}
			}
			k.storeWords(&v[0], &out[0], n, 256)
			k.loadWords(&v[0], &out[0], n, 256)
			for i := range n {
				for l := range 8 {
					f.is(t, "words", lane(v, i), l, x[i][l])
					f.below(t, "words", lane(v, i), l, 2)
				}
			}
			x = fill(v, top, true)
			k.mulVec(&v[0], &v[0], &tab[0], n)
			for i := range n {
				for l := range 8 {
					f.is(t, "product", lane(v, i), l, f.mont(x[i][l], z[i][l]))
					f.below(t, "product", lane(v, i), l, 2)
				}
			}
		}
	}
}
