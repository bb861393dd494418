package kernels

import (
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// A matrix on the device is, each part on a border of 256 bytes,
//
//	rows    as in curve.Matrix
//	terms   as in curve.Matrix
//	coeffs  as in curve.Matrix
//	chunks  two uint32 each: the first term of a chunk of a long row, and the one behind its last
//	longs   four uint32 each: a long row, its first chunk, how many it has, 0
//
// A row is long from matrixShort + 1 terms on. Chunks and long rows are in the
// rows' order.
const (
	matrixShort   = 8
	matrixThreads = 256
	// matrixChunk is the most terms of a chunk, 32 for each lane of its warp, but
	// in a row that would have more than matrixSums of them.
	matrixChunk = 1024
	// matrixSums is how many chunks are added up at a time.
	matrixSums = 1 << 17
	noCoeff    = ^uint32(0)
)

// MatrixPlan is a matrix with what the device needs to know of it. It is a view
// of the matrix, and does not change.
type MatrixPlan struct {
	m          curve.Matrix
	one, minus uint32 // of the coefficients 1 and −1; noCoeff: there is none
	chunks     [][2]uint32
	longs      [][4]uint32
	sums       uint32   // chunks that are added up at a time at most
	at         [5]int64 // of rows, terms, coeffs, chunks, longs
	bytes      int64
}

// PlanMatrix looks through m, whose terms name wires of a witness of so many. A
// matrix that names others, or coefficients that it has not, is an error: on a
// device it would read what is not there.
func PlanMatrix(id curve.ID, m curve.Matrix, wires int) (*MatrixPlan, error) {
	p := &MatrixPlan{m: m, one: noCoeff, minus: noCoeff, sums: matrixSums}
	if len(m.Rows) > 0 && (m.Rows[0] != 0 || int64(m.Rows[len(m.Rows)-1]) != int64(len(m.Terms))) || len(m.Rows) == 0 && len(m.Terms) > 0 {
		return nil, fmt.Errorf("the matrix's %d rows are not of its %d terms", m.NumRows(), len(m.Terms))
	}
	if len(m.Rows) > 1<<31 || len(m.Terms) > 1<<32-1 || len(m.Coeffs) > 1<<31 {
		return nil, fmt.Errorf("a matrix of %d rows and %d terms is too large for a device", m.NumRows(), len(m.Terms))
	}
	for i := range m.NumRows() {
		from, to := m.Rows[i], m.Rows[i+1]
		if to < from {
			return nil, fmt.Errorf("row %d of the matrix ends before it begins", i)
		}
		if to-from <= matrixShort {
			continue
		}
		first := len(p.chunks)
		step := max(matrixChunk, (uint64(to-from)+matrixSums-1)/matrixSums)
		for at := uint64(from); at < uint64(to); at += step {
			p.chunks = append(p.chunks, [2]uint32{uint32(at), uint32(min(at+step, uint64(to)))})
		}
		p.longs = append(p.longs, [4]uint32{uint32(i), uint32(first), uint32(len(p.chunks) - first)})
	}
	if bad := badTerm(m, wires); bad >= 0 {
		t := m.Terms[bad]
		return nil, fmt.Errorf("term %d of the matrix names wire %d of %d, coefficient %d of %d", bad, t.Wire, wires, t.Coeff, len(m.Coeffs))
	}
	r, one := words64(id)
	minus, _ := takeOff(r, one)
	for i, c := range m.Coeffs {
		switch c {
		case curve.Scalar(one):
			p.one = uint32(i)
		case curve.Scalar(minus):
			p.minus = uint32(i)
		}
	}
	for i, b := range p.parts() {
		p.at[i] = p.bytes
		p.bytes += (int64(len(b)) + 255) &^ 255
	}
	return p, nil
}

// badTerm is a term of m that names what is not there; −1 if there is none.
func badTerm(m curve.Matrix, wires int) int {
	var bad atomic.Int64
	bad.Store(-1)
	var wg sync.WaitGroup
	const step = 1 << 22
	for lo := 0; lo < len(m.Terms); lo += step {
		wg.Go(func() {
			for i, t := range m.Terms[lo:min(lo+step, len(m.Terms))] {
				if int64(t.Wire) >= int64(wires) || int64(t.Coeff) >= int64(len(m.Coeffs)) {
					bad.Store(int64(lo + i))
					return
				}
			}
		})
	}
	wg.Wait()
	return int(bad.Load())
}

func (p *MatrixPlan) parts() [5][]byte {
	return [5][]byte{curve.Bytes(p.m.Rows), plainBytes(p.m.Terms), curve.Bytes(p.m.Coeffs), plainBytes(p.chunks), plainBytes(p.longs)}
}

// plainBytes is the memory of values that hold no pointers.
func plainBytes[T any](v []T) []byte {
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(one)))
}

// Bytes is the device memory that the matrix takes.
func (p *MatrixPlan) Bytes() int64 { return p.bytes }

// NumRows is the matrix's.
func (p *MatrixPlan) NumRows() int { return p.m.NumRows() }

// Scratch is the device memory that Evaluate takes besides.
func (p *MatrixPlan) Scratch() int64 {
	return int64(min(len(p.chunks), int(p.sums))) * curve.ScalarBytes
}

// MatrixScratch bounds the scratch of any matrix.
const MatrixScratch = matrixSums * curve.ScalarBytes

// Parts calls f for what is to be copied to the device, and to where from the
// matrix's memory on, until f fails.
func (p *MatrixPlan) Parts(f func(at int64, b []byte) error) error {
	for i, b := range p.parts() {
		if len(b) == 0 {
			continue
		}
		if err := f(p.at[i], b); err != nil {
			return err
		}
	}
	return nil
}

// Matrix multiplies matrices on the device.
type Matrix struct {
	set *Set
	k   *MatrixKernels
}

// Matrix loads the kernels. What it returns is valid until the device is reset.
func (s *Set) Matrix() (*Matrix, error) {
	k, err := s.MatrixKernels()
	if err != nil {
		return nil, err
	}
	return &Matrix{set: s, k: k}, nil
}

// InputRows are rows of one wire each, wire 0 first, that follow a matrix from
// row From on.
type InputRows struct{ From, N int }

// Evaluate queues rows first … first + n − 1 of the matrix at mem times the
// witness w, reduced, to out. Rows behind the matrix's are in's, or 0. scratch
// has p.Scratch() bytes.
func (x *Matrix) Evaluate(st gpu.Stream, a *gpu.Args, p *MatrixPlan, mem, w, scratch, out gpu.Ptr, first, n int, in InputRows) error {
	if first < 0 || n < 0 || first+n > 1<<31 {
		return fmt.Errorf("evaluate rows %d to %d: no such rows", first, first+n-1)
	}
	part := func(i int) gpu.Ptr { return mem + gpu.Ptr(p.at[i]) }
	err := x.k.MatrixRows(st, gpu.Linear(int64(n), matrixThreads), a, part(0), part(1), part(2), w, out,
		uint32(first), uint32(n), uint32(p.NumRows()), uint32(in.From), uint32(in.N), p.one, p.minus)
	if err != nil {
		return fmt.Errorf("queue the evaluation of %d rows: %w", n, err)
	}
	lo := sort.Search(len(p.longs), func(i int) bool { return int(p.longs[i][0]) >= first })
	hi := sort.Search(len(p.longs), func(i int) bool { return int(p.longs[i][0]) >= first+n })
	for lo < hi {
		from := p.longs[lo][1]
		// as many rows as have room for their chunks
		n := sort.Search(hi-lo-1, func(i int) bool { l := p.longs[lo+1+i]; return l[1]+l[2]-from > p.sums }) + 1
		last := p.longs[lo+n-1]
		chunks := last[1] + last[2] - from
		err := x.k.MatrixChunks(st, gpu.Linear(32*int64(chunks), matrixThreads), a, part(3)+8*gpu.Ptr(from), chunks, part(1), part(2), w, scratch, p.one, p.minus)
		if err == nil {
			err = x.k.MatrixLong(st, gpu.Linear(32*int64(n), matrixThreads), a, part(4)+16*gpu.Ptr(lo), uint32(n), scratch, from, out, uint32(first))
		}
		if err != nil {
			return fmt.Errorf("queue the evaluation of %d long rows: %w", n, err)
		}
		lo += n
	}
	return nil
}

// Product queues z = x∘y for vectors of n scalars. z may be one of them.
func (x *Matrix) Product(st gpu.Stream, a *gpu.Args, u, v, z gpu.Ptr, n int) error {
	if n < 0 || n > 1<<31 {
		return fmt.Errorf("multiply vectors of %d scalars: more than 2^31", n)
	}
	if err := x.k.MatrixProduct(st, gpu.Linear(int64(n), matrixThreads), a, u, v, z, uint32(n)); err != nil {
		return fmt.Errorf("queue the product of vectors of %d scalars: %w", n, err)
	}
	return nil
}

// NoRow is what Check leaves of row where all hold.
const NoRow = ^uint32(0)

// Check queues the search for the first of n rows, which begin with row first,
// in which u∘v is not z: *row, a uint32 on the device, becomes that row if it is
// less. It begins as NoRow.
func (x *Matrix) Check(st gpu.Stream, a *gpu.Args, u, v, z gpu.Ptr, first, n int, row gpu.Ptr) error {
	if first < 0 || n < 0 || first+n > 1<<31 {
		return fmt.Errorf("compare rows %d to %d: no such rows", first, first+n-1)
	}
	if err := x.k.MatrixCheck(st, gpu.Linear(int64(n), matrixThreads), a, u, v, z, uint32(first), uint32(n), row); err != nil {
		return fmt.Errorf("queue the comparison of %d rows: %w", n, err)
	}
	return nil
}
