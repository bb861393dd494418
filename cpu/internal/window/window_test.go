package window

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// order is an odd number of 255 bits, as the groups' orders are.
var order = func() *big.Int {
	v, _ := new(big.Int).SetString("52435875175126190479447740508185965837690552500527637822603658699938581184513", 10)
	return v
}()

const orderBits = 254 // of (order − 1)/2

func limbs(v *big.Int) (s Scalar) {
	for i := range s {
		s[i] = new(big.Int).Rsh(v, uint(64*i)).Uint64()
	}
	return s
}

// scalar draws plain scalars of all lengths, near r too.
func scalar(t *rapid.T) *big.Int {
	b := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "bytes")
	v := new(big.Int).Rsh(new(big.Int).SetBytes(b), uint(rapid.IntRange(0, 256).Draw(t, "shift")))
	v.Mod(v, order)
	if rapid.Bool().Draw(t, "negative") && v.Sign() > 0 {
		v.Sub(order, v)
	}
	return v
}

// TestDigitsMakeTheScalar: Σ ±digit·2^(c·window) is the scalar modulo r, for
// all widths, and every digit has a bucket.
func TestDigitsMakeTheScalar(t *testing.T) {
	r := limbs(order)
	rapid.Check(t, func(t *rapid.T) {
		v := scalar(t)
		s := limbs(v)
		n := Fold(&s, &r)
		p := Plan{C: rapid.IntRange(minBits, MaxBits).Draw(t, "c"), Group: 1}
		longest := rapid.IntRange(n, orderBits).Draw(t, "bits")
		p.Windows = (longest + p.C) / p.C
		o := p.Offset()
		AddOffset(&s, &o)
		sum := new(big.Int)
		for w := p.Windows - 1; w >= 0; w-- {
			d := p.digit(w)
			m, neg := d.of(&s)
			if m > uint64(p.Buckets()) {
				t.Fatalf("window %d: digit %d of %d buckets", w, m, p.Buckets())
			}
			x := new(big.Int).SetUint64(m)
			if neg == 1 {
				x.Neg(x)
			}
			sum.Lsh(sum, uint(p.C)).Add(sum, x)
		}
		if sum.Mod(sum, order).Cmp(v) != 0 {
			t.Fatalf("digits make %v, want %v", sum, v)
		}
	})
}

func TestFoldTakesTheSmaller(t *testing.T) {
	r := limbs(order)
	half := new(big.Int).Rsh(order, 1)
	for v, want := range map[*big.Int]int{
		big.NewInt(0): 0, big.NewInt(1): 1, big.NewInt(255): 8,
		new(big.Int).Sub(order, big.NewInt(1)): 1,
		half:                                   orderBits,
		new(big.Int).Add(half, big.NewInt(1)):  orderBits,
	} {
		s := limbs(v)
		if got := Fold(&s, &r); got != want {
			t.Errorf("%v: length %d, want %d", v, got, want)
		}
		u := s
		if Unfold(&u, &r); u != limbs(v) {
			t.Errorf("%v: unfolded %v", v, u)
		}
		if sign := s[3] >> 63; sign == 1 != (v.Cmp(half) > 0) {
			t.Errorf("%v: sign %d", v, sign)
		}
	}
}

// TestSortPlacesEveryTerm compares a round with the digits one by one.
func TestSortPlacesEveryTerm(t *testing.T) {
	r := limbs(order)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "n")
		p := Plan{C: rapid.IntRange(minBits, 7).Draw(t, "c")}
		p.Windows = (orderBits + p.C) / p.C
		p.Group = rapid.IntRange(1, 5).Draw(t, "group")
		low := rapid.IntRange(0, p.Windows-p.Group).Draw(t, "low")
		group := rapid.IntRange(1, p.Group).Draw(t, "used")
		o := p.Offset()
		s := &Sort{Plan: p, Parts: rapid.IntRange(1, 4).Draw(t, "parts")}
		picked := rapid.Bool().Draw(t, "picked")
		for i := range n {
			v := limbs(scalar(t))
			Fold(&v, &r)
			AddOffset(&v, &o)
			s.Scalars = append(s.Scalars, v)
			if picked {
				s.Index = append(s.Index, uint32(7*i+3))
			}
		}
		s.Counts = make([]uint32, s.Parts*p.RoundBuckets())
		for i := range s.Counts {
			s.Counts[i] = 99 // memory is used again
		}
		s.Start = make([]uint32, p.RoundBuckets()+1)
		s.Entries = make([]uint32, p.Entries(n))
		for i := range s.Parts {
			s.Count(i, low, group)
		}
		total := s.Prefix(group)
		for i := range s.Parts {
			s.Place(i, low, group)
		}
		want := make([][]uint32, group*p.Buckets())
		count := 0
		for g := range group {
			d := p.digit(low + g)
			for i := range s.Scalars {
				if m, neg := d.of(&s.Scalars[i]); m != 0 {
					j := uint32(i)
					if picked {
						j = s.Index[i]
					}
					k := g*p.Buckets() + int(m) - 1
					want[k] = append(want[k], j<<1|uint32(neg))
					count++
				}
			}
		}
		if total != count {
			t.Fatalf("%d terms, want %d", total, count)
		}
		for k, w := range want {
			if got := s.Entries[s.Start[k]:s.Start[k+1]]; !slices.Equal(got, w) {
				t.Fatalf("bucket %d holds %v, want %v", k, got, w)
			}
			for e := s.Start[k]; e < s.Start[k+1]; e++ {
				if b := s.Bucket(e, len(want)); b != k {
					t.Fatalf("entry %d is in bucket %d, want %d", e, b, k)
				}
			}
		}
	})
}

// TestBoundHolds: whatever the scalars are, the layout of their plan is not
// larger than the bound, and the bound is not far from what random scalars take.
func TestBoundHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1<<rapid.IntRange(1, 27).Draw(t, "log")).Draw(t, "n")
		workers := rapid.SampledFrom([]int{1, 2, 5, 16, 64}).Draw(t, "workers")
		size := rapid.SampledFrom([]int{64, 96, 128, 192}).Draw(t, "size")
		var h Histogram
		left := n
		for range rapid.IntRange(1, 4).Draw(t, "lengths") {
			k := rapid.IntRange(0, left).Draw(t, "count")
			h[rapid.IntRange(0, orderBits).Draw(t, "bits")] += k
			left -= k
		}
		h[0] += left
		terms, used, index := h.Terms(), n, 0
		if terms <= n/2 {
			used, index = terms, 4*terms
		}
		l := NewLayout(For(n, used, orderBits, &h), used, workers, size)
		bound := Bound(n, orderBits, workers, size)
		// the scalars before the few that matter were moved to the front
		need := l.Bytes(size) + 32*int64(n-used) + int64(index)
		if need > bound {
			t.Fatalf("needs %d of %d: %+v", need, bound, l)
		}
		if l.Edges > l.Chunk {
			t.Fatalf("%d edges in a chunk of %d", l.Edges, l.Chunk)
		}
		dense := NewLayout(Dense(n, orderBits), n, workers, size).Bytes(size)
		if n > 24 && 2*bound > 3*dense {
			t.Fatalf("bound %d, dense %d", bound, dense)
		}
	})
}

func TestCompact(t *testing.T) {
	s := []Scalar{{}, {1}, {}, {0, 0, 0, 1}, {2}}
	index := make([]uint32, 3)
	Compact(s, index, []uint32{10, 20, 30, 40, 50})
	if !slices.Equal(index, []uint32{20, 40, 50}) || s[0] != (Scalar{1}) || s[1] != (Scalar{0, 0, 0, 1}) || s[2] != (Scalar{2}) {
		t.Errorf("%v %v", s[:3], index)
	}
}
