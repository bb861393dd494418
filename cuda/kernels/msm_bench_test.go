package kernels_test

import (
	"bytes"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/cuda/kernels"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// TestLargeSums checks sums of a size that only a card can make, against the
// logarithms of their points.
func TestLargeSums(t *testing.T) {
	if !emulator.Real() {
		t.Skip("for a card: SNARKLINE_TEST_DEVICE=cuda:0")
	}
	each(t, func(t *testing.T, p *place, g group, m *kernels.MSM) {
		const most = 22
		set := kernels.NewSet(p.dev, g.id)
		t.Cleanup(func() { p.must(set.Close()) })
		pts := p.generator(set, g, 1<<most)
		scalars := p.alloc(32 << most)
		free, _, err := p.dev.Memory()
		p.must(err)
		for log := 10; log <= most; log += 3 {
			for i, kind := range kinds {
				n := 1<<log - i%3 // not always a power of two
				s := makeScalars(g.id, kind, n, uint64(log))
				p.copyIn(scalars, curve.Bytes(s))
				want := expected(g, func(i int) curve.Scalar { return s[i] }, sequence, n, nil)
				// The plan of choice, and one for little memory.
				plan, err := m.Plan(n, free/2)
				p.must(err)
				small, err := m.Plan(n, plan.Scratch/2)
				if err != nil || kind != "uniform" && kind != "bits" {
					small = plan
				}
				for _, plan := range []kernels.Plan{plan, small} {
					got := p.run(g, m, plan, func(r *kernels.Run) error {
						return r.Add(pts, kernels.Terms{Scalars: scalars, List: kernels.WireList{N: n}, Most: n})
					})
					if !bytes.Equal(got, want) {
						t.Errorf("%d %s scalars, windows of %d, passes of %d: %x, want %x", n, kind, plan.Sort.C, plan.N, got, want)
					}
					if small.N == plan.N {
						break
					}
				}
			}
		}
	})
}

// clock takes the times of a stream's phases.
type clock struct {
	p      *place
	events []gpu.Event
	names  []string
	next   int
}

func (c *clock) mark(phase string) error {
	if c.next == len(c.events) {
		e, err := c.p.dev.NewEvent(true)
		if err != nil {
			return err
		}
		c.p.t.Cleanup(func() { c.p.must(e.Close()) })
		c.events, c.names = append(c.events, e), append(c.names, "")
	}
	c.names[c.next] = phase
	c.next++
	return c.p.st.Record(c.events[c.next-1])
}

// read gives the milliseconds of each phase, and of all.
func (c *clock) read() map[string]float64 {
	ms := map[string]float64{}
	for i := 1; i < c.next; i++ {
		v, err := c.events[i].Since(c.events[i-1])
		c.p.must(err)
		ms[c.names[i]] += v
		ms["all"] += v
	}
	return ms
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// measure makes a sum some times and prints a line of medians.
func (p *place) measure(g group, m *kernels.MSM, plan kernels.Plan, name string, n int, pts, scalars gpu.Ptr, want []byte) {
	p.t.Helper()
	scratch, free := p.take(plan.Scratch)
	defer free()
	out := p.pinned(plan.Out)
	c := &clock{p: p}
	times := map[string][]float64{}
	var got []byte
	reps := 7
	if n >= 1<<26 {
		reps = 3
	}
	for i := range reps + 1 {
		p.must(p.st.Sync())
		c.next = 0
		start := time.Now()
		p.must(c.mark("start"))
		r := m.Begin(p.st, p.args, plan, scratch)
		r.MarkPhases(c.mark)
		p.must(r.Add(pts, kernels.Terms{Scalars: scalars, List: kernels.WireList{N: n}, Most: n}))
		p.must(r.End(out))
		p.must(p.st.Sync())
		sync := time.Now()
		got = value(g, m, plan, out)
		end := time.Now()
		if i == 0 {
			continue
		}
		for k, v := range c.read() {
			times[k] = append(times[k], v)
		}
		times["host"] = append(times["host"], float64(end.Sub(sync))/1e6)
		times["wall"] = append(times["wall"], float64(end.Sub(start))/1e6)
	}
	ok := "ok"
	if !bytes.Equal(got, want) {
		ok = "WRONG"
		p.t.Errorf("%v %s: %x, want %x", g, name, got, want)
	}
	ms := func(k string) float64 {
		if times[k] == nil {
			return 0
		}
		return median(times[k])
	}
	adds := float64(n) * float64(plan.Sort.W)
	fmt.Printf("| %-12v | %-14s | c %d W %d m %d L %d passes %d | %s | wall %.3f | sort %.3f | accumulate %.3f (%.2f G/s) | heavy %.3f | segments %.3f | tail %.3f | host %.3f | scratch %.2f GB |\n",
		g, name, plan.Sort.C, plan.Sort.W, plan.Segment(), plan.Sort.Lmax, (n+plan.N-1)/plan.N, ok,
		ms("wall"), ms("sort"), ms("accumulate"), adds/ms("accumulate")/1e6, ms("heavy"), ms("segments"), ms("tail"), ms("host"), float64(plan.Scratch)/1e9)
}

// BenchmarkSums prints a table for a card: sums by phase, plain sums, rates of
// the field. SNARKLINE_BENCH chooses parts by name, by commas: registers, field,
// g1, skewed, g2, plain, windows; SNARKLINE_BENCH_LOG is the largest size (26).
//
//	SNARKLINE_TEST_DEVICE=cuda:0 kernels.test -test.run '^$' -test.bench Sums -test.benchtime 1x
func BenchmarkSums(b *testing.B) {
	if !emulator.Real() {
		b.Skip("for a card: SNARKLINE_TEST_DEVICE=cuda:0")
	}
	dev := emulator.TestDevice(b)
	parts := strings.Split(os.Getenv("SNARKLINE_BENCH"), ",")
	want := func(part string) bool { return parts[0] == "" && part != "windows" || slices.Contains(parts, part) }
	most := 26
	if s := os.Getenv("SNARKLINE_BENCH_LOG"); s != "" {
		if _, err := fmt.Sscan(s, &most); err != nil {
			b.Fatal(err)
		}
	}
	for _, g := range groups() {
		b.Run(g.String(), func(b *testing.B) {
			p := newPlace(b, dev)
			set := kernels.NewSet(dev, g.id)
			b.Cleanup(func() { p.must(set.Close()) })
			start := time.Now()
			m, err := set.MSM(g.g)
			p.must(err)
			fmt.Printf("%v: kernels loaded in %.2f s\n", g, time.Since(start).Seconds())
			if want("registers") {
				fs, err := m.Functions()
				p.must(err)
				for _, f := range fs {
					fmt.Printf("  %-32s %3d registers, %d bytes of local memory\n", f.Name(), f.Registers(), f.Local())
				}
			}
			if want("field") && g.g == curve.InG1 {
				p.fieldRates(set)
			}
			p.sumTable(set, g, m, most, want)
		})
	}
}

func (p *place) fieldRates(set *kernels.Set) {
	k, err := set.FpcheckKernels()
	p.must(err)
	const steps = 400
	blocks := p.dev.Info().SMs * 4 * 6
	io := p.alloc(int64(blocks * 128 * set.Curve().FieldBytes()))
	p.must(p.st.Fill(io, 7, int64(blocks*128*set.Curve().FieldBytes())))
	for op, name := range []string{"products", "squares", "products, schoolbook"} {
		c := &clock{p: p}
		var best float64
		for range 4 {
			c.next = 0
			p.must(c.mark("start"))
			p.must(k.FpcheckRate(p.st, gpu.Linear(int64(blocks*128), 128), p.args, uint32(op), steps, io))
			p.must(c.mark("work"))
			p.must(p.st.Sync())
			best = max(best, float64(blocks*128*2*steps)/c.read()["work"]/1e6)
		}
		fmt.Printf("  %v: %.2f G %s/s\n", set.Curve(), best, name)
	}
}

func (p *place) sumTable(set *kernels.Set, g group, m *kernels.MSM, most int, want func(string) bool) {
	first := 20
	if g.g == curve.InG2 {
		first, most = 18, min(most, 22)
	}
	if !want("g1") && !want("g2") && !want("skewed") && !want("plain") && !want("windows") {
		return
	}
	pts := p.generator(set, g, 1<<most)
	scalars := p.alloc(32 << most)
	const seed = 42
	p.uniform(set, 1<<most, seed, scalars)
	free, _, err := p.dev.Memory()
	p.must(err)
	maker := newScalarMaker(g.id)
	uniform := func(i int) curve.Scalar { return maker.at(seed, uint64(i)) }
	for log := first; log <= most; log++ {
		n := 1 << log
		if log%2 == 1 && log != 27 {
			continue
		}
		if g.g == curve.InG1 && want("g1") || g.g == curve.InG2 && want("g2") {
			plan, err := m.Plan(n, free*3/4)
			p.must(err)
			value := expected(g, uniform, sequence, n, nil)
			p.measure(g, m, plan, fmt.Sprintf("2^%d", log), n, pts, scalars, value)
		}
		if want("windows") {
			value := expected(g, uniform, sequence, n, nil)
			best, err := m.Plan(n, free*3/4)
			p.must(err)
			for c := best.Sort.C - 2; c <= min(best.Sort.C+2, kernels.MaxSortBits); c++ {
				for _, size := range []int{8, 16, 32, 64} {
					plan, err := m.PlanSegments(n, c, 0, size)
					p.must(err)
					if plan.Scratch < free*3/4 {
						p.measure(g, m, plan, fmt.Sprintf("2^%d", log), n, pts, scalars, value)
					}
				}
			}
		}
		if want("plain") && g.g == curve.InG1 && log >= 22 {
			p.plainSum(g, m, n, pts)
		}
	}
	if log := min(most, 22); want("skewed") && g.g == curve.InG1 && log >= 22 {
		n := 1 << log
		plan, err := m.Plan(n, free*3/4)
		p.must(err)
		for _, kind := range kinds[1:] {
			s := makeScalars(g.id, kind, n, 1)
			p.copyIn(scalars, curve.Bytes(s))
			value := expected(g, func(i int) curve.Scalar { return s[i] }, sequence, n, nil)
			p.measure(g, m, plan, kind, n, pts, scalars, value)
		}
	}
}

// plainSum is the sum of about half of n points.
func (p *place) plainSum(g group, m *kernels.MSM, n int, pts gpu.Ptr) {
	var list []uint32
	for i := range n {
		if mix(uint64(i))&1 == 1 {
			list = append(list, uint32(i))
		}
	}
	mem, freeList := p.take(int64(4 * len(list)))
	defer freeList()
	p.copyIn(mem, curve.Bytes(list))
	plan := m.SumPlan(len(list))
	scratch, freeScratch := p.take(plan.Scratch)
	defer freeScratch()
	out := p.pinned(plan.Out)
	one := montgomery(g.id, big.NewInt(1))
	want := expected(g, func(int) curve.Scalar { return one }, sequence, len(list), func(j int) int { return int(list[j]) })
	var device, wall []float64
	c := &clock{p: p}
	var got []byte
	for i := range 10 {
		c.next = 0
		start := time.Now()
		p.must(c.mark("start"))
		p.must(m.Sum(p.st, p.args, plan, pts, mem, 0, len(list), scratch, out))
		p.must(c.mark("sum"))
		p.must(p.st.Sync())
		v := m.SumValue1(plan, out)
		got = curve.Bytes(v[:])[:g.size()]
		if i > 0 {
			wall = append(wall, float64(time.Since(start))/1e6)
			device = append(device, c.read()["sum"])
		}
	}
	ok := "ok"
	if !bytes.Equal(got, want) {
		ok = "WRONG"
		p.t.Errorf("the plain sum of %d points: %x, want %x", len(list), got, want)
	}
	ms := median(wall)
	fmt.Printf("| %-12v | plain sum of %d points | %s | wall %.3f ms (%.2f G additions/s) | device %.3f |\n", g, len(list), ok, ms, float64(len(list))/ms/1e6, median(device))
}
