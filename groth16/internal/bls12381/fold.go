package bls12381

import (
	"context"
	"fmt"
	"math/big"
	"math/bits"

	ec "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// foldChunk is how many scalar multiplications one task makes between two
// looks at the context: some tens of milliseconds.
const foldChunk = 256

// FoldBasis turns the quotient points of an unfolded key into the two families
// that a folded one is made of, with g the shift and ω the generator of d:
//
//	lagrange[row] = ℓ_row(τ)·Z(τ)/((gⁿ−1)δ)  on ⟨ω⟩, for the C matrix,
//	coset[j]      = ℓ'_j(τ)·Z(τ)/((gⁿ−1)δ)   on g⟨ω⟩, the folded key's H.
//
// A key of the coset basis has the second family already; coset is nil then.
// Quotient points that a key leaves out count as infinity in both families,
// where they cancel. done hears of scalar multiplications.
func (Backend) FoldBasis(ctx context.Context, sc *alloc.Scope, d curve.Domain, basis curve.Basis, h, coset, lagrange curve.Points, done func(int)) error {
	n := d.Size()
	f := newTransform(d)
	buf, err := alloc.Make[ec.G1Jac](sc, n, alloc.Scratch, 0)
	if err != nil {
		return fmt.Errorf("group transform of %d points: %w", n, err)
	}
	defer buf.Release()
	v, in := buf.Slice(), g1s(h)

	if basis == curve.Coset {
		for i := range in {
			v[i].FromAffine(&in[i])
		}
		if err := f.forward(ctx, v, done); err != nil {
			return err
		}
		// v[bitrev(k)] = Σ_j ω^{jk}·H_j; the coefficients are g^k/n times that.
		if err := f.scale(ctx, v, f.shift, f.nInv, done); err != nil {
			return err
		}
		if err := f.inverse(ctx, v, done); err != nil {
			return err
		}
		return toAffine(ctx, v, g1s(lagrange))
	}

	// Monomial points come bit-reversed: v[bitrev(k)] = τ^k·Z(τ)/δ.
	load := func() {
		clear(v)
		for i := range in {
			v[i].FromAffine(&in[i])
		}
	}
	var s, one fr.Element
	one.SetOne()
	s.Exp(f.shift, big.NewInt(int64(n))).Sub(&s, &one).Inverse(&s).Mul(&s, &f.nInv)
	load()
	if err := f.scale(ctx, v, one, s, done); err != nil {
		return err
	}
	if err := f.inverse(ctx, v, done); err != nil {
		return err
	}
	if err := toAffine(ctx, v, g1s(lagrange)); err != nil {
		return err
	}
	var gInv fr.Element
	gInv.Inverse(&f.shift)
	load()
	if err := f.scale(ctx, v, gInv, s, done); err != nil {
		return err
	}
	if err := f.inverse(ctx, v, done); err != nil {
		return err
	}
	return toAffine(ctx, v, g1s(coset))
}

// FoldWork is how many units FoldBasis reports to done in all.
func (Backend) FoldWork(d curve.Domain, basis curve.Basis) int {
	n := d.Size()
	if basis == curve.Coset {
		return n*d.Log + n
	}
	return n*d.Log + 2*n
}

// FoldWires writes out[i] = L_i − Σ_row C[row, i]·lagrange[row] for every wire
// i, with L_i infinity for a wire that l has no point for.
func (Backend) FoldWires(ctx context.Context, sc *alloc.Scope, c curve.Matrix, lagrange curve.Points, l curve.Query, out curve.Points, done func(int)) error {
	wires := out.Len()
	starts, err := alloc.Make[uint32](sc, wires+1, alloc.Scratch, 0)
	if err != nil {
		return fmt.Errorf("columns of C: %w", err)
	}
	defer starts.Release()
	type entry struct{ row, coeff uint32 }
	entries, err := alloc.Make[entry](sc, len(c.Terms), alloc.Scratch, alloc.Dirty)
	if err != nil {
		return fmt.Errorf("columns of C: %w", err)
	}
	defer entries.Release()
	at, cols := starts.Slice(), entries.Slice()
	for _, t := range c.Terms {
		at[t.Wire+1]++
	}
	for i := range wires {
		at[i+1] += at[i]
	}
	next := append([]uint32(nil), at[:wires]...)
	for row := range c.NumRows() {
		for _, t := range c.Terms[c.Rows[row]:c.Rows[row+1]] {
			cols[next[t.Wire]] = entry{uint32(row), t.Coeff}
			next[t.Wire]++
		}
	}

	to, from, lag := g1s(out), g1s(l.Points), g1s(lagrange)
	clear(to)
	for j := range from {
		to[l.Wire(j)] = from[j]
	}
	coeffs := elements(c.Coeffs)
	var minusOne fr.Element
	minusOne.SetOne().Neg(&minusOne)
	return parallel(ctx, wires, foldChunk, func(lo, hi int) error {
		acc := make([]ec.G1Jac, hi-lo)
		for i := lo; i < hi; i++ {
			p := &acc[i-lo]
			p.FromAffine(&to[i])
			for _, e := range cols[at[i]:at[i+1]] {
				g := &lag[e.row]
				switch k := &coeffs[e.coeff]; {
				case k.IsOne():
					var t ec.G1Affine
					p.AddMixed(t.Neg(g))
				case k.Equal(&minusOne):
					p.AddMixed(g)
				default:
					var t ec.G1Jac
					t.FromAffine(g)
					t.ScalarMultiplication(&t, k.BigInt(new(big.Int)))
					p.SubAssign(&t)
				}
			}
		}
		affineG1(acc, to[lo:hi])
		done(hi - lo)
		return nil
	})
}

// transform is a discrete Fourier transform of group elements.
type transform struct {
	log              int
	root, inv, shift fr.Element
	nInv             fr.Element
}

func newTransform(d curve.Domain) *transform {
	f := &transform{log: d.Log, root: fr.Element(d.Generator), shift: fr.Element(d.Shift)}
	f.inv.Inverse(&f.root)
	f.nInv.SetUint64(uint64(d.Size())).Inverse(&f.nInv)
	return f
}

// forward takes v in natural order to its transform in bit-reversed order.
func (f *transform) forward(ctx context.Context, v []ec.G1Jac, done func(int)) error {
	w := f.root
	for half := len(v) / 2; half >= 1; half /= 2 {
		err := f.layer(ctx, v, half, w, done, func(a, b *ec.G1Jac, k *big.Int) {
			t := *a
			a.AddAssign(b)
			t.SubAssign(b)
			times(&t, k)
			*b = t
		})
		if err != nil {
			return err
		}
		w.Square(&w)
	}
	return nil
}

// inverse takes v in bit-reversed order to its transform by the inverse root,
// in natural order and without the factor 1/n.
func (f *transform) inverse(ctx context.Context, v []ec.G1Jac, done func(int)) error {
	for layer := range f.log {
		w := f.inv
		for range f.log - 1 - layer {
			w.Square(&w)
		}
		err := f.layer(ctx, v, 1<<layer, w, done, func(a, b *ec.G1Jac, k *big.Int) {
			times(b, k)
			t := *b
			*b = *a
			a.AddAssign(&t)
			b.SubAssign(&t)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// layer runs one layer of butterflies at distance half, the j-th of each block
// with the factor w^j (nil for 1).
func (f *transform) layer(ctx context.Context, v []ec.G1Jac, half int, w fr.Element, done func(int), fly func(a, b *ec.G1Jac, k *big.Int)) error {
	shift := bits.TrailingZeros(uint(half))
	return parallel(ctx, len(v)/2, foldChunk, func(from, to int) error {
		var at fr.Element
		at.Exp(w, big.NewInt(int64(from&(half-1))))
		k := new(big.Int)
		for i := from; i < to; i++ {
			block, j := i>>shift, i&(half-1)
			if j == 0 {
				at.SetOne()
			}
			p := block<<(shift+1) + j
			if at.IsOne() {
				fly(&v[p], &v[p+half], nil)
			} else {
				fly(&v[p], &v[p+half], at.BigInt(k))
			}
			at.Mul(&at, &w)
		}
		done(to - from)
		return nil
	})
}

// scale multiplies element k of v by first·ratio^k, where element k lies at
// the bit-reversal of k.
func (f *transform) scale(ctx context.Context, v []ec.G1Jac, ratio, first fr.Element, done func(int)) error {
	return parallel(ctx, len(v), foldChunk, func(from, to int) error {
		var at fr.Element
		at.Exp(ratio, big.NewInt(int64(from))).Mul(&at, &first)
		b := new(big.Int)
		for k := from; k < to; k++ {
			i := int(bits.Reverse64(uint64(k)) >> (64 - f.log))
			times(&v[i], at.BigInt(b))
			at.Mul(&at, &ratio)
		}
		done(to - from)
		return nil
	})
}

// times multiplies p by k, or by 1 when k is nil.
func times(p *ec.G1Jac, k *big.Int) {
	if k != nil && !p.Z.IsZero() {
		p.ScalarMultiplication(p, k)
	}
}

func toAffine(ctx context.Context, v []ec.G1Jac, out []ec.G1Affine) error {
	return parallel(ctx, len(v), mulChunk, func(from, to int) error {
		affineG1(v[from:to], out[from:to])
		return nil
	})
}
