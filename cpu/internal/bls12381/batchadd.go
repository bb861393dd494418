package bls12381

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu/internal/par"
	"github.com/snarkline/snarkline/cpu/internal/window"
	"github.com/snarkline/snarkline/curve"
)

// sumLayout says how many workers add up n points, and in what chunks.
func (e *Engine) sumLayout(n int) (workers, chunk, batch int) {
	workers = max(1, min(e.Workers, n/blockLen))
	chunk = min(4096, max(window.Chunk(n, workers, bytesG1), 128))
	return workers, chunk, window.Batch(chunk)
}

// sumVecMin is the number of points from which vector kernels add them up.
const sumVecMin = 2048

func (e *Engine) vectorSum(n int) bool { return e.VecG1 != nil && n >= sumVecMin }

// sumBytes is what SumG1 of n points draws.
func (e *Engine) sumBytes(n int) int64 {
	if n <= tinyG1 {
		return 0
	}
	workers, chunk, batch := e.sumLayout(n)
	if e.vectorSum(n) {
		return int64(e.VecG1.SumScratch(workers))
	}
	return int64(workers) * int64((chunk+1)*bytesG1+window.TreeBytes(chunk, batch, bytesG1))
}

// sumByVectors has the vector kernels add up the points of class One.
func (e *Engine) sumByVectors(ctx context.Context, sc *alloc.Scope, q curve.Query, classes []curve.Class, workers int) (p pointG1, err error) {
	buf, err := alloc.Make[byte](sc, e.VecG1.SumScratch(workers), alloc.Bucket, alloc.Secret|alloc.Dirty)
	if err != nil {
		return p, err
	}
	defer buf.Release()
	keep := func(j int) bool { return classes[q.Wire(j)] == curve.One }
	out := unsafe.Slice((*uint64)(unsafe.Pointer(&p)), bytesG1/8)
	err = e.VecG1.Sum(ctx, q.Points.Data, keep, workers, buf.Slice(), out)
	return p, err
}

// SumG1 is the plain sum of the points of q whose wire is of class One. The
// points are streamed: the scratch does not grow with their number.
func (e *Engine) SumG1(ctx context.Context, sc *alloc.Scope, q curve.Query, classes []curve.Class) (curve.G1, error) {
	p, err := e.sumG1(ctx, sc, q, classes)
	if err != nil {
		return curve.G1{}, fmt.Errorf("batch addition: %w", err)
	}
	return valueG1(&p), nil
}

func (e *Engine) sumG1(ctx context.Context, sc *alloc.Scope, q curve.Query, classes []curve.Class) (pointG1, error) {
	t, err := newTermsG1(q, nil, nil)
	if err != nil {
		return pointG1{}, err
	}
	if err := checkWires(q, len(classes)); err != nil {
		return pointG1{}, err
	}
	if t.n <= tinyG1 {
		var acc xyzzG1
		for j := range t.n {
			if classes[q.Wire(j)] == curve.One {
				acc.addAffine(&t.points[j])
			}
		}
		return acc.affine(), ctx.Err()
	}
	workers, chunk, batch := e.sumLayout(t.n)
	end, err := e.turn(ctx, t.n)
	if err != nil {
		return pointG1{}, err
	}
	defer end()
	if e.vectorSum(t.n) {
		return e.sumByVectors(ctx, sc, q, classes, workers)
	}
	buf, err := alloc.Make[pointG1](sc, workers*(chunk+1), alloc.Bucket, alloc.Secret|alloc.Dirty)
	if err != nil {
		return pointG1{}, err
	}
	defer buf.Release()
	trees, held, err := makeTreesG1(sc, workers, chunk, batch)
	if err != nil {
		return pointG1{}, err
	}
	defer func() {
		for _, r := range held {
			r.Release()
		}
	}()
	pts := buf.Slice()
	for i := range trees {
		trees[i].area = uint32(workers + i*chunk)
	}
	// A worker's chunk begins with the sum of its chunks before.
	filled := make([]int, workers)
	flush := func(worker, out int) {
		t := &trees[worker]
		t.sum(pts, append(t.runs[:0], window.Run{Out: uint32(out), N: uint32(filled[worker])}))
	}
	err = par.Blocks(ctx, workers, t.n, blockLen, func(worker, from, to int) error {
		area := int(trees[worker].area)
		n := filled[worker]
		for j := from; j < to; j++ {
			if classes[q.Wire(j)] != curve.One {
				continue
			}
			if n == chunk {
				filled[worker] = n
				flush(worker, area)
				n = 1
			}
			pts[area+n] = t.points[j]
			n++
		}
		filled[worker] = n
		return nil
	})
	if err != nil {
		return pointG1{}, err
	}
	err = par.Run(workers, func(worker int) error {
		pts[worker] = pointG1{}
		if filled[worker] > 0 {
			flush(worker, worker)
		}
		return nil
	})
	if err != nil {
		return pointG1{}, err
	}
	var acc xyzzG1
	for i := range workers {
		acc.addAffine(&pts[i])
	}
	return acc.affine(), nil
}
