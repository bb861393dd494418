package kernels

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// BenchmarkNTT prints medians in ms, by events of the device, for a card: run it
// with SNARKLINE_TEST_DEVICE=cuda:0 -test.run '^$' -test.bench NTT
// -test.benchtime 1x. It takes 24 GiB of device memory.
func BenchmarkNTT(b *testing.B) {
	if !emulator.Real() {
		b.Skip("it measures a card: set SNARKLINE_TEST_DEVICE=cuda:0")
	}
	dev := emulator.TestDevice(b)
	for _, id := range []curve.ID{curve.BLS12381, curve.BN254} {
		start := time.Now()
		n := newNTTBench(b, dev, id)
		fmt.Printf("%v on %s; kernels loaded in %.2f s; registers (local bytes):", id, dev.Info().Name, time.Since(start).Seconds())
		for _, f := range []gpu.Function{n.ntt.k.nttForwardFirstKernel, n.ntt.k.nttForwardKernel, n.ntt.k.nttInverseKernel, n.ntt.k.nttInverseLastKernel, n.ntt.k.nttTableLevelKernel} {
			fmt.Printf(" %s %d (%d)", f.Name(), f.Registers(), f.Local())
		}
		fmt.Printf("\n%-6s %9s %9s %9s %9s | quotient: %9s %9s %9s %9s | %9s %9s\n", "n", "forward", "coset", "inverse", "coset",
			"coset, f.", "coset", "monom., f.", "monomial", "tables", "MiB")
		for log := 18; log <= 27; log++ {
			n.row(log)
		}
		if id == curve.BLS12381 {
			fmt.Println("plans: forward on a coset, inverse")
			for log := 18; log <= 27; log++ {
				n.plans(log)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
}

// median is the middle of some runs of f after a first one.
func (b *nttBench) median(log int, f func() error) float64 {
	b.t.Helper()
	runs := 15
	if log >= 26 {
		runs = 5
	}
	var events []gpu.Event
	defer func() {
		for _, e := range events {
			b.must(e.Close())
		}
	}()
	for range 2 {
		e, err := b.dev.NewEvent(true)
		b.must(err)
		events = append(events, e)
	}
	var all []float64
	for i := range runs + 1 {
		b.must(b.st.Record(events[0]))
		b.must(f())
		b.must(b.st.Record(events[1]))
		b.must(events[1].Sync())
		ms, err := events[1].Since(events[0])
		b.must(err)
		if i > 0 {
			all = append(all, ms)
		}
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// vector is n random scalars on the device; they repeat.
func (b *nttBench) vector(n int) gpu.Ptr {
	b.t.Helper()
	p := b.alloc(int64(n) * curve.ScalarBytes)
	have := min(n, 1<<16)
	b.write(p, b.random(have))
	for ; have < n; have *= 2 {
		b.must(b.st.Copy(p+gpu.Ptr(have)*curve.ScalarBytes, p, int64(have)*curve.ScalarBytes))
	}
	b.must(b.st.Sync())
	return p
}

func (b *nttBench) row(log int) {
	b.t.Helper()
	n := 1 << log
	x, y, z, scratch := b.vector(n), b.vector(n), b.vector(n), b.alloc(b.ntt.ScratchBytes(log, curve.Monomial, true))
	defer b.free(x, y, z, scratch)
	fmt.Printf("2^%-4d", log)
	d := b.domain(log, curve.Coset)
	mem := b.alloc(b.ntt.TableBytes(d, curve.Coset))
	defer b.free(mem)
	var tab *Tables
	made := b.median(log, func() (err error) {
		tab, err = b.ntt.MakeTables(b.st, b.args, d, curve.Coset, mem)
		return err
	})
	for _, coset := range []bool{false, true} {
		fmt.Printf(" %9.4f", b.median(log, func() error { return b.ntt.Forward(b.st, b.args, tab, x, coset) }))
	}
	for _, coset := range []bool{false, true} {
		fmt.Printf(" %9.4f", b.median(log, func() error { return b.ntt.Inverse(b.st, b.args, tab, x, coset) }))
	}
	fmt.Printf(" |          ")
	for _, c := range []gpu.Ptr{0, z} {
		fmt.Printf(" %9.4f", b.median(log, func() error { return b.ntt.Quotient(b.st, b.args, tab, curve.Coset, x, y, c, 0) }))
	}
	tab, err := b.ntt.MakeTables(b.st, b.args, b.domain(log, curve.Monomial), curve.Monomial, mem)
	b.must(err)
	for _, c := range []gpu.Ptr{0, z} {
		fmt.Printf(" %9.4f", b.median(log, func() error { return b.ntt.Quotient(b.st, b.args, tab, curve.Monomial, x, y, c, scratch) }))
	}
	fmt.Printf(" | %9.4f %9.1f\n", made, float64(b.ntt.TableBytes(d, curve.Coset))/(1<<20))
}

// plans measures all plans of up to three passes.
func (b *nttBench) plans(log int) {
	b.t.Helper()
	defer func(old func(int) nttPlan) { b.ntt.plan = old }(b.ntt.plan)
	tab, mem := b.tables(b.domain(log, curve.Coset), curve.Coset)
	x := b.vector(1 << log)
	defer b.free(mem, x)
	fmt.Printf("2^%-4d", log)
	for _, rounds := range [][]int{{2}, {3}, {2, 2}, {2, 3}, {3, 2}, {3, 3}} {
		low := log
		for _, r := range rounds {
			low -= 3 * r
		}
		if low < 5 || low > nttTileLog {
			continue
		}
		b.ntt.plan = func(int) nttPlan { return nttPlan{low, rounds} }
		fmt.Printf("  %d+3·%v: %.4f %.4f", low, rounds,
			b.median(log, func() error { return b.ntt.Forward(b.st, b.args, tab, x, true) }),
			b.median(log, func() error { return b.ntt.Inverse(b.st, b.args, tab, x, false) }))
	}
	fmt.Println()
}
