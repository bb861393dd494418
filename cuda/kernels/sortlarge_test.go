package kernels

import (
	"cmp"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	blsfr "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	bnfr "github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// plainWords takes a scalar out of Montgomery form.
func plainWords(id curve.ID, s curve.Scalar) [4]uint64 {
	if id == curve.BN254 {
		return (*bnfr.Element)(&s).Bits()
	}
	return (*blsfr.Element)(&s).Bits()
}

// parallel does f for 0 … n−1 on all processors.
func parallel(n int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// TestSortLarge makes the scalars on the device, and puts them together again
// from the buckets.
func TestSortLarge(t *testing.T) {
	type size struct{ n, c int }
	sizes := []size{{20011, 11}}
	if emulator.Real() {
		sizes = []size{{1<<18 + 1, 13}, {1<<20 + 12345, 16}, {1<<22 - 1, 17}, {1 << 24, 20}}
		if !testing.Short() {
			sizes = append(sizes, size{1 << 26, 22})
		}
	}
	dev := emulator.TestDevice(t)
	for i, s := range sizes {
		for _, kind := range []Kind{Uniform, Bits, Eight} {
			id := curve.All()[(i+int(kind))%2]
			if kind != Uniform && s.n > 1<<24 {
				continue
			}
			t.Run(fmt.Sprintf("%v/%d/%d/%v", id, s.n, s.c, kind), func(t *testing.T) {
				sortLarge(t, newRig(t, dev, id), s.n, s.c, kind)
			})
		}
	}
}

func sortLarge(t *testing.T, r *rig, n, c int, kind Kind) {
	s, err := r.set.Sort()
	if err != nil {
		t.Fatal(err)
	}
	f, err := r.set.Fill()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := s.Plan(n, c)
	if err != nil {
		t.Fatal(err)
	}
	mem, scratch := r.room(t, int64(n)*curve.ScalarBytes), r.room(t, plan.Scratch)
	if err := f.Scalars(r.st, r.args, kind, 5, 0, n, mem); err != nil {
		t.Fatal(err)
	}
	b, err := s.Run(r.st, r.args, plan, Terms{Scalars: mem, Most: n}, scratch)
	if err != nil {
		t.Fatal(err)
	}
	index := down[uint32](t, r, b.Index, plan.N*plan.W)
	length := down[uint32](t, r, b.Len, plan.MaxTasks)
	start := down[uint32](t, r, b.Start, plan.MaxTasks)
	order := down[uint32](t, r, b.Order, plan.MaxTasks)[:down[uint32](t, r, b.NTasks, 1)[0]]
	heavy := down[[4]uint32](t, r, b.Heavy, plan.MaxHeavy)[:down[uint32](t, r, b.NHeavy, 1)[0]]

	digits := make([][]int32, plan.W)
	var wrong atomic.Int64
	parallel(plan.W, func(w int) {
		d := make([]int32, n)
		for k := range 1 << (c - 1) {
			slot := w<<(c-1) + k
			for _, e := range index[start[slot] : start[slot]+length[slot]] {
				p, v := e&(1<<31-1), int32(k+1)
				if e>>31 != 0 {
					v = -v
				}
				if int(p) >= n || d[p] != 0 {
					wrong.Add(1)
					continue
				}
				d[p] = v
			}
		}
		digits[w] = d
	})
	const block = 4096
	parallel((n+block-1)/block, func(i int) {
		for p := i * block; p < min(n, (i+1)*block); p++ {
			if together(r.set.id, digits, p, c) != plainWords(r.set.id, FillScalar(r.set.id, kind, 5, uint64(p))) {
				wrong.Add(1)
			}
		}
	})
	if n := wrong.Load(); n != 0 {
		t.Fatalf("%d entries or scalars are wrong", n)
	}
	covered := make([]uint8, plan.N*plan.W)
	for _, slot := range order {
		for e := start[slot]; e < start[slot]+length[slot]; e++ {
			covered[e]++
		}
	}
	var all, chunks int
	for _, n := range length[:plan.NB] {
		all += int(n)
	}
	for _, h := range heavy {
		chunks += int(h[2])
	}
	for e, n := range covered {
		if n != 1 && e < all || n != 0 && e >= all {
			t.Fatalf("entry %d of %d is in %d tasks", e, all, n)
		}
	}
	for i := 1; i < len(order); i++ {
		if min(length[order[i]], sortLengths-1) > min(length[order[i-1]], sortLengths-1) {
			t.Fatalf("task %d is longer than the one before", i)
		}
	}
	t.Logf("%d entries in %d tasks, %d heavy buckets in %d chunks; scratch %d MiB, of it kept %d", all, len(order), len(heavy), chunks, plan.Scratch>>20, plan.Keep>>20)
}

// together is Σ digit·2^(cw) mod r of a point.
func together(id curve.ID, digits [][]int32, p, c int) [4]uint64 {
	var v [5]uint64 // two's complement
	for w := len(digits) - 1; w >= 0; w-- {
		for j := 4; j > 0; j-- {
			v[j] = v[j]<<c | v[j-1]>>(64-c)
		}
		v[0] <<= c
		d := int64(digits[w][p])
		var carry uint64
		v[0], carry = bits.Add64(v[0], uint64(d), 0)
		for j := 1; j < 5; j++ {
			v[j], carry = bits.Add64(v[j], uint64(d>>63), carry)
		}
	}
	if v[4]>>63 != 0 {
		r, _ := words64(id)
		var carry uint64
		for j := range 4 {
			v[j], carry = bits.Add64(v[j], r[j], carry)
		}
		v[4] += carry
	}
	if v[4] != 0 {
		return [4]uint64{^uint64(0)}
	}
	return [4]uint64(v[:4])
}

// phases takes the time between marks on a stream, in the order of their first
// appearance; a phase's times add up.
type phases struct {
	r      *rig
	events []gpu.Event
	names  []string
}

func (p *phases) mark(name string) error {
	e, err := p.r.dev.NewEvent(true)
	if err != nil {
		return err
	}
	p.events, p.names = append(p.events, e), append(p.names, name)
	return p.r.st.Record(e)
}

func (p *phases) end() (ms map[string]float64, err error) {
	ms = map[string]float64{}
	if err := p.r.st.Sync(); err != nil {
		return nil, err
	}
	for i := 1; i < len(p.events); i++ {
		d, err := p.events[i].Since(p.events[i-1])
		if err != nil {
			return nil, err
		}
		ms[p.names[i]] += d
		ms["all"] += d
	}
	for _, e := range p.events {
		if err := e.Close(); err != nil {
			return nil, err
		}
	}
	p.events, p.names = nil, nil
	return ms, nil
}

// BenchmarkSort prints the milliseconds of each phase, medians; on a card:
//
//	SNARKLINE_TEST_DEVICE=cuda:0 kernels.test -test.run '^$' -test.bench Sort -test.benchtime 9x
func BenchmarkSort(b *testing.B) {
	sizes := [][2]int{{10, 7}, {14, 10}, {18, 13}, {20, 16}, {22, 17}, {24, 20}, {26, 22}, {27, 22}}
	if !emulator.Real() {
		sizes = sizes[:1]
	}
	dev := emulator.TestDevice(b)
	for _, s := range sizes {
		for _, kind := range []Kind{Uniform, Ones, Equal, Bits} {
			b.Run(fmt.Sprintf("2^%d/c%d/%v", s[0], s[1], kind), func(b *testing.B) {
				benchSort(b, newRig(b, dev, curve.BLS12381), 1<<s[0], s[1], kind)
			})
		}
	}
}

func benchSort(b *testing.B, r *rig, n, c int, kind Kind) {
	s, err := r.set.Sort()
	if err != nil {
		b.Fatal(err)
	}
	f, err := r.set.Fill()
	if err != nil {
		b.Fatal(err)
	}
	plan, err := s.Plan(n, c)
	if err != nil {
		b.Fatal(err)
	}
	mem, scratch := r.room(b, int64(n)*curve.ScalarBytes), r.room(b, plan.Scratch)
	if err := f.Scalars(r.st, r.args, kind, 5, 0, n, mem); err != nil {
		b.Fatal(err)
	}
	p := &phases{r: r}
	s.mark = p.mark
	defer func() { s.mark = nil }()
	times := map[string][]float64{}
	b.ResetTimer()
	for i := range b.N + 1 { // the first is not counted
		if err := p.mark("begin"); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Run(r.st, r.args, plan, Terms{Scalars: mem, Most: n}, scratch); err != nil {
			b.Fatal(err)
		}
		ms, err := p.end()
		if err != nil {
			b.Fatal(err)
		}
		if i == 0 {
			continue
		}
		for name, d := range ms {
			times[name] = append(times[name], d)
		}
	}
	for name, t := range times {
		slices.SortFunc(t, cmp.Compare[float64])
		b.ReportMetric(t[len(t)/2], name+"-ms")
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(plan.Scratch)/1e6, "scratch-MB")
}
