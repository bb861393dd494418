package groth16

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// FoldOptions tune Fold.
type FoldOptions struct {
	// Progress, if set, hears of the work done so far, from several goroutines.
	Progress func(done, total int)
}

// Fold converts an unfolded key of a circuit to a folded one of the coset basis,
// by two group Fourier transforms: about n·log₂ n scalar multiplications, some
// minutes for 2^18 constraints on a few cores. The proofs of the two keys are
// the same and have the same verifying key. r is the key's circuit, of which
// only C is read (a .zkey has none; take the .r1cs).
//
// The new key shares A, B1, B2 and, if key is of the coset basis already, H
// with key: key must stay open until the new one is closed.
func Fold(ctx context.Context, key *ProvingKey, r *R1CS, opts FoldOptions) (*ProvingKey, error) {
	out := &ProvingKey{
		Curve: key.Curve, Domain: key.Domain, Basis: curve.Coset, Folded: true,
		NbConstraints: key.NbConstraints, NbWires: key.NbWires, NbPublic: key.NbPublic,
		Alpha1: key.Alpha1, Beta1: key.Beta1, Delta1: key.Delta1, Beta2: key.Beta2, Delta2: key.Delta2,
		A: key.A, B1: key.B1, B2: key.B2, H: key.H, Commitments: key.Commitments,
	}
	if err := fold(ctx, key, r, out, opts); err != nil {
		_ = out.Close()
		return nil, fmt.Errorf("fold the key: %w", err)
	}
	return out, nil
}

func fold(ctx context.Context, key *ProvingKey, r *R1CS, out *ProvingKey, opts FoldOptions) error {
	f, err := backendOf(key.Curve)
	if err != nil {
		return err
	}
	switch {
	case key.Folded:
		return errors.New("it is folded already")
	case r.ID != key.Curve:
		return fmt.Errorf("the key is on %v, the circuit on %v", key.Curve, r.ID)
	case r.Wires != key.NbWires || r.Public != key.NbPublic:
		return fmt.Errorf("the key is for %d wires, %d of them public, the circuit has %d and %d", key.NbWires, key.NbPublic, r.Wires, r.Public)
	case r.NbConstraints() > key.Domain.Size():
		return fmt.Errorf("%d constraints do not fit the key's domain of 2^%d", r.NbConstraints(), key.Domain.Log)
	case len(r.C.Rows) == 0:
		return errors.New("the circuit has no C matrix")
	}
	if err := r.Validate(); err != nil {
		return err
	}
	if err := key.Validate(ctx, CheckSizes); err != nil {
		return err
	}
	sc, n := alloc.ScopeOf(ctx), key.Domain.Size()
	total := f.FoldWork(key.Domain, key.Basis) + key.NbWires
	var done atomic.Int64
	step := func(k int) {
		if opts.Progress != nil {
			opts.Progress(int(done.Add(int64(k))), total)
		}
	}

	lagrange, err := newPoints(sc, key.Curve, curve.InG1, n, alloc.Scratch)
	if err != nil {
		return err
	}
	defer lagrange.buf.Release()
	var coset ownedPoints
	if key.Basis == curve.Monomial {
		if coset, err = newPoints(sc, key.Curve, curve.InG1, n, alloc.Key); err != nil {
			return err
		}
		out.own(coset.buf)
		out.H = coset.Points
	}
	if err := f.FoldBasis(ctx, sc, key.Domain, key.Basis, key.H, coset.Points, lagrange.Points, step); err != nil {
		return err
	}

	all, err := newPoints(sc, key.Curve, curve.InG1, key.NbWires, alloc.Scratch)
	if err != nil {
		return err
	}
	defer all.buf.Release()
	if err := f.FoldWires(ctx, sc, r.C, lagrange.Points, key.L, all.Points, step); err != nil {
		return err
	}
	out.L, err = compact(sc, out, all.Points)
	return err
}

// compact makes a query of the points of p that are not at infinity, which the
// key owns.
func compact(sc *alloc.Scope, k *ProvingKey, p curve.Points) (curve.Query, error) {
	size, n := p.Curve.PointBytes(p.Group), 0
	zero := make([]byte, size)
	at := func(i int) []byte { return p.Data[i*size : (i+1)*size] }
	for i := range p.Len() {
		if string(at(i)) != string(zero) {
			n++
		}
	}
	wires, err := alloc.Make[uint32](sc, n, alloc.Key, alloc.Dirty)
	if err != nil {
		return curve.Query{}, err
	}
	to, err := newPoints(sc, p.Curve, p.Group, n, alloc.Key)
	if err != nil {
		wires.Release()
		return curve.Query{}, err
	}
	k.own(to.buf)
	w, j := wires.Slice(), 0
	for i := range p.Len() {
		if string(at(i)) != string(zero) {
			copy(to.Data[j*size:], at(i))
			w[j] = uint32(i)
			j++
		}
	}
	return k.query(to.Points, wires), nil
}
