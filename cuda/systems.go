package cuda

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/cuda/kernels"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// system is groth16's System, which is a literal so that packages agree on it
// without importing each other.
type system = struct {
	A, B, C curve.Matrix
	Rows    int
	Inputs  int
	Wires   int
}

// matrixGroup tells kept matrices from kept points.
const matrixGroup curve.Group = 255

// idOfMatrix tells a matrix by where it is, as points are told.
func idOfMatrix(m curve.Matrix) pointsID {
	return pointsID{addressOf(m.Rows), 4*len(m.Rows) + 8*len(m.Terms), matrixGroup}
}

// matricesOf are those of s that have rows.
func matricesOf(s system) (all []curve.Matrix) {
	for _, m := range []curve.Matrix{s.A, s.B, s.C} {
		if m.NumRows() > 0 {
			all = append(all, m)
		}
	}
	return all
}

// KeepSystem makes the matrices of s stay on the card from proof to proof, as far
// as there is room beside what jobs need. It returns when they are there. As with
// Keep, they must neither change nor go from now until drop.
func (e *Engine) KeepSystem(ctx context.Context, s system) (drop func(), err error) {
	var held []*keptPoints
	drop = e.keys.dropOnce(&held)
	for _, m := range matricesOf(s) {
		plan, err := kernels.PlanMatrix(e.id, m, s.Wires)
		if err != nil {
			drop()
			return nil, fmt.Errorf("keep matrices on %s: %w", e.card.name, err)
		}
		k := e.keys.add(&keptPoints{id: idOfMatrix(m), bytes: plan.Bytes(), plan: plan, fill: func(t *task, mem gpu.Ptr) error {
			return plan.Parts(func(at int64, b []byte) error { return t.bounceIn(mem+gpu.Ptr(at), b, false) })
		}})
		held = append(held, k)
		if _, err := e.keys.bring(ctx, k); err != nil {
			drop()
			return nil, err
		}
	}
	return drop, nil
}

// HoldSystem says whether PrestageOf can be called for a job of load l with the
// matrices of s: they are on the card and, until end is called, stay there, and
// there is room for the job's vectors. It waits for nothing.
func (e *Engine) HoldSystem(l load, s system) (end func(), ok bool) {
	vectors := (int64(curve.ScalarBytes) << l.Domain.Log) * 3
	if l.Folded {
		vectors = vectors / 3 * 2
	}
	// What a job needs at once, and what it may find taken by another one.
	size := vectors + (curve.ScalarBytes+1)*int64(l.Wires) + kernels.MatrixScratch
	if left, err := e.card.mem.leftFor(standing); err != nil || left < 2*size {
		return nil, false
	}
	var held []*keptPoints
	for _, m := range matricesOf(s) {
		k := e.keys.take(idOfMatrix(m))
		if k == nil {
			for _, k := range held {
				e.keys.letGo(k)
			}
			return nil, false
		}
		held = append(held, k)
	}
	if len(held) == 0 {
		return nil, false
	}
	return func() {
		for _, k := range held {
			e.keys.letGo(k)
		}
	}, true
}

// restoreSystems brings matrices back that were given up, where there is room.
func (e *Engine) restoreSystems(ctx context.Context) {
	e.keys.mu.Lock()
	var gone []*keptPoints
	for _, k := range e.keys.m {
		if k.plan != nil && k.mem == nil {
			gone = append(gone, k)
		}
	}
	e.keys.mu.Unlock()
	for _, k := range gone {
		if _, err := e.keys.bring(ctx, k); err != nil {
			return // a job can do without
		}
	}
}

// take holds what is kept under id, if it is on the card.
func (c *keyCache) take(id pointsID) *keptPoints {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.m[id]
	if k == nil || k.mem == nil || k.mem.live() != nil {
		return nil
	}
	k.users++
	return k
}
