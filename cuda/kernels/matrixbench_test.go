package kernels

import (
	"fmt"
	"slices"
	"testing"

	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
)

// BenchmarkMatrix prints medians in ms, by events of the device, for a card: rows
// of one term and of three near the diagonal, as in the synthetic circuits, and
// the comparison of a∘b with c. GB/s counts every byte that a row needs once.
func BenchmarkMatrix(b *testing.B) {
	dev := emulator.TestDevice(b)
	const log = 22
	for _, id := range curve.All() {
		r := newRig(b, dev, id)
		x, err := r.set.Matrix()
		if err != nil {
			b.Fatal(err)
		}
		f, err := r.set.Fill()
		if err != nil {
			b.Fatal(err)
		}
		const n = 1 << log
		w, out := r.room(b, n*curve.ScalarBytes), r.room(b, n*curve.ScalarBytes)
		if err := f.Scalars(r.st, r.args, Bits, 1, 0, n, w); err != nil {
			b.Fatal(err)
		}
		from, err := dev.NewEvent(true)
		if err != nil {
			b.Fatal(err)
		}
		to, err := dev.NewEvent(true)
		if err != nil {
			b.Fatal(err)
		}
		median := func(what string, bytes int64, work func() error) {
			var all []float64
			for range 7 {
				for _, err := range []error{r.st.Record(from), work(), r.st.Record(to), r.st.Sync()} {
					if err != nil {
						b.Fatal(err)
					}
				}
				ms, err := to.Since(from)
				if err != nil {
					b.Fatal(err)
				}
				all = append(all, ms)
			}
			slices.Sort(all)
			fmt.Printf("%v 2^%d, %s: %.3f ms, %.0f GB/s\n", id, log, what, all[3], float64(bytes)/all[3]/1e6)
		}
		for _, terms := range []int{1, 3, 12} {
			free := r.mark()
			m := nearMatrix(id, n, terms)
			p, err := PlanMatrix(id, m, n)
			if err != nil {
				b.Fatal(err)
			}
			scratch := r.room(b, p.Scratch())
			image := make([]byte, p.Bytes())
			_ = p.Parts(func(at int64, b []byte) error { copy(image[at:], b); return nil })
			mem := up(b, r, image)
			median(fmt.Sprintf("%d terms a row", terms), int64(n)*(4+32+int64(terms)*40), func() error {
				return x.Evaluate(r.st, r.args, p, mem, w, scratch, out, 0, n, InputRows{})
			})
			free()
		}
		row := r.room(b, 4)
		median("comparison", 3*n*curve.ScalarBytes, func() error { return x.Check(r.st, r.args, w, w, w, 0, n, row) })
		_, _ = from.Close(), to.Close()
	}
}

// nearMatrix has n rows of wires at most 4096 before the row's.
func nearMatrix(id curve.ID, n, terms int) curve.Matrix {
	_, minus := plusMinus(id)
	m := curve.Matrix{Rows: make([]uint32, 1, n+1), Coeffs: []curve.Scalar{FillScalar(id, Ones, 0, 0), FillScalar(id, Uniform, 1, 1), minus}}
	for i := range n {
		for range terms {
			d := mix(uint64(len(m.Terms)))
			m.Terms = append(m.Terms, curve.Term{Wire: uint32(max(i-int(d%4096), 0)), Coeff: uint32(d >> 40 % 3)})
		}
		m.Rows = append(m.Rows, uint32(len(m.Terms)))
	}
	return m
}
