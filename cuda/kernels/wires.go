package kernels

import (
	"fmt"

	"github.com/snarkline/snarkline/gpu"
)

// Wires classifies scalars and lists the points of a query by class.
type Wires struct {
	set *Set
	k   *WiresKernels
}

// Wires loads the kernels. What it returns is valid until the device is reset.
func (s *Set) Wires() (*Wires, error) {
	k, err := s.WiresKernels()
	if err != nil {
		return nil, err
	}
	return &Wires{set: s, k: k}, nil
}

const (
	wireThreads = 256
	wireItems   = 16 // points that a thread of a split looks at
)

// Classify queues the classification of n scalars (Montgomery form, reduced):
// a byte each, a curve.Class, and how many there are of each class, three
// uint32 on the device indexed by class.
func (w *Wires) Classify(st gpu.Stream, a *gpu.Args, scalars gpu.Ptr, n int, classes, counts gpu.Ptr) error {
	if n < 0 || n > 1<<31 {
		return fmt.Errorf("classify %d scalars: more than 2^31", n)
	}
	if err := st.Fill(counts, 0, 12); err != nil {
		return fmt.Errorf("queue the classification of %d scalars: %w", n, err)
	}
	shape := gpu.Linear(int64(n), 4*wireThreads)
	shape.Grid[0] = min(shape.Grid[0], uint32(8*max(w.set.dev.Info().SMs, 1)))
	shape.Block[0] = wireThreads
	if err := w.k.WiresClassify(st, shape, a, scalars, uint32(n), classes, counts); err != nil {
		return fmt.Errorf("queue the classification of %d scalars: %w", n, err)
	}
	if err := w.k.WiresZeros(st, gpu.Launch{Block: [3]uint32{32}}, a, counts); err != nil {
		return fmt.Errorf("queue the classification of %d scalars: %w", n, err)
	}
	return nil
}

// Split queues the lists of the points of q whose wires are of class One and of
// class Other, uint32 each, and their lengths, a uint32 each on the device. A
// list is 0 when it is not wanted; its length is then not touched. A list has
// room for q.N numbers. They are in no particular order, though close to that of
// the points.
func (w *Wires) Split(st gpu.Stream, a *gpu.Args, classes gpu.Ptr, q WireList, ones, nOnes, others, nOthers gpu.Ptr) error {
	if q.N < 0 || q.N > 1<<31 {
		return fmt.Errorf("split %d points: more than 2^31", q.N)
	}
	for _, l := range [2]struct{ list, count gpu.Ptr }{{ones, nOnes}, {others, nOthers}} {
		if l.list == 0 {
			continue
		}
		if err := st.Fill(l.count, 0, 4); err != nil {
			return fmt.Errorf("queue the split of %d points: %w", q.N, err)
		}
	}
	shape := gpu.Linear(int64(q.N), wireThreads*wireItems)
	shape.Block[0] = wireThreads
	if err := w.k.WiresSplit(st, shape, a, classes, q.Wires, q.First, uint32(q.N), ones, nOnes, others, nOthers); err != nil {
		return fmt.Errorf("queue the split of %d points: %w", q.N, err)
	}
	return nil
}
