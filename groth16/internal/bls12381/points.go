package bls12381

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	ec "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16/internal/model"
)

// checkChunk is how many points one task checks: enough for gnark-crypto's
// probabilistic subgroup check to pay, little enough to hear of a cancellation.
const checkChunk = 4096

// parallel runs fn over [0, n) in pieces of at most chunk on all processors
// and returns the first error, or panic.
func parallel(ctx context.Context, n, chunk int, fn func(from, to int) error) error {
	if n == 0 {
		return ctx.Err()
	}
	pieces := (n + chunk - 1) / chunk
	workers := min(runtime.GOMAXPROCS(0), pieces)
	var (
		next  atomic.Int64
		once  sync.Once
		first error
		wg    sync.WaitGroup
	)
	stop := func(err error) {
		once.Do(func() { first = err })
		next.Store(int64(pieces))
	}
	for range workers {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= pieces {
					return
				}
				if err := ctx.Err(); err != nil {
					stop(err)
					return
				}
				if err := model.Guard(fn, i*chunk, min((i+1)*chunk, n)); err != nil {
					stop(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return first
}

// badPointError names a point that is not what it should be.
type badPointError struct {
	index int
	why   string
}

func (e *badPointError) Error() string { return fmt.Sprintf("point %d is not %s", e.index, e.why) }

// CheckPoints reports the first (of a piece) point of p that is not on the
// curve or, when asked, not in the subgroup. Infinity passes.
func (Backend) CheckPoints(ctx context.Context, p curve.Points, subgroup bool) error {
	if p.Group == curve.InG2 {
		v := g2s(p)
		return parallel(ctx, len(v), checkChunk, func(from, to int) error {
			for i := from; i < to; i++ {
				if !reducedG2(&v[i]) {
					return &badPointError{i, "given by reduced coordinates"}
				}
				if !v[i].IsOnCurve() {
					return &badPointError{i, "on the curve"}
				}
			}
			if !subgroup || ec.IsInSubGroupBatchG2(v[from:to]) {
				return nil
			}
			for i := from; i < to; i++ {
				if !v[i].IsInSubGroup() {
					return &badPointError{i, "in the subgroup"}
				}
			}
			return nil
		})
	}
	v := g1s(p)
	return parallel(ctx, len(v), checkChunk, func(from, to int) error {
		for i := from; i < to; i++ {
			if !reducedG1(&v[i]) {
				return &badPointError{i, "given by reduced coordinates"}
			}
			if !v[i].IsOnCurve() {
				return &badPointError{i, "on the curve"}
			}
		}
		if !subgroup || ec.IsInSubGroupBatchG1(v[from:to]) {
			return nil
		}
		for i := from; i < to; i++ {
			if !v[i].IsInSubGroup() {
				return &badPointError{i, "in the subgroup"}
			}
		}
		return nil
	})
}

// CheckG1 checks one point: coordinates reduced, on the curve, in the subgroup.
func (Backend) CheckG1(p *curve.G1) error {
	q := ToG1(p)
	switch {
	case !reducedG1(&q):
		return fmt.Errorf("coordinates are not reduced")
	case !q.IsOnCurve():
		return fmt.Errorf("not on the curve")
	case !q.IsInSubGroup():
		return fmt.Errorf("not in the subgroup")
	}
	return nil
}

// CheckG2 checks one point: coordinates reduced, on the curve, in the subgroup.
func (Backend) CheckG2(p *curve.G2) error {
	q := ToG2(p)
	switch {
	case !reducedG2(&q):
		return fmt.Errorf("coordinates are not reduced")
	case !q.IsOnCurve():
		return fmt.Errorf("not on the curve")
	case !q.IsInSubGroup():
		return fmt.Errorf("not in the subgroup")
	}
	return nil
}

// reducedFp reports whether the limbs of x are below the modulus: memory that
// came from a file may hold anything.
func reducedFp(x *fp.Element) bool {
	var b [fp.Bytes]byte
	for i, w := range x {
		binary.LittleEndian.PutUint64(b[8*i:], w)
	}
	_, err := fp.LittleEndian.Element(&b)
	return err == nil
}

func reducedG1(p *ec.G1Affine) bool { return reducedFp(&p.X) && reducedFp(&p.Y) }

func reducedG2(p *ec.G2Affine) bool {
	return reducedFp(&p.X.A0) && reducedFp(&p.X.A1) && reducedFp(&p.Y.A0) && reducedFp(&p.Y.A1)
}
