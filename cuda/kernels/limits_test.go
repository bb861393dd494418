package kernels

import (
	"errors"
	"math/big"
	"slices"
	"testing"
	"unsafe"

	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// TestMoreTermsThanPlanned has counts on the device above what was said of them:
// the context ends, since a sum without some of its terms would be wrong.
func TestMoreTermsThanPlanned(t *testing.T) {
	if emulator.Real() {
		t.Skip("breaks the card's context")
	}
	const n = 40
	for _, c := range []struct {
		name  string
		count uint32
		queue func(r *rig, m *MSM, count, mem gpu.Ptr, out unsafe.Pointer) error
	}{
		{"sort", n, func(r *rig, m *MSM, count, mem gpu.Ptr, _ unsafe.Pointer) error {
			p, err := m.sort.Plan(n, 6)
			if err == nil {
				_, err = m.sort.Run(r.st, r.args, p, Terms{Scalars: mem, Count: count, Most: n}, mem+n*curve.ScalarBytes)
			}
			return err
		}},
		{"several passes", n, func(r *rig, m *MSM, count, mem gpu.Ptr, _ unsafe.Pointer) error {
			p, err := m.PlanWindows(n/2, 6)
			if err == nil {
				list := WireList{N: n}
				err = m.Begin(r.st, r.args, p, mem+1<<20).Add(mem, Terms{Scalars: mem, List: list, Count: count, Most: n})
			}
			return err
		}},
		{"plain sum", n, func(r *rig, m *MSM, count, mem gpu.Ptr, out unsafe.Pointer) error {
			p := m.SumPlan(n)
			return m.Sum(r.st, r.args, p, mem, mem, count, n, mem+1<<20, out)
		}},
	} {
		for _, more := range []uint32{0, 1} {
			t.Run(c.name, func(t *testing.T) {
				r := newRig(t, emulator.TestDevice(t), curve.BN254)
				m, err := r.set.MSM(curve.InG1)
				if err != nil {
					t.Fatal(err)
				}
				mem := r.room(t, 16<<20)
				if err := r.st.Fill(mem, 0, 1<<20); err != nil {
					t.Fatal(err)
				}
				out, err := r.dev.AllocPinned(1 << 20)
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := r.dev.FreePinned(out); err != nil {
						t.Error(err)
					}
				}()
				// The context may have ended before all is queued.
				if err = c.queue(r, m, up(t, r, []uint32{c.count + more}), mem, out); err == nil {
					err = r.st.Sync()
				}
				if more == 0 {
					if err != nil {
						t.Fatalf("as many as planned: %v", err)
					}
					return
				}
				if !errors.Is(err, gpu.ErrSticky) {
					t.Errorf("one more than planned: %v", err)
				}
				if err := r.dev.Reset(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestSortTakesAnyScalar has scalars that are not reduced: all numbers of 256
// bits are taken modulo r.
func TestSortTakesAnyScalar(t *testing.T) {
	dev := emulator.TestDevice(t)
	for _, id := range curve.All() {
		r := newRig(t, dev, id)
		modulus := id.ScalarModulus()
		limit := new(big.Int).Lsh(big.NewInt(1), 256)
		var s []curve.Scalar
		for v := new(big.Int); v.Cmp(limit) < 0; v.Add(v, modulus) {
			for d := int64(-2); d <= 2; d++ {
				x := new(big.Int).Add(v, big.NewInt(d))
				x.Mod(x, limit)
				var w curve.Scalar
				for j := range w {
					w[j] = new(big.Int).Rsh(x, uint(64*j)).Uint64()
				}
				s = append(s, w)
			}
		}
		for i := range uint64(100) {
			s = append(s, curve.Scalar{mix(i), mix(i + 200), mix(i + 400), mix(i+600) | i<<63})
		}
		for _, c := range []int{6, 11} {
			sortCase{c: c, n: len(s), most: len(s), scalars: s, count: -1}.check(t, r)
		}
	}
}

// TestSortRepeats picks points several times.
func TestSortRepeats(t *testing.T) {
	r := newRig(t, emulator.TestDevice(t), curve.BLS12381)
	pick := make([]uint32, 900)
	for i := range pick {
		pick[i] = uint32(i * i % 7)
	}
	s := drawn(curve.BLS12381, Uniform, 3, 7)
	for _, points := range []int{7, 0} {
		sortCase{c: 8, n: 900, most: 900, scalars: s, pick: pick, points: points, count: -1}.check(t, r)
	}
}

func TestLimitsOfPlans(t *testing.T) {
	for _, lmax := range []int{-1, sortLengths, 1 << 20} {
		if _, err := PlanSort(curve.BN254, 100, 8, lmax); err == nil {
			t.Errorf("tasks of %d points pass", lmax)
		}
	}
	if p, err := PlanSort(curve.BN254, 100, 8, sortLengths-1); err != nil || p.Lmax != sortLengths-1 {
		t.Errorf("the longest tasks: %v", err)
	}
	for _, id := range curve.All() {
		for _, g := range []curve.Group{curve.InG1, curve.InG2} {
			if _, err := PlanMSM(0, id, g, 1000, 1<<30); err != nil {
				t.Errorf("a plan for a card that does not say how many SMs it has: %v", err)
			}
			if p := PlanSum(0, id, g, 1000); p.threads == 0 || p.results == 0 {
				t.Errorf("a sum there: %+v", p)
			}
		}
	}
	w := &Wires{}
	if err := w.Classify(nil, nil, 0, 1<<31+1, 0, 0); err == nil {
		t.Error("so many scalars are classified that their numbers overflow")
	}
	if err := new(MSM).Sum(nil, nil, SumPlan{N: 5}, 1, 0, 0, 5, 1, nil); err == nil {
		t.Error("a sum of no list is queued")
	}
}

// TestSharedMemoryOfSmallerCards: compute capability 8.6, 8.9 and 12.0 give a
// block 99 KiB, 8.0 and 9.0 more.
func TestSharedMemoryOfSmallerCards(t *testing.T) {
	const most = 99 << 10
	for _, id := range curve.All() {
		for _, g := range []curve.Group{curve.InG1, curve.InG2} {
			if s := shapeOf(id, g); s.threads*s.adder > most || s.pairThreads*s.pair > most {
				t.Errorf("%v %v: %+v", id, g, s)
			}
		}
		for c := MinSortBits; c <= MaxSortBits; c++ {
			for log := 0; log <= 28; log++ {
				if p, err := PlanSort(id, 1<<log, c, 0); err == nil && 4*p.partitions > most {
					t.Errorf("%v, 2^%d, windows of %d: %d partitions", id, log, c, p.partitions)
				}
			}
		}
	}
	if emulator.Real() {
		return
	}
	dev := emulator.TestDevice(t, emulator.Config{Cards: []emulator.Card{{Major: 8, Minor: 6, SMs: 3, Shared: most}}})
	for _, id := range curve.All() {
		r := newRig(t, dev, id)
		for _, g := range []curve.Group{curve.InG1, curve.InG2} {
			m, err := r.set.MSM(g)
			if err != nil {
				t.Fatal(err)
			}
			p, err := m.PlanWindows(20, 6)
			if err != nil {
				t.Fatal(err)
			}
			out, err := dev.AllocPinned(p.Out)
			if err != nil {
				t.Fatal(err)
			}
			// points of nothing
			points, scalars := up(t, r, make([]byte, 20*id.PointBytes(g))), up(t, r, drawn(id, Uniform, 1, 20))
			run := m.Begin(r.st, r.args, p, r.room(t, p.Scratch))
			for _, err := range []error{
				run.Add(points, Terms{Scalars: scalars, List: WireList{N: 20}, Most: 20}), run.End(out), r.st.Sync(),
			} {
				if err != nil {
					t.Errorf("%v %v: %v", id, g, err)
				}
			}
			sums := unsafe.Slice((*byte)(out), p.Out)
			if slices.ContainsFunc(sums, func(b byte) bool { return b != 0 }) {
				t.Errorf("%v %v: a sum of nothing is not 0", id, g)
			}
			if err := dev.FreePinned(out); err != nil {
				t.Error(err)
			}
		}
		for _, s := range []int{8 * sortTile, 6 * sortTile} {
			sortCase{c: 12, n: s / 64, most: s / 64, scalars: drawn(id, Uniform, 1, s/64), count: -1}.check(t, r)
		}
	}
}

// resets is a device that is reset while it loads a module.
type resets struct {
	gpu.Device
	late       bool
	generation uint64
}

func (d *resets) Generation() uint64 { return d.generation }
func (d *resets) Load(name string, image []byte) (gpu.Module, error) {
	m, err := d.Device.Load(name, image)
	if d.late {
		d.generation++
		d.late = false
	}
	return m, err
}

func TestSetIsResetWhileItLoads(t *testing.T) {
	dev := &resets{Device: emulator.TestDevice(t), late: true}
	set := NewSet(dev, curve.BN254)
	if k, err := set.FillKernels(); !errors.Is(err, gpu.ErrReset) {
		t.Errorf("kernels of an unknown generation: %v, %v", k, err)
	}
	a, err := set.FillKernels()
	if err != nil {
		t.Fatal(err)
	}
	// Others may be using it: it must not be unloaded under them.
	if b, err := set.FillKernels(); err != nil || a != b {
		t.Errorf("loaded a second time: %v", err)
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
}
