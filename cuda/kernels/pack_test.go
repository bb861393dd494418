package kernels

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"
	"unsafe"

	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"pgregory.net/rapid"
)

// plusMinus are 2 and −1 in Montgomery form.
func plusMinus(id curve.ID) (two, minus curve.Scalar) {
	r, one := words64(id)
	var carry, below uint64
	var d curve.Scalar
	for j := range two {
		two[j], carry = bits.Add64(one[j], one[j], carry)
		minus[j], below = bits.Sub64(r[j], one[j], below)
	}
	if t, low := takeOff(two, r); !low {
		two = t
	}
	if d, _ = takeOff(r, minus); d != one {
		panic("r − (r − 1) is not 1")
	}
	return two, minus
}

// mixed are n scalars of which about share of 100 have to be written out; the
// others are 0, 1, and third in every so many places.
func mixed(id curve.ID, n, share int, third curve.Scalar, seed uint64) []curve.Scalar {
	_, one := words64(id)
	odd := near(id)
	odd = append(odd, curve.Scalar{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}) // no residue
	for w := range third {
		v := third
		v[w] ^= 1 << (seed % 64)
		odd = append(odd, v)
	}
	r, _ := words64(id)
	odd = append(odd, r)
	s := make([]curve.Scalar, n)
	for i := range s {
		d := mix(seed*1000003 + uint64(i))
		switch e := d >> 32; {
		case int(d%100) < share && e%8 == 0:
			s[i] = odd[e/8%uint64(len(odd))]
		case int(d%100) < share:
			s[i] = FillScalar(id, Uniform, seed, uint64(i))
		case e%3 == 1:
			s[i] = one
		case e%3 == 2:
			s[i] = third
		}
	}
	return s
}

// packed is what Pack makes of s, in one piece.
func packed(p *Packer, s []curve.Scalar, third Third, goroutines int) []byte {
	mem := make([]uint64, (PackHeader(len(s))+len(s)*curve.ScalarBytes)/8+1)
	for i := range mem {
		mem[i] = 0xa5a5a5a5a5a5a5a5
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(&mem[0])), 8*len(mem)-8)
	x := p.Pack(b, s, third, goroutines)
	return slices.Concat(append([][]byte{x.Header}, x.Others...)...)
}

// TestPack packs on the host and expands on the device: every bit is there again.
func TestPack(t *testing.T) {
	dev := emulator.TestDevice(t)
	for _, id := range curve.All() {
		t.Run(id.String(), func(t *testing.T) {
			r := newRig(t, dev, id)
			k, err := r.set.Pack()
			if err != nil {
				t.Fatal(err)
			}
			p := NewPacker(id)
			two, minus := plusMinus(id)
			rapid.Check(t, func(t *rapid.T) {
				free := r.mark()
				defer free()
				n := rapid.OneOf(rapid.SampledFrom([]int{0, 1, 2, 15, 16, 17, 511, 512, 513, 1024}), rapid.IntRange(0, 6000)).Draw(t, "scalars")
				share := rapid.SampledFrom([]int{0, 0, 1, 20, 60, 99, 100}).Draw(t, "share written out")
				value := rapid.SampledFrom([]curve.Scalar{two, minus}).Draw(t, "third in the scalars")
				third := rapid.SampledFrom([]Third{Two, MinusOne}).Draw(t, "third")
				s := mixed(id, n, share, value, rapid.Uint64().Draw(t, "seed"))
				b := packed(p, s, third, rapid.IntRange(1, 9).Draw(t, "goroutines"))
				if most := PackHeader(n) + n*curve.ScalarBytes; len(b) > most {
					t.Fatalf("%d bytes, at most %d", len(b), most)
				}
				const beyond = 3
				out := r.room(t, int64(n+beyond)*curve.ScalarBytes)
				if err := k.Expand(r.st, r.args, up(t, r, b), out, n, third); err != nil {
					t.Fatal(err)
				}
				got := down[curve.Scalar](t, r, out, n+beyond)
				for i := range s {
					if got[i] != s[i] {
						t.Fatalf("scalar %d of %d is %x, not %x", i, n, got[i], s[i])
					}
				}
				for _, v := range got[n:] {
					if v[0] != 0xa5a5a5a5a5a5a5a5 || v[3] != v[0] {
						t.Fatal("more than n scalars were written")
					}
				}
			})
		})
	}
}

// TestPackSize: zeros, ones and a third value take two bits each, and Look finds
// which third value pays.
func TestPackSize(t *testing.T) {
	for _, id := range curve.All() {
		p := NewPacker(id)
		two, minus := plusMinus(id)
		for third, v := range map[Third]curve.Scalar{Two: two, MinusOne: minus} {
			s := mixed(id, 5000, 0, v, 1)
			got, others := p.Look(s)
			if got != third || others != 0 {
				t.Errorf("%v: third value %d, %v others; want %d and none", id, got, others, third)
			}
			if b := packed(p, s, third, 3); len(b) != PackHeader(len(s)) || len(b) > 2*len(s)/8+2000 {
				t.Errorf("%v: %d bytes for %d scalars", id, len(b), len(s))
			}
			if _, others := p.Look(mixed(id, 50000, 70, v, 1)); others < 0.5 || others > 0.9 {
				t.Errorf("%v: %v are others, want 0.7", id, others)
			}
		}
		if _, others := p.Look(nil); others != 1 {
			t.Errorf("%v others of no scalars", others)
		}
	}
	for _, room := range []int{0, 31, 32, 100, 4096, 64 << 10, 1 << 20, 32 << 20} {
		n := PackMost(room)
		if size := PackHeader(n) + n*curve.ScalarBytes; n > 0 && size > room {
			t.Errorf("%d scalars in %d bytes: they may take %d", n, room, size)
		}
		if n > packBlock && n%packBlock != 0 {
			t.Errorf("%d scalars are no whole blocks", n)
		}
		if room >= 1<<20 && n*curve.ScalarBytes < room*98/100 {
			t.Errorf("only %d scalars in %d bytes", n, room)
		}
	}
}

// BenchmarkPack measures the packing on one core, by the share written out. The
// bytes are those before.
func BenchmarkPack(b *testing.B) {
	for _, id := range curve.All() {
		p := NewPacker(id)
		two, _ := plusMinus(id)
		for _, share := range []int{0, 20, 60} {
			b.Run(fmt.Sprintf("%v/%d%%", id, share), func(b *testing.B) {
				s := mixed(id, 1<<20, share, two, 1)
				mem := make([]uint64, (PackHeader(len(s))+len(s)*curve.ScalarBytes)/8)
				room := unsafe.Slice((*byte)(unsafe.Pointer(&mem[0])), 8*len(mem))
				b.SetBytes(int64(len(s)) * curve.ScalarBytes)
				for b.Loop() {
					p.Pack(room, s, Two, 1)
				}
			})
		}
	}
}

// BenchmarkCopy is what the packing takes the place of.
func BenchmarkCopy(b *testing.B) {
	s, d := make([]curve.Scalar, 1<<20), make([]curve.Scalar, 1<<20)
	b.SetBytes(int64(len(s)) * curve.ScalarBytes)
	for b.Loop() {
		copy(d, s)
	}
}
