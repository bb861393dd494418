package bls12381

import (
	"context"
	"fmt"

	ec "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// mulChunk is how many multiples one task computes before it converts them to
// affine coordinates with one inversion.
const mulChunk = 1024

// Base is a fixed-base table for multiples of a group's generator: all digits of
// all windows, window i holding d·2^(window·i)·base for d = 1 … 2^window − 1, so
// that a multiple costs one mixed addition a window and no doubling.
type Base struct {
	window, windows, digits int

	group curve.Group
	g1    *alloc.Buffer[ec.G1Affine]
	g2    *alloc.Buffer[ec.G2Affine]
}

// digit is bits [window·i, window·(i+1)) of the plain integer s.
func (b *Base) digit(s *[4]uint64, i int) int {
	at := b.window * i
	word, off := at/64, at%64
	d := s[word] >> off
	if off+b.window > 64 && word+1 < len(s) {
		d |= s[word+1] << (64 - off)
	}
	return int(d) & b.digits
}

// NewBase builds the table of the generator of group g, drawn from sc, of the
// size that suits about n multiples.
func (Backend) NewBase(ctx context.Context, sc *alloc.Scope, g curve.Group, n int) (*Base, error) {
	_, _, gen1, gen2 := ec.Generators()
	b := &Base{group: g}
	for w, best := 2, 0; w <= 12; w++ {
		windows := (fr.Bits + w - 1) / w
		if cost := windows * (1<<w + n); best == 0 || cost < best {
			best, b.window, b.windows, b.digits = cost, w, windows, 1<<w-1
		}
	}
	windows, digits := b.windows, b.digits
	var err error
	if g == curve.InG2 {
		if b.g2, err = alloc.Make[ec.G2Affine](sc, windows*digits, alloc.Scratch, alloc.Dirty); err != nil {
			return nil, fmt.Errorf("fixed-base table in %v: %w", g, err)
		}
		table := b.g2.Slice()
		starts := make([]ec.G2Affine, windows)
		var p ec.G2Jac
		p.FromAffine(&gen2)
		for i := range starts {
			starts[i].FromJacobian(&p)
			for range b.window {
				p.DoubleAssign()
			}
		}
		err = parallel(ctx, windows, 1, func(from, _ int) error {
			row := make([]ec.G2Jac, digits)
			row[0].FromAffine(&starts[from])
			for d := 1; d < digits; d++ {
				row[d] = row[d-1]
				row[d].AddMixed(&starts[from])
			}
			affineG2(row, table[from*digits:(from+1)*digits])
			return nil
		})
	} else {
		if b.g1, err = alloc.Make[ec.G1Affine](sc, windows*digits, alloc.Scratch, alloc.Dirty); err != nil {
			return nil, fmt.Errorf("fixed-base table in %v: %w", g, err)
		}
		table := b.g1.Slice()
		starts := make([]ec.G1Affine, windows)
		var p ec.G1Jac
		p.FromAffine(&gen1)
		for i := range starts {
			starts[i].FromJacobian(&p)
			for range b.window {
				p.DoubleAssign()
			}
		}
		err = parallel(ctx, windows, 1, func(from, _ int) error {
			row := make([]ec.G1Jac, digits)
			row[0].FromAffine(&starts[from])
			for d := 1; d < digits; d++ {
				row[d] = row[d-1]
				row[d].AddMixed(&starts[from])
			}
			affineG1(row, table[from*digits:(from+1)*digits])
			return nil
		})
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Close releases the table.
func (b *Base) Close() {
	if b.g1 != nil {
		b.g1.Release()
	}
	if b.g2 != nil {
		b.g2.Release()
	}
}

// Mul writes scalars[i]·generator to out, which has as many points. done hears
// of every finished piece.
func (b *Base) Mul(ctx context.Context, scalars []curve.Scalar, out curve.Points, done func(int)) error {
	if out.Group != b.group || out.Len() != len(scalars) {
		return fmt.Errorf("multiples of the generator: %d scalars for %d points in %v", len(scalars), out.Len(), out.Group)
	}
	s := elements(scalars)
	if b.group == curve.InG2 {
		table, to := b.g2.Slice(), g2s(out)
		return parallel(ctx, len(s), mulChunk, func(from, end int) error {
			acc := make([]ec.G2Jac, end-from)
			for i := range acc {
				bits := s[from+i].Bits()
				for w := range b.windows {
					if d := b.digit(&bits, w); d != 0 {
						acc[i].AddMixed(&table[w*b.digits+d-1])
					}
				}
				wipe(bits[:])
			}
			affineG2(acc, to[from:end])
			clear(acc) // projective coordinates tell of the scalars
			done(end - from)
			return nil
		})
	}
	table, to := b.g1.Slice(), g1s(out)
	return parallel(ctx, len(s), mulChunk, func(from, end int) error {
		acc := make([]ec.G1Jac, end-from)
		for i := range acc {
			bits := s[from+i].Bits()
			for w := range b.windows {
				if d := b.digit(&bits, w); d != 0 {
					acc[i].AddMixed(&table[w*b.digits+d-1])
				}
			}
			wipe(bits[:])
		}
		affineG1(acc, to[from:end])
		clear(acc)
		done(end - from)
		return nil
	})
}

// affineG1 converts a batch with one inversion. gnark-crypto's own batch
// conversion starts goroutines of its own, and so do all of our callers.
func affineG1(in []ec.G1Jac, out []ec.G1Affine) {
	prefix := make([]fp.Element, len(in))
	defer clear(prefix)
	var acc fp.Element
	acc.SetOne()
	for i := range in {
		prefix[i] = acc
		if !in[i].Z.IsZero() {
			acc.Mul(&acc, &in[i].Z)
		}
	}
	acc.Inverse(&acc)
	for i := len(in) - 1; i >= 0; i-- {
		if in[i].Z.IsZero() {
			out[i] = ec.G1Affine{}
			continue
		}
		var inv, inv2 fp.Element
		inv.Mul(&prefix[i], &acc)
		acc.Mul(&acc, &in[i].Z)
		inv2.Square(&inv)
		out[i].X.Mul(&in[i].X, &inv2)
		inv2.Mul(&inv2, &inv)
		out[i].Y.Mul(&in[i].Y, &inv2)
	}
}

// affineG2 is affineG1 in G2.
func affineG2(in []ec.G2Jac, out []ec.G2Affine) {
	prefix := make([]ec.E2, len(in))
	defer clear(prefix)
	var acc ec.E2
	acc.SetOne()
	for i := range in {
		prefix[i] = acc
		if !in[i].Z.IsZero() {
			acc.Mul(&acc, &in[i].Z)
		}
	}
	acc.Inverse(&acc)
	for i := len(in) - 1; i >= 0; i-- {
		if in[i].Z.IsZero() {
			out[i] = ec.G2Affine{}
			continue
		}
		var inv, inv2 ec.E2
		inv.Mul(&prefix[i], &acc)
		acc.Mul(&acc, &in[i].Z)
		inv2.Square(&inv)
		out[i].X.Mul(&in[i].X, &inv2)
		inv2.Mul(&inv2, &inv)
		out[i].Y.Mul(&in[i].Y, &inv2)
	}
}
