package kernels

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"pgregory.net/rapid"
)

// reference knows how scalars are cut into digits, by big integers.
type reference struct {
	r, half, inverse, bias *big.Int // inverse of 2^256
	c, w                   int
}

func newReference(id curve.ID, c int) *reference {
	r := id.ScalarModulus()
	w, bias := sortWindows(id, c)
	two := new(big.Int).Lsh(big.NewInt(1), 256)
	return &reference{r: r, half: new(big.Int).Rsh(r, 1), inverse: two.ModInverse(two, r), bias: bias, c: c, w: w}
}

func bigOf(s curve.Scalar) *big.Int {
	v := new(big.Int)
	for j := 3; j >= 0; j-- {
		v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(s[j]))
	}
	return v
}

// digits are those of the representative of s between −r/2 and r/2.
func (f *reference) digits(s curve.Scalar) []int {
	v := bigOf(s)
	v.Mul(v, f.inverse).Mod(v, f.r)
	if v.Cmp(f.half) > 0 {
		v.Sub(v, f.r)
	}
	return f.cut(v)
}

// cut writes v in signed digits from the lowest on: of the two that fit, the
// one in −2^(c−1) … 2^(c−1) − 1; the last takes what is left.
func (f *reference) cut(v *big.Int) []int {
	v = new(big.Int).Set(v)
	out := make([]int, f.w)
	base := new(big.Int).Lsh(big.NewInt(1), uint(f.c))
	for i := range f.w - 1 {
		d := int(new(big.Int).Mod(v, base).Int64())
		if d >= 1<<(f.c-1) {
			d -= 1 << f.c
		}
		out[i] = d
		v.Sub(v, big.NewInt(int64(d))).Rsh(v, uint(f.c))
	}
	out[f.w-1] = int(v.Int64())
	return out
}

// expect gives the contents of every bucket that is not empty, sorted.
func (f *reference) expect(scalars []curve.Scalar, t Terms, wires, pick []uint32, count int) map[uint32][]uint32 {
	want := map[uint32][]uint32{}
	seen := map[curve.Scalar][]int{}
	for i := range count {
		j := uint32(i)
		if pick != nil {
			j = pick[i]
		}
		k := t.List.First + j
		if wires != nil {
			k = wires[j]
		}
		if t.Reversed != 0 {
			rev := uint32(0)
			for b := range t.Reversed {
				rev |= (k >> b & 1) << (t.Reversed - 1 - b)
			}
			k = rev
		}
		d, ok := seen[scalars[k]]
		if !ok {
			d = f.digits(scalars[k])
			seen[scalars[k]] = d
		}
		for w, v := range d {
			switch base := uint32(w) << (f.c - 1); {
			case v > 0:
				want[base+uint32(v-1)] = append(want[base+uint32(v-1)], j)
			case v < 0:
				want[base+uint32(-v-1)] = append(want[base+uint32(-v-1)], j|1<<31)
			}
		}
	}
	for _, l := range want {
		slices.Sort(l)
	}
	return want
}

// sortCase is one sort, with the vectors on the host.
type sortCase struct {
	c, lmax     int
	n           int // the plan's
	most        int
	scalars     []curve.Scalar
	wires, pick []uint32
	count       int // −1: none, most counts
	first       uint32
	points      int // List.N
	reversed    int
	batch       int // windows at a time, if not the plan's choice
}

func (c sortCase) String() string {
	return fmt.Sprintf("c %d, lmax %d, n %d, most %d, %d scalars, wires %v, pick %v, count %d, first %d, reversed %d, batch %d",
		c.c, c.lmax, c.n, c.most, len(c.scalars), c.wires != nil, c.pick != nil, c.count, c.first, c.reversed, c.batch)
}

// fataler is a test or a rapid test.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
	Fatal(args ...any)
}

// check runs a sort on the device and holds everything it made against the
// reference.
func (c sortCase) check(t fataler, r *rig) {
	t.Helper()
	plan, err := PlanSort(r.set.id, c.n, c.c, c.lmax)
	if err != nil {
		t.Fatal(err)
	}
	if c.batch != 0 {
		plan.batch = min(c.batch, plan.W)
		plan.layout()
	}
	s, err := r.set.Sort()
	if err != nil {
		t.Fatal(err)
	}
	free := r.mark()
	defer free()
	terms := Terms{Scalars: up(t, r, c.scalars), List: WireList{First: c.first, N: c.points}, Most: c.most, Reversed: c.reversed}
	if c.wires != nil {
		terms.List.Wires = up(t, r, c.wires)
	}
	if c.pick != nil {
		terms.Pick = up(t, r, c.pick)
	}
	count := c.most
	if c.count >= 0 {
		terms.Count = up(t, r, []uint32{uint32(c.count)})
		count = c.count
	}
	b, err := s.Run(r.st, r.args, plan, terms, r.room(t, plan.Scratch))
	if err != nil {
		t.Fatal(err)
	}
	want := newReference(r.set.id, c.c).expect(c.scalars, terms, c.wires, c.pick, count)
	index := down[uint32](t, r, b.Index, plan.N*plan.W)
	length := down[uint32](t, r, b.Len, plan.MaxTasks)
	start := down[uint32](t, r, b.Start, plan.MaxTasks)
	order := down[uint32](t, r, b.Order, plan.MaxTasks)
	heavy := down[[4]uint32](t, r, b.Heavy, plan.MaxHeavy)[:down[uint32](t, r, b.NHeavy, 1)[0]]
	groups := down[[2]uint32](t, r, b.Groups, plan.MaxGroups)[:down[uint32](t, r, b.NGroups, 1)[0]]
	tasks := down[uint32](t, r, b.NTasks, 1)[0]

	total := 0
	for k := range want {
		if length[k] == 0 {
			t.Fatalf("%v: bucket %d is empty", c, k)
		}
	}
	for k, n := range length[:plan.NB] {
		if n == 0 {
			continue
		}
		at, w := start[k], want[uint32(k)]
		if int(n) != len(w) {
			t.Fatalf("%v: bucket %d has %d points, not %d", c, k, n, len(w))
		}
		got := slices.Sorted(slices.Values(index[at : at+n]))
		if !slices.Equal(got, w) {
			t.Fatalf("%v: bucket %d has points %x, not %x", c, k, got, w)
		}
		total += int(n)
	}

	// the slots that have work: each point once, the longest first
	covered := make([]uint8, total)
	last, slots := uint32(sortLengths), map[uint32]bool{}
	for _, slot := range order[:tasks] {
		n := length[slot]
		if n == 0 || slots[slot] || int(slot) < plan.NB && int(n) > plan.Lmax {
			t.Fatalf("%v: slot %d of %d points in the order, seen before: %v", c, slot, n, slots[slot])
		}
		slots[slot] = true
		if k := min(n, sortLengths-1); k > last {
			t.Fatalf("%v: a slot of %d after one of %d", c, k, last)
		} else {
			last = k
		}
		for i := start[slot]; i < start[slot]+n; i++ {
			covered[i]++
		}
	}
	for i, n := range covered {
		if n != 1 {
			t.Fatalf("%v: entry %d is in %d slots", c, i, n)
		}
	}

	// heavy buckets and their groups
	chunks, inGroups := 0, map[uint32]uint32{}
	for _, g := range groups {
		inGroups[g[0]] = g[1]
	}
	for _, h := range heavy {
		bucket, slot, n := h[0], h[1], h[2]
		if int(length[bucket]) <= plan.Lmax || n < 2 || n > heavyChunks || int(slot) < plan.NB {
			t.Fatalf("%v: heavy %v of %d points", c, h, length[bucket])
		}
		at := start[bucket]
		for k := range n {
			if start[slot+k] != at || length[slot+k] == 0 || !slots[slot+k] {
				t.Fatalf("%v: chunk %d of %v begins at %d with %d points, not at %d; to do: %v", c, k, h, start[slot+k], length[slot+k], at, slots[slot+k])
			}
			at += length[slot+k]
			if k%HeavyGroup == 0 {
				if inGroups[slot+k] != min(HeavyGroup, n-k) {
					t.Fatalf("%v: group at chunk %d of %v has %d", c, k, h, inGroups[slot+k])
				}
				delete(inGroups, slot+k)
			}
		}
		if at != start[bucket]+length[bucket] {
			t.Fatalf("%v: the chunks of %v end at %d", c, h, at)
		}
		delete(want, bucket)
		chunks += int(n)
	}
	for bucket, w := range want {
		if len(w) > plan.Lmax {
			t.Fatalf("%v: bucket %d of %d points is not heavy", c, bucket, len(w))
		}
	}
	if len(inGroups) != 0 || chunks > plan.MaxChunks || int(tasks) != len(want)+chunks {
		t.Fatalf("%v: %d groups of no bucket, %d chunks of at most %d, %d tasks, not %d", c, len(inGroups), chunks, plan.MaxChunks, tasks, len(want)+chunks)
	}
}

func drawn(id curve.ID, kind Kind, seed uint64, n int) []curve.Scalar {
	out := make([]curve.Scalar, n)
	for i := range out {
		out[i] = FillScalar(id, kind, seed, uint64(i))
	}
	return out
}

// edges are scalars at which digits carry, fold or end: ±2^k, ±(2^k − 1), the
// two middle ones of the field.
func edges(id curve.ID) []curve.Scalar {
	r := id.ScalarModulus()
	half := new(big.Int).Rsh(r, 1)
	one := big.NewInt(1)
	plain := []*big.Int{half, new(big.Int).Add(half, one), new(big.Int).Sub(half, one)}
	for k := range r.BitLen() {
		p := new(big.Int).Lsh(one, uint(k))
		plain = append(plain, p, new(big.Int).Sub(p, one), new(big.Int).Sub(r, p))
	}
	var out []curve.Scalar
	for _, v := range plain {
		m := new(big.Int).Lsh(v, 256)
		m.Mod(m, r)
		var s curve.Scalar
		for j := range s {
			s[j] = new(big.Int).Rsh(m, uint(64*j)).Uint64()
		}
		out = append(out, s)
	}
	return out
}

func TestSortSizes(t *testing.T) {
	dev := emulator.TestDevice(t)
	for which, id := range curve.All() {
		r := newRig(t, dev, id)
		for n := range 71 {
			if n > 8 && n%2 != which && !emulator.Real() { // half of them each: the emulator is slow
				continue
			}
			kind := Kind(n) % Kinds
			sortCase{c: MinSortBits + n%4, n: n, most: n, scalars: drawn(id, kind, uint64(n), n+1), count: -1, lmax: n % 4 * 5}.check(t, r)
		}
		for i, n := range []int{255, 256, 257, 1023, 1025, sortTile - 1, sortTile, sortTile + 1} {
			if i%2 != which && !emulator.Real() {
				continue
			}
			sortCase{c: 8, n: n, most: n, scalars: drawn(id, Uniform, uint64(n), n), count: -1}.check(t, r)
		}
	}
}

func TestSortKinds(t *testing.T) {
	dev := emulator.TestDevice(t)
	for which, id := range curve.All() {
		r := newRig(t, dev, id)
		for kind := range Kinds {
			batch := (int(kind) + which) % 3 * 4
			sortCase{c: 8 + batch/2, n: 3000, most: 2500, scalars: drawn(id, kind, 7, 2500), count: -1, batch: batch}.check(t, r)
		}
		// cut in as many chunks as a bucket can be, and one group too many
		for _, lmax := range []int{1, 7, 20} {
			sortCase{c: 12, n: 2700, most: 2700, scalars: drawn(id, Equal, 7, 2700), count: -1, lmax: lmax}.check(t, r)
		}
	}
	sortCase{c: 7, n: 20000, most: 20000, scalars: drawn(curve.BN254, Ones, 7, 20000), count: -1, lmax: 1}.check(t, newRig(t, dev, curve.BN254))
}

func TestSortWindows(t *testing.T) {
	dev := emulator.TestDevice(t)
	rigs := map[curve.ID]*rig{}
	for _, id := range curve.All() {
		rigs[id] = newRig(t, dev, id)
	}
	for c := MinSortBits; c <= MaxSortBits; c++ {
		if many := c > 19; many && (testing.Short() || c != MaxSortBits) && !emulator.Real() {
			continue
		}
		ids := curve.All()
		if c > 13 && !emulator.Real() { // the larger the slower on the emulator
			ids = ids[c%2 : c%2+1]
		}
		for _, id := range ids {
			s := edges(id)
			if c < 19 || emulator.Real() {
				s = slices.Concat(s, drawn(id, Uniform, uint64(c), 300))
			}
			sortCase{c: c, n: len(s), most: len(s), scalars: s, count: -1, batch: c % 7}.check(t, rigs[id])
		}
	}
}

func TestSortTerms(t *testing.T) {
	dev := emulator.TestDevice(t)
	rigs := []*rig{newRig(t, dev, curve.BN254), newRig(t, dev, curve.BLS12381)}
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom(rigs).Draw(t, "curve")
		c := sortCase{
			c:     rapid.IntRange(MinSortBits, 11).Draw(t, "c"),
			lmax:  rapid.SampledFrom([]int{0, 1, 3, 50}).Draw(t, "lmax"),
			count: -1,
			batch: rapid.IntRange(0, 40).Draw(t, "batch"),
		}
		kind := Kind(rapid.IntRange(0, int(Kinds)-1).Draw(t, "kind"))
		points := rapid.IntRange(1, 600).Draw(t, "points")
		total := points
		if rapid.Bool().Draw(t, "reversed") {
			for c.reversed = 1; 1<<c.reversed < points; c.reversed++ {
			}
			total = 1 << c.reversed
		} else {
			c.first = uint32(rapid.IntRange(0, 50).Draw(t, "first"))
			total += int(c.first)
		}
		c.scalars = drawn(r.set.id, kind, rapid.Uint64().Draw(t, "seed"), total)
		c.most = points
		if rapid.Bool().Draw(t, "wires") {
			c.wires = rapid.SliceOfN(rapid.Uint32Range(0, uint32(total-1)), points, points).Draw(t, "wire")
		}
		if rapid.Bool().Draw(t, "pick") {
			c.pick = rapid.SliceOfNDistinct(rapid.Uint32Range(0, uint32(points-1)), 0, points, rapid.ID[uint32]).Draw(t, "points picked")
			c.most = len(c.pick)
			if c.most == 0 {
				c.pick = nil
			}
			if rapid.Bool().Draw(t, "bounded") {
				c.points = points
			}
		}
		if rapid.Bool().Draw(t, "counted") {
			c.count = rapid.IntRange(0, c.most).Draw(t, "count")
		}
		c.n = c.most + rapid.IntRange(0, 20).Draw(t, "spare")
		c.check(t, r)
	})
}

func TestSortManyPoints(t *testing.T) {
	id := curve.BLS12381
	r := newRig(t, emulator.TestDevice(t), id)
	n := 3*sortTile + 77
	// numbers of points too large to lie beside the low bits in one word
	pick := make([]uint32, n)
	for i := range pick {
		pick[i] = uint32(i)
	}
	for _, points := range []int{n, 0} {
		sortCase{c: 11, n: n, most: n, scalars: drawn(id, Bits, 3, n), pick: pick, points: points, count: n - 5}.check(t, r)
	}
}

func TestSortRefusesMoreThanPlanned(t *testing.T) {
	r := newRig(t, emulator.TestDevice(t), curve.BN254)
	s, err := r.set.Sort()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := s.Plan(10, 8)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(r.st, r.args, plan, Terms{Most: 11}, 0); err == nil {
		t.Error("11 terms pass with a plan for 10")
	}
}

func TestPlanSort(t *testing.T) {
	for _, id := range curve.All() {
		for c := MinSortBits; c <= MaxSortBits; c++ {
			w, _ := sortWindows(id, c)
			if w*c < id.ScalarModulus().BitLen()-1 || w*c > id.ScalarModulus().BitLen()+c {
				t.Errorf("%v: %d windows of %d bits", id, w, c)
			}
			for log := 0; log <= 28; log++ {
				n := 1 << log
				p, err := PlanSort(id, n, c, 0)
				if int64(n)*int64(w) >= 1<<32-sortTile {
					if err == nil {
						t.Errorf("%v: 2^%d terms of %d digits pass", id, log, w)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if !p.planesFit() {
					t.Errorf("%v, c %d, 2^%d: the biased scalars have memory of their own", id, c, log)
				}
				if p.high > sortHighBits || p.low > sortLowBits || p.low < 1 || p.high+p.low != c-1 {
					t.Errorf("c %d: %d and %d bits", c, p.high, p.low)
				}
				if p.Keep > p.Scratch || p.Lmax < 1 || p.Lmax >= sortLengths {
					t.Errorf("%v, c %d, 2^%d: %+v", id, c, log, p)
				}
			}
		}
	}
	for _, bad := range [][2]int{{1, 5}, {1, 23}, {-1, 10}, {1<<28 + 1, 20}} {
		if _, err := PlanSort(curve.BN254, bad[0], bad[1], 0); err == nil {
			t.Errorf("%v passes", bad)
		}
	}
	if _, err := PlanSort(0, 1, 10, 0); err == nil {
		t.Error("no curve passes")
	}
}
