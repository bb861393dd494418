package kernels_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/cuda/kernels"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// alike are points that meet their equals and opposites at every place of the
// trees that add them up.
var alike = map[string]logs{
	"all equal":     {func(int) (uint64, int) { return 5, 1 }},
	"all nothing":   {func(int) (uint64, int) { return 0, 0 }},
	"by turns":      {func(i int) (uint64, int) { return 5, 1 - 2*(i&1) }},
	"by halves":     {func(i int) (uint64, int) { return 5, 1 - 2*(i>>4&1) }},
	"with nothings": {func(i int) (uint64, int) { return 5, i % 3 % 2 }},
}

func TestSumsOfAlikePoints(t *testing.T) {
	each(t, func(t *testing.T, p *place, g group, m *kernels.MSM) {
		const n = 280
		size := g.size()
		for name, l := range alike {
			host := points(g, l, n)
			dev := p.upload(host)
			for _, kind := range []string{"one", "r-1", "eight"} {
				if !full() && (kind == "r-1" || kind == "eight" && g.g == curve.InG2) {
					continue
				}
				s := makeScalars(g.id, kind, n, 9)
				plan, err := m.PlanSegments(n, 6, 2, 4)
				p.must(err)
				scalars := p.upload(curve.Bytes(s))
				got := p.run(g, m, plan, func(r *kernels.Run) error {
					return r.Add(dev, kernels.Terms{Scalars: scalars, List: kernels.WireList{N: n}, Most: n})
				})
				if want := g.msm(host, s); !bytes.Equal(got, want) {
					t.Errorf("points %s, %s scalars: %x, want %x", name, kind, got, want)
				}
			}
			// each thread of a plain sum adds up several points, each warp several sums
			const listed = 1100
			list := make([]uint32, listed)
			var sum []byte
			for i := range list {
				list[i] = uint32(i % n)
				sum = append(sum, host[i%n*size:(i%n+1)*size]...)
			}
			sp := m.SumPlan(listed)
			out := p.pinned(sp.Out)
			p.must(m.Sum(p.st, p.args, sp, dev, p.upload(words(list)), 0, listed, p.alloc(sp.Scratch), out))
			p.must(p.st.Sync())
			if got, want := sumValue(g, m, sp, out), g.msm(sum, makeScalars(g.id, "one", listed, 0)); !bytes.Equal(got, want) {
				t.Errorf("plain sum of points %s: %x, want %x", name, got, want)
			}
		}
	})
}

// TestScratchHoldsAnything begins with scratch memory of several contents.
func TestScratchHoldsAnything(t *testing.T) {
	each(t, func(t *testing.T, p *place, g group, m *kernels.MSM) {
		const n = 150
		host := points(g, mixed, n)
		dev := p.upload(host)
		s := makeScalars(g.id, "bits", n, 4)
		scalars, list := p.upload(curve.Bytes(s)), make([]uint32, n)
		for i := range list {
			list[i] = uint32(i)
		}
		listed, count := p.upload(words(list)), p.upload(words([]uint32{n - 3}))
		plan, err := m.PlanSegments(100, 6, 3, 0) // two passes
		p.must(err)
		sp := m.SumPlan(n)
		scratch, out := p.alloc(max(plan.Scratch, sp.Scratch)), p.pinned(max(plan.Out, sp.Out))
		noise := make([]byte, max(plan.Scratch, sp.Scratch))
		rand.NewChaCha8([32]byte{1}).Read(noise) //nolint:errcheck // never fails
		want := g.msm(host[:(n-3)*g.size()], s[:n-3])
		plain := g.msm(host[:(n-3)*g.size()], makeScalars(g.id, "one", n-3, 0))
		for name, fill := range map[string]func(){
			"zeros": func() { clear(noise) },
			"ones": func() {
				for i := range noise {
					noise[i] = 0xff
				}
			},
			"noise": func() { rand.NewChaCha8([32]byte{2}).Read(noise) }, //nolint:errcheck // never fails
		} {
			fill()
			p.copyIn(scratch, noise)
			r := m.Begin(p.st, p.args, plan, scratch)
			p.must(r.Add(dev, kernels.Terms{Scalars: scalars, List: kernels.WireList{N: n}, Pick: listed, Count: count, Most: n}))
			p.must(r.End(out))
			p.must(p.st.Sync())
			if got := value(g, m, plan, out); !bytes.Equal(got, want) {
				t.Errorf("scratch of %s: %x, want %x", name, got, want)
			}
			p.copyIn(scratch, noise)
			p.must(m.Sum(p.st, p.args, sp, dev, listed, count, n, scratch, out))
			p.must(p.st.Sync())
			if got := sumValue(g, m, sp, out); !bytes.Equal(got, plain) {
				t.Errorf("scratch of %s, plain sum: %x, want %x", name, got, plain)
			}
		}
	})
}

// TestSumsSideBySide has several goroutines use one set, each with a stream.
func TestSumsSideBySide(t *testing.T) {
	dev := emulator.TestDevice(t)
	g := groups()[2]
	p := newPlace(t, dev)
	set := kernels.NewSet(dev, g.id)
	t.Cleanup(func() { p.must(set.Close()) })
	const n = 120
	host := points(g, mixed, n)
	points := p.upload(host)
	var wg sync.WaitGroup
	for w := range 4 {
		mine := newPlace(t, dev)
		s := makeScalars(g.id, "uniform", n, uint64(w))
		scalars, want := mine.upload(curve.Bytes(s)), g.msm(host, s)
		var scratch gpu.Ptr
		plan, err := kernels.PlanMSM(dev.Info().SMs, g.id, g.g, n, 1<<28)
		p.must(err)
		scratch, out := mine.alloc(plan.Scratch), mine.pinned(plan.Out)
		wg.Go(func() {
			if err := func() error {
				m, err := set.MSM(g.g)
				if err != nil {
					return err
				}
				for range 3 {
					r := m.Begin(mine.st, mine.args, plan, scratch)
					if err := r.Add(points, kernels.Terms{Scalars: scalars, List: kernels.WireList{N: n}, Most: n}); err != nil {
						return err
					}
					if err := r.End(out); err != nil {
						return err
					}
					if err := mine.st.Sync(); err != nil {
						return err
					}
					if got := value(g, m, plan, out); !bytes.Equal(got, want) {
						return fmt.Errorf("%x, want %x", got, want)
					}
				}
				return nil
			}(); err != nil {
				t.Errorf("goroutine %d: %v", w, err)
			}
		})
	}
	wg.Wait()
}
