package kernels_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/big"
	"os"
	"testing"

	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/cuda/kernels"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// mixed are the logarithms of points in tens of which the second is the
// opposite of the first, the third the identity, the fifth and the ninth
// repeat the one before, and the sixth is the opposite of the fourth.
var mixed = logs{func(i int) (uint64, int) {
	t, base := i%10, uint64(i-i%10)+1
	switch t {
	case 1:
		return base, -1
	case 2:
		return 0, 0
	case 4:
		return base + 3, 1
	case 5:
		return base + 3, -1
	case 8:
		return base + 7, 1
	}
	return base + uint64(t), 1
}}

// points makes points of given logarithms with gnark-crypto.
func points(g group, l logs, n int) []byte {
	k := make([]curve.Scalar, n)
	for i := range k {
		v, sign := l.at(i)
		k[i] = montgomery(g.id, new(big.Int).Mul(new(big.Int).SetUint64(v), big.NewInt(int64(sign))))
	}
	if n == 0 {
		return nil
	}
	return g.times(k)
}

func words(v []uint32) []byte {
	b := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], x)
	}
	return b
}

// run makes a sum by a plan; add queues the terms.
func (p *place) run(g group, m *kernels.MSM, plan kernels.Plan, add func(r *kernels.Run) error) []byte {
	p.t.Helper()
	scratch, free := p.take(plan.Scratch)
	defer free()
	out := p.pinned(plan.Out)
	r := m.Begin(p.st, p.args, plan, scratch)
	p.must(add(r))
	p.must(r.End(out))
	p.must(p.st.Sync())
	if err := r.End(out); err == nil {
		p.t.Error("End twice gives no error")
	}
	return value(g, m, plan, out)
}

// each runs f for each group, with its kernels.
func each(t *testing.T, f func(t *testing.T, p *place, g group, m *kernels.MSM)) {
	// A block's threads start in order, backwards, or in an order that is drawn.
	dev := emulator.TestDevice(t, emulator.Config{Order: uint32(len(t.Name()) % 3)})
	for _, g := range groups() {
		t.Run(g.String(), func(t *testing.T) {
			p := newPlace(t, dev)
			set := kernels.NewSet(dev, g.id)
			t.Cleanup(func() { p.must(set.Close()) })
			m, err := set.MSM(g.g)
			p.must(err)
			f(t, p, g, m)
		})
	}
}

// full says that time is no matter: on a card, or when asked for. Otherwise the
// emulator runs a choice of the cases.
func full() bool { return emulator.Real() || os.Getenv("SNARKLINE_FULL_TESTS") == "1" }

func TestSums(t *testing.T) {
	sizes := []int{0, 1, 2, 3, 31, 1000, 4097}
	each(t, func(t *testing.T, p *place, g group, m *kernels.MSM) {
		most := sizes[len(sizes)-1]
		host := points(g, mixed, most)
		dev := p.upload(host)
		scalars := p.alloc(int64(most * curve.ScalarBytes))
		for _, n := range sizes {
			for k, kind := range kinds {
				first := g.id == curve.BLS12381 && g.g == curve.InG1
				chosen := kind == "uniform" && n < 4097 || kind == "edge" && n == 1000 || first && (n == 31 || n == 4097 && k == 0)
				if !full() && !chosen {
					continue
				}
				c := []int{6, 7, 8}[k%3]
				if n >= 1000 {
					c = 9 + n/4000
				}
				s := makeScalars(g.id, kind, n, uint64(n))
				p.copyIn(scalars, curve.Bytes(s))
				plan, err := m.PlanWindows(n, c)
				p.must(err)
				got := p.run(g, m, plan, func(r *kernels.Run) error {
					return r.Add(dev, kernels.Terms{Scalars: scalars, List: kernels.WireList{N: n}, Most: n})
				})
				want := g.msm(host[:n*g.size()], s)
				if !bytes.Equal(got, want) {
					t.Errorf("%d %s scalars, windows of %d: %x, want %x", n, kind, c, got, want)
				}
			}
		}
	})
}

func TestSumsOfAllWindows(t *testing.T) {
	each(t, func(t *testing.T, p *place, g group, m *kernels.MSM) {
		const n = 400
		host := points(g, mixed, n)
		dev := p.upload(host)
		s := makeScalars(g.id, "edge", n, 1)
		scalars := p.upload(curve.Bytes(s))
		want := g.msm(host, s)
		check := func(c, lmax, size int) {
			t.Helper()
			plan, err := m.PlanSegments(n, c, lmax, size)
			p.must(err)
			got := p.run(g, m, plan, func(r *kernels.Run) error {
				return r.Add(dev, kernels.Terms{Scalars: scalars, List: kernels.WireList{N: n}, Most: n})
			})
			if !bytes.Equal(got, want) {
				t.Errorf("windows of %d, tasks of %d, segments of %d: %x, want %x", c, lmax, size, got, want)
			}
		}
		step, most := 3, 9
		switch {
		case emulator.Real():
			step, most = 1, kernels.MaxSortBits
		case full():
			step, most = 1, 16
		case g.id == curve.BLS12381 && g.g == curve.InG1:
			step, most = 2, 16
		}
		for c := kernels.MinSortBits; c <= most; c += step {
			check(c, 0, 0)
		}
		for size := 2; size <= 32; size *= 4 {
			check(6, 2, size) // short tasks: most buckets are heavy
		}
	})
}

// TestHeavySums has buckets whose chunks make several groups.
func TestHeavySums(t *testing.T) {
	each(t, func(t *testing.T, p *place, g group, m *kernels.MSM) {
		n := 700
		if emulator.Real() {
			n = 50000
		}
		host := points(g, mixed, 700)
		for len(host) < n*g.size() {
			host = append(host, host[:min(len(host), n*g.size()-len(host))]...)
		}
		dev := p.upload(host)
		for _, kind := range []string{"equal", "one", "eight", "bits"} {
			if !full() && kind != "equal" && g.g == curve.InG2 {
				continue
			}
			s := makeScalars(g.id, kind, n, 1)
			scalars := p.upload(curve.Bytes(s))
			want := g.msm(host, s)
			plan, err := m.PlanSegments(n, 7, 2, 0)
			p.must(err)
			got := p.run(g, m, plan, func(r *kernels.Run) error {
				return r.Add(dev, kernels.Terms{Scalars: scalars, List: kernels.WireList{N: n}, Most: n})
			})
			if !bytes.Equal(got, want) {
				t.Errorf("%s scalars in tasks of 2: %x, want %x", kind, got, want)
			}
		}
	})
}

// TestSumsInParts streams points in chunks, some of them larger than a pass,
// and picks terms, with and without a count on the device and a list of wires.
func TestSumsInParts(t *testing.T) {
	each(t, func(t *testing.T, p *place, g group, m *kernels.MSM) {
		const n = 500
		host := points(g, mixed, n)
		dev := p.upload(host)
		s := makeScalars(g.id, "uniform", n+50, 3)
		scalars := p.upload(curve.Bytes(s))
		plan, err := m.PlanWindows(201, 6)
		p.must(err)
		size := g.size()

		t.Run("chunks", func(t *testing.T) {
			got := p.run(g, m, plan, func(r *kernels.Run) error {
				for from := 0; from < n; {
					k := min(1+from*12, n-from)
					err := r.Add(dev+gpu.Ptr(from*size), kernels.Terms{Scalars: scalars, List: kernels.WireList{First: uint32(from + 7), N: k}, Most: k})
					if err != nil {
						return err
					}
					from += k
				}
				return nil
			})
			if want := g.msm(host, s[7:n+7]); !bytes.Equal(got, want) {
				t.Errorf("%x, want %x", got, want)
			}
		})

		// Wire w of point j, in no order.
		wires, wanted := make([]uint32, n), make([]curve.Scalar, n)
		for j := range wires {
			wires[j] = uint32((j*j*13 + 5*j + 11) % (n + 50))
			wanted[j] = s[wires[j]]
		}
		list := kernels.WireList{Wires: p.upload(words(wires)), N: n}
		t.Run("wires", func(t *testing.T) {
			got := p.run(g, m, plan, func(r *kernels.Run) error {
				return r.Add(dev, kernels.Terms{Scalars: scalars, List: list, Most: n})
			})
			if want := g.msm(host, wanted); !bytes.Equal(got, want) {
				t.Errorf("%x, want %x", got, want)
			}
		})

		var pick []uint32
		for j := 0; j < n; j += 1 + j%3 {
			pick = append(pick, uint32(j))
		}
		picked := func(k int) []byte {
			var pts []byte
			var sc []curve.Scalar
			for _, j := range pick[:k] {
				pts = append(pts, host[int(j)*size:int(j+1)*size]...)
				sc = append(sc, wanted[j])
			}
			return g.msm(pts, sc)
		}
		pickMem := p.upload(words(pick))
		t.Run("pick", func(t *testing.T) {
			got := p.run(g, m, plan, func(r *kernels.Run) error {
				return r.Add(dev, kernels.Terms{Scalars: scalars, List: list, Pick: pickMem, Most: len(pick)})
			})
			if want := picked(len(pick)); !bytes.Equal(got, want) {
				t.Errorf("%x, want %x", got, want)
			}
		})
		for _, k := range []int{202, 0, 201, len(pick) - 1} {
			if !full() && k != 202 && g.g == curve.InG2 {
				continue
			}
			t.Run(fmt.Sprintf("pick %d", k), func(t *testing.T) {
				count := p.upload(words([]uint32{uint32(k)}))
				got := p.run(g, m, plan, func(r *kernels.Run) error {
					return r.Add(dev, kernels.Terms{Scalars: scalars, List: list, Pick: pickMem, Count: count, Most: len(pick)})
				})
				if want := picked(k); !bytes.Equal(got, want) {
					t.Errorf("%x, want %x", got, want)
				}
			})
		}
		t.Run("nothing", func(t *testing.T) {
			got := p.run(g, m, plan, func(r *kernels.Run) error { return nil })
			if !bytes.Equal(got, make([]byte, size)) {
				t.Errorf("the sum of nothing is %x", got)
			}
		})
	})
}

func TestPlainSums(t *testing.T) {
	each(t, func(t *testing.T, p *place, g group, m *kernels.MSM) {
		const n = 1500
		host := points(g, mixed, n)
		dev := p.upload(host)
		one := makeScalars(g.id, "one", n, 0)
		size := g.size()
		for _, k := range []int{0, 1, 2, 3, 31, 33, 700, n} {
			list := make([]uint32, k)
			var pts []byte
			for i := range list {
				j := (i*i*7 + i) % n
				if k == n {
					j = i
				}
				list[i] = uint32(j)
				pts = append(pts, host[j*size:(j+1)*size]...)
			}
			want := g.msm(pts, one[:k])
			mem, count := p.upload(words(append(list, 1<<30, 1<<30))), p.upload(words([]uint32{uint32(k)}))
			plan := m.SumPlan(n)
			scratch, out := p.alloc(plan.Scratch), p.pinned(plan.Out)
			for _, c := range []gpu.Ptr{0, count} {
				most := k
				if c != 0 {
					most = n
				}
				p.must(m.Sum(p.st, p.args, plan, dev, mem, c, most, scratch, out))
				p.must(p.st.Sync())
				if got := sumValue(g, m, plan, out); !bytes.Equal(got, want) {
					t.Errorf("sum of %d points (count %v): %x, want %x", k, c != 0, got, want)
				}
			}
		}
		if err := m.Sum(p.st, p.args, m.SumPlan(3), dev, dev, 0, 4, dev, nil); err == nil {
			t.Error("a sum of more points than planned is queued")
		}
	})
}
