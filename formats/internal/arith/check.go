package arith

import (
	"context"
	"encoding/binary"
	"fmt"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bn254"

	"github.com/snarkline/snarkline/curve"
)

// PointError says which point of which vector was refused.
type PointError struct {
	Vector int // index in the argument of Check
	Index  int // index in the vector
	Err    error
}

// Error names the point by its index in the vector.
func (e *PointError) Error() string { return fmt.Sprintf("point %d: %v", e.Index, e.Err) }

// Unwrap is the reason.
func (e *PointError) Unwrap() error { return e.Err }

// CheckOptions says what Check does.
type CheckOptions struct {
	// SkipSubgroup leaves out the check that points are in the subgroup of
	// order r. On BN254's G1 there is nothing to check.
	SkipSubgroup bool
	// Progress, if set, is told how many points out of how many are done. It
	// may be called from several goroutines at once.
	Progress func(done, total int)
	// Done, if set, hears of vectors that are not looked at for a while, so that
	// those of a mapped file can be taken out of memory.
	Done func(v curve.Points)
}

// Check checks the points of several vectors of one curve: coordinates below
// q and on the curve always, in the subgroup unless skipped. The first bad
// point is named by a *PointError. Work is spread over all processors.
func Check(ctx context.Context, vectors []curve.Points, o CheckOptions) error {
	checkers := make([]checker, len(vectors))
	total := 0
	for i, v := range vectors {
		c, err := checkerOf(v)
		if err != nil {
			return err
		}
		checkers[i] = c
		total += c.len()
	}
	m := meter{total: total, report: o.Progress}
	for i, c := range checkers {
		bad, err := firstBad(ctx, c.len(), func(from, to int) (int, error) {
			for j := from; j < to; j++ {
				if err := c.onCurve(j); err != nil {
					return j, err
				}
			}
			m.add(to - from)
			return -1, nil
		})
		if bad >= 0 {
			return &PointError{Vector: i, Index: bad, Err: err}
		}
		if err != nil {
			return err
		}
		o.done(vectors[i])
	}
	if o.SkipSubgroup {
		return nil
	}
	// Only now that all are on the curve: the batch check adds points up.
	for _, g := range []curve.Group{curve.InG1, curve.InG2} {
		if err := checkSubgroup(ctx, vectors, checkers, g, o); err != nil {
			return err
		}
	}
	return nil
}

func (o *CheckOptions) done(v curve.Points) {
	if o.Done != nil {
		o.Done(v)
	}
}

// checkSubgroup runs the batch check over all vectors of group g together and,
// if it fails, looks for the culprit point by point.
func checkSubgroup(ctx context.Context, vectors []curve.Points, checkers []checker, g curve.Group, o CheckOptions) error {
	var part []checker
	var whole []curve.Points
	n := 0
	for i, v := range vectors {
		if v.Group == g {
			part, whole = append(part, checkers[i]), append(whole, v)
			n += v.Len()
		}
	}
	if n == 0 || part[0].always() {
		return nil
	}
	if n >= batchFrom {
		if ok, err := part[0].batch(ctx, part, func(i int) { o.done(whole[i]) }); err != nil || ok {
			return err
		}
	}
	for i, v := range vectors {
		if v.Group != g {
			continue
		}
		bad, err := firstBad(ctx, v.Len(), func(from, to int) (int, error) {
			for j := from; j < to; j++ {
				if !checkers[i].inSubgroup(j) {
					return j, ErrSubgroup
				}
			}
			return -1, nil
		})
		if bad >= 0 {
			return &PointError{Vector: i, Index: bad, Err: err}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checker is a vector of points seen as one curve's type.
type checker interface {
	len() int
	onCurve(i int) error   // coordinates too
	inSubgroup(i int) bool // given that it is on the curve
	always() bool          // the whole curve is the subgroup
	batch(ctx context.Context, all []checker, done func(i int)) (bool, error)
}

// affine is what gnark-crypto's points of either group and curve can do.
type affine[P any] interface {
	*P
	IsOnCurve() bool
	IsInSubGroup() bool
}

// jacobian is what its sums can do.
type jacobian[J, P any] interface {
	*J
	AddMixed(*P) *J
	IsInSubGroup() bool
}

type vector[P any, A affine[P], J any, S jacobian[J, P]] struct {
	data    []byte
	points  []P
	modulus []uint64
	whole   bool
}

func checkerOf(v curve.Points) (checker, error) {
	if !v.Curve.Valid() {
		return nil, fmt.Errorf("check points of %v: unknown curve", v.Curve)
	}
	q := bases[v.Curve]().modulus
	switch {
	case v.Curve == curve.BN254 && v.Group == curve.InG1:
		return newVector[bn254.G1Affine, *bn254.G1Affine, bn254.G1Jac](v.Data, q, true)
	case v.Curve == curve.BN254 && v.Group == curve.InG2:
		return newVector[bn254.G2Affine, *bn254.G2Affine, bn254.G2Jac](v.Data, q, false)
	case v.Curve == curve.BLS12381 && v.Group == curve.InG1:
		return newVector[bls.G1Affine, *bls.G1Affine, bls.G1Jac](v.Data, q, false)
	case v.Curve == curve.BLS12381 && v.Group == curve.InG2:
		return newVector[bls.G2Affine, *bls.G2Affine, bls.G2Jac](v.Data, q, false)
	}
	return nil, fmt.Errorf("check points of %v: unknown group", v.Group)
}

func newVector[P any, A affine[P], J any, S jacobian[J, P]](data []byte, q []uint64, whole bool) (checker, error) {
	p, err := curve.View[P](data)
	if err != nil {
		return nil, err
	}
	return &vector[P, A, J, S]{data: data, points: p, modulus: q, whole: whole}, nil
}

func (v *vector[P, A, J, S]) len() int              { return len(v.points) }
func (v *vector[P, A, J, S]) always() bool          { return v.whole }
func (v *vector[P, A, J, S]) inSubgroup(i int) bool { return A(&v.points[i]).IsInSubGroup() }

func (v *vector[P, A, J, S]) onCurve(i int) error {
	size := len(v.data) / len(v.points)
	b := v.data[size*i : size*(i+1)]
	for step := 8 * len(v.modulus); len(b) > 0; b = b[step:] {
		if !bytesBelow(b[:step], v.modulus) {
			return ErrCoordinate
		}
	}
	if !A(&v.points[i]).IsOnCurve() {
		return ErrOffCurve
	}
	return nil
}

// bytesBelow reports whether the little-endian number b is below m.
func bytesBelow(b []byte, m []uint64) bool {
	for i := len(m) - 1; i >= 0; i-- {
		if limb := binary.LittleEndian.Uint64(b[8*i:]); limb != m[i] {
			return limb < m[i]
		}
	}
	return false
}
