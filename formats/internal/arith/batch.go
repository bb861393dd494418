package arith

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/snarkline/snarkline/formats/internal/guard"
)

const (
	batchFrom   = 4096 // points below which one check each costs less
	batchRounds = 8
	batchSums   = 256
	chunk       = 1024 // points between two looks at the context
)

// batch checks that all points of all vectors, which are on the curve, are in
// the subgroup, at a few additions a point. In each round every point is added
// to one of batchSums sums drawn at random, and the sums are checked. A single
// point outside always shows. Of several, fix all but one of them: the last
// goes unseen only if it falls into the one sum that it puts right, so a round
// errs with probability at most 1/batchSums, and all rounds with at most 2⁻⁶⁴,
// whatever the points are.
//
// The rounds go over one vector after another, side by side; done hears of each
// vector that they are through with.
func (v *vector[P, A, J, S]) batch(ctx context.Context, all []checker, done func(i int)) (bool, error) {
	var rounds [batchRounds]round[P, J, S]
	for i := range rounds {
		if err := rounds[i].begin(); err != nil {
			return false, err
		}
	}
	var bad atomic.Bool
	each := func(do func(r *round[P, J, S], ctx context.Context) error) error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(runtime.GOMAXPROCS(0))
		for i := range rounds {
			g.Go(func() error { return guard.Call(func() error { return do(&rounds[i], ctx) }) })
		}
		if err := g.Wait(); err != nil {
			return fmt.Errorf("check points: %w", err)
		}
		return nil
	}
	for i, c := range all {
		w, ok := c.(*vector[P, A, J, S])
		if !ok {
			return false, errors.New("check points: vectors of different curves")
		}
		if err := each(func(r *round[P, J, S], ctx context.Context) error { return r.add(ctx, w.points) }); err != nil {
			return false, err
		}
		done(i)
	}
	if err := each(func(r *round[P, J, S], _ context.Context) error {
		r.end(&bad)
		return nil
	}); err != nil {
		return false, err
	}
	return !bad.Load(), nil
}

// round is one round of batch.
type round[P, J any, S jacobian[J, P]] struct {
	source *rand.ChaCha8
	sums   []J
}

func (r *round[P, J, S]) begin() error {
	var seed [32]byte
	if _, err := crand.Read(seed[:]); err != nil {
		return fmt.Errorf("check points: read randomness: %w", err)
	}
	r.source, r.sums = rand.NewChaCha8(seed), make([]J, batchSums)
	return nil
}

func (r *round[P, J, S]) add(ctx context.Context, points []P) error {
	for from := 0; from < len(points); from += chunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		addAtRandom[P, J, S](r.source, r.sums, points[from:min(from+chunk, len(points))])
	}
	return nil
}

// end checks the sums and sets bad if one is outside. It stops when bad is set.
func (r *round[P, J, S]) end(bad *atomic.Bool) {
	for i := range r.sums {
		if bad.Load() {
			return
		}
		if !S(&r.sums[i]).IsInSubGroup() {
			bad.Store(true)
		}
	}
}

func addAtRandom[P, J any, S jacobian[J, P]](source *rand.ChaCha8, sums []J, points []P) {
	var bits uint64
	for i := range points {
		if i%8 == 0 {
			bits = source.Uint64()
		}
		S(&sums[bits%batchSums]).AddMixed(&points[i])
		bits /= batchSums
	}
}

// firstBad runs check over [0, n) in chunks on all processors. check returns
// the first bad index of its chunk with the reason, or −1; firstBad the first
// of all, or −1 with ctx's error or that of a check that panicked.
func firstBad(ctx context.Context, n int, check func(from, to int) (int, error)) (int, error) {
	workers := min(runtime.GOMAXPROCS(0), (n+chunk-1)/chunk)
	var (
		next  atomic.Int64
		limit atomic.Int64 // nothing at or after it can be the first
		mu    sync.Mutex
		found = -1
		why   error
		fault error // a panic: nothing is known of its chunk
		wg    sync.WaitGroup
	)
	limit.Store(int64(n))
	for range workers {
		wg.Go(func() {
			for {
				from := int(next.Add(chunk)) - chunk
				if from >= int(limit.Load()) || ctx.Err() != nil {
					return
				}
				var bad int
				var err error
				crash := guard.Call(func() error {
					bad, err = check(from, min(from+chunk, n))
					return nil
				})
				if crash == nil && bad < 0 {
					continue
				}
				mu.Lock()
				if crash != nil {
					fault = crash
					limit.Store(0)
				} else if found < 0 || bad < found {
					found, why = bad, err
					limit.Store(int64(bad))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return -1, err
	}
	if fault != nil {
		return -1, fmt.Errorf("check points: %w", fault)
	}
	return found, why
}

// meter counts finished points.
type meter struct {
	done   atomic.Int64
	total  int
	report func(done, total int)
}

func (m *meter) add(n int) {
	if done := m.done.Add(int64(n)); m.report != nil {
		m.report(int(done), m.total)
	}
}
