package kernels

import (
	"slices"
	"testing"

	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
	"pgregory.net/rapid"
)

// classesOf is what Classify makes, in plain Go.
func classesOf(id curve.ID, s []curve.Scalar) ([]curve.Class, [3]uint32) {
	one := FillScalar(id, Ones, 0, 0)
	out := make([]curve.Class, len(s))
	var counts [3]uint32
	for i := range s {
		switch {
		case s[i].IsZero():
		case s[i] == one:
			out[i] = curve.One
		default:
			out[i] = curve.Other
		}
		counts[out[i]]++
	}
	return out, counts
}

// near are scalars that differ from 0 and from 1 in one bit of any limb.
func near(id curve.ID) []curve.Scalar {
	var out []curve.Scalar
	for _, kind := range []Kind{Zeros, Ones} {
		for limb := range 8 {
			s := FillScalar(id, kind, 0, 0)
			s[limb/2] ^= 1 << (limb % 2 * 32)
			out = append(out, s)
		}
	}
	return append(out, curve.Scalar{}, FillScalar(id, Ones, 0, 0))
}

func TestClassify(t *testing.T) {
	dev := emulator.TestDevice(t)
	for _, id := range curve.All() {
		r := newRig(t, dev, id)
		w, err := r.set.Wires()
		if err != nil {
			t.Fatal(err)
		}
		all := slices.Concat(near(id), drawn(id, Bits, 1, 5000))
		for _, n := range []int{0, 1, 2, 18, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, len(all)} {
			s := all[:n]
			want, counts := classesOf(id, s)
			free := r.mark()
			classes, total := r.room(t, int64(n)+64), r.room(t, 12)
			if err := w.Classify(r.st, r.args, up(t, r, s), n, classes, total); err != nil {
				t.Fatal(err)
			}
			got := down[byte](t, r, classes, n+64)
			if !slices.Equal(got[:n], want) {
				t.Errorf("%v: %d scalars are of classes %v, not %v", id, n, got[:n], want)
			}
			if slices.ContainsFunc(got[n:], func(b byte) bool { return b != 0xa5 }) {
				t.Errorf("%v: more than %d bytes were written", id, n)
			}
			if c := down[uint32](t, r, total, 3); [3]uint32(c) != counts {
				t.Errorf("%v: counts of %d scalars are %v, not %v", id, n, c, counts)
			}
			free()
		}
	}
}

func TestSplit(t *testing.T) {
	dev := emulator.TestDevice(t)
	r := newRig(t, dev, curve.BLS12381)
	w, err := r.set.Wires()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		free := r.mark()
		defer free()
		total := rapid.IntRange(1, 9000).Draw(t, "wires")
		share := rapid.IntRange(0, 100).Draw(t, "share of others")
		seed := rapid.Uint64().Draw(t, "seed")
		classes := make([]byte, total)
		for i := range classes {
			if d := mix(seed+uint64(i)) % 300; d < uint64(3*share) {
				classes[i] = curve.Other
			} else {
				classes[i] = byte(d & 1)
			}
		}
		var wires []uint32
		q := WireList{N: rapid.IntRange(0, total).Draw(t, "points")}
		if rapid.Bool().Draw(t, "listed") {
			wires = make([]uint32, q.N)
			for j := range wires {
				wires[j] = uint32(mix(seed^uint64(j)) % uint64(total))
			}
			q.Wires = up(t, r, wires)
		} else {
			q.First = uint32(rapid.IntRange(0, total-q.N).Draw(t, "first"))
		}
		var want [2][]uint32
		for j := range q.N {
			k := q.First + uint32(j)
			if wires != nil {
				k = wires[j]
			}
			if c := classes[k]; c != curve.Zero {
				want[c-1] = append(want[c-1], uint32(j))
			}
		}
		var lists, counts [2]gpu.Ptr
		for i := range lists {
			counts[i] = r.room(t, 4)
			if rapid.IntRange(0, 3).Draw(t, "unwanted") != 0 {
				lists[i] = r.room(t, 4*int64(q.N))
			}
		}
		if err := w.Split(r.st, r.args, up(t, r, classes), q, lists[0], counts[0], lists[1], counts[1]); err != nil {
			t.Fatal(err)
		}
		for i, list := range lists {
			n := down[uint32](t, r, counts[i], 1)[0]
			if list == 0 {
				if n != 0xa5a5a5a5 {
					t.Fatalf("the length of an unwanted list is %d", n)
				}
				continue
			}
			if int(n) != len(want[i]) {
				t.Fatalf("%d of class %d, not %d", n, i+1, len(want[i]))
			}
			got := down[uint32](t, r, list, int(n))
			slices.Sort(got)
			if !slices.Equal(got, want[i]) {
				t.Fatalf("points of class %d are %v, not %v", i+1, got, want[i])
			}
		}
	})
}

// TestFill holds the kernel against its twin.
func TestFill(t *testing.T) {
	dev := emulator.TestDevice(t)
	for _, id := range curve.All() {
		r := newRig(t, dev, id)
		f, err := r.set.Fill()
		if err != nil {
			t.Fatal(err)
		}
		modulus := id.ScalarModulus()
		for kind := range Kinds {
			const n, first = 300, 1<<33 + 5
			free := r.mark()
			p := r.room(t, n*curve.ScalarBytes)
			if err := f.Scalars(r.st, r.args, kind, 11, first, n, p); err != nil {
				t.Fatal(err)
			}
			for i, got := range down[curve.Scalar](t, r, p, n) {
				if want := FillScalar(id, kind, 11, first+uint64(i)); got != want {
					t.Fatalf("%v: scalar %d of %v is %x, not %x", id, i, kind, got, want)
				}
				if bigOf(got).Cmp(modulus) >= 0 {
					t.Fatalf("%v: scalar %d of %v is not below r", id, i, kind)
				}
			}
			free()
		}
		one := FillScalar(id, Ones, 0, 0)
		f256 := newReference(id, 8)
		if v := bigOf(one); v.Mul(v, f256.inverse).Mod(v, modulus).Uint64() != 1 || v.BitLen() != 1 {
			t.Errorf("%v: 1 is %v", id, v)
		}
	}
}
