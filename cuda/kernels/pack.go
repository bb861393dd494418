package kernels

import (
	"fmt"
	"math/bits"
	"sync"
	"unsafe"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// Packed scalars are, one after the other,
//
//	codes   two bits a scalar, 16 in a uint32 from its lowest bits on, in whole blocks
//	first   a uint32 a block: the number of its first scalar that is written out
//	others  the scalars that are written out, 32 bytes each
//
// with a block of 512 scalars. The codes are 0 and 1 for these, 2 for the third
// value that is 2 or −1 in all of them, and 3 for a scalar that is written out:
// as it is, whatever it is.
const (
	packBlock = 512
	packWords = packBlock / 16
)

// Third is the value that code 2 stands for.
type Third uint32

// The values.
const (
	Two      Third = 1
	MinusOne Third = 2
)

// PackHeader is the bytes of codes and counts of n scalars.
func PackHeader(n int) int {
	blocks := (n + packBlock - 1) / packBlock
	return (blocks*(4*packWords+4) + 31) &^ 31
}

// PackMost is how many scalars can be packed into room bytes, whatever they are.
func PackMost(room int) int {
	n := max(room-PackHeader(room/curve.ScalarBytes), 0) / curve.ScalarBytes
	if n > packBlock {
		n -= n % packBlock
	}
	return n
}

// Packer packs scalars of a curve on the host.
type Packer struct{ tables [3]packTable }

// packTable has the values with a code of their own, each where two bits of its
// lowest word say, so that a scalar has to be compared with one of them only.
type packTable struct {
	shift uint
	at    [4]struct {
		value curve.Scalar
		code  uint64
	}
}

// NewPacker makes a packer.
func NewPacker(id curve.ID) *Packer {
	r, one := words64(id)
	minus, _ := takeOff(r, one)
	two, _ := takeOff(one, minus) // 1 − (−1), which is below 0 where −1 is the larger
	if _, below := takeOff(one, minus); below {
		var carry uint64
		for j := range two {
			two[j], carry = bits.Add64(two[j], r[j], carry)
		}
	}
	p := new(Packer)
	for third, v := range map[Third]curve.Scalar{Two: two, MinusOne: minus} {
		p.tables[third] = newPackTable([3]curve.Scalar{{}, one, v})
	}
	return p
}

func newPackTable(values [3]curve.Scalar) (t packTable) {
	apart := func(shift uint) bool {
		var seen uint
		for _, v := range values {
			seen |= 1 << (v[0] >> shift & 3)
		}
		return bits.OnesCount(seen) == len(values)
	}
	for !apart(t.shift) {
		t.shift++
	}
	// The place that is left has 0 too: nothing else can be equal to it.
	for code, v := range values {
		e := &t.at[v[0]>>t.shift&3]
		e.value, e.code = v, uint64(code)
	}
	return t
}

// Look says from a sample which third value pays, and what part of s would be
// written out.
func (p *Packer) Look(s []curve.Scalar) (third Third, others float64) {
	const most = 256
	step := max(len(s)/most, 1)
	var n [3]int
	total := 0
	for i := 0; i < len(s); i += step {
		total++
		for third := Two; third <= MinusOne; third++ {
			t := &p.tables[third]
			if e := &t.at[s[i][0]>>t.shift&3]; s[i] == e.value {
				n[third]++
			}
		}
	}
	third = Two
	if n[MinusOne] > n[Two] {
		third = MinusOne
	}
	return third, 1 - float64(n[third])/float64(max(total, 1))
}

// Packed is scalars that were packed.
type Packed struct {
	N      int
	Third  Third
	Header []byte
	Others [][]byte // in pieces, which belong one behind the other
	Bytes  int64    // all of it
}

// Pack packs src into mem, which has room for PackHeader(len(src)) bytes and all
// of src, and is aligned to 8 bytes. Several goroutines share the work.
func (p *Packer) Pack(mem []byte, src []curve.Scalar, third Third, goroutines int) Packed {
	n := len(src)
	header := PackHeader(n)
	blocks := (n + packBlock - 1) / packBlock
	words := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(mem))), header/4)
	codes, first := words[:blocks*packWords], words[blocks*packWords:blocks*(packWords+1)]
	clear(words[blocks*(packWords+1):])
	room := unsafe.Slice((*curve.Scalar)(unsafe.Pointer(unsafe.SliceData(mem[header:]))), n)
	step := max((blocks+goroutines-1)/goroutines, 1)
	parts := (blocks + step - 1) / step
	out := Packed{N: n, Third: third, Header: mem[:header], Others: make([][]byte, parts), Bytes: int64(header)}
	counts := make([]int, parts)
	part := func(i int) {
		lo, hi := i*step, min((i+1)*step, blocks)
		from, to := lo*packBlock, min(hi*packBlock, n)
		counts[i] = p.tables[third].pack(codes[lo*packWords:hi*packWords], first[lo:hi], room[from:to], src[from:to])
		out.Others[i] = mem[header+from*curve.ScalarBytes:][:counts[i]*curve.ScalarBytes]
	}
	var wg sync.WaitGroup
	for i := 1; i < parts; i++ {
		wg.Go(func() { part(i) })
	}
	if parts > 0 {
		part(0)
	}
	wg.Wait()
	before := uint32(0)
	for i, k := range counts {
		for b := i * step; b < min((i+1)*step, blocks); b++ {
			first[b] += before
		}
		before += uint32(k)
		out.Bytes += int64(k) * curve.ScalarBytes
	}
	return out
}

// pack packs whole blocks of src, of which the last may be short, and gives how
// many scalars it wrote out. others is as long as src: what has a code is written
// there as well, and written over by the next scalar, since a jump that cannot be
// foretold would take longer.
func (t *packTable) pack(codes, first []uint32, others, src []curve.Scalar) int {
	k := 0
	shift := t.shift & 63
	for w := range codes {
		if w%packWords == 0 {
			first[w/packWords] = uint32(k)
		}
		part := src[min(16*w, len(src)):min(16*w+16, len(src))]
		word := uint64(0)
		for i := range part {
			s := &part[i]
			e := &t.at[s[0]>>shift&3]
			d := (s[0] ^ e.value[0]) | (s[1] ^ e.value[1]) | (s[2] ^ e.value[2]) | (s[3] ^ e.value[3])
			other := (d | -d) >> 63
			others[k] = *s
			k += int(other)
			word |= (e.code | other*3) << (2 * i & 63)
		}
		codes[w] = uint32(word)
	}
	return k
}

// Pack is the device's side.
type Pack struct {
	set *Set
	k   *PackKernels
}

// Pack loads the kernel. What it returns is valid until the device is reset.
func (s *Set) Pack() (*Pack, error) {
	k, err := s.PackKernels()
	if err != nil {
		return nil, err
	}
	return &Pack{set: s, k: k}, nil
}

// Expand queues the expansion of n scalars, which lie packed at packed, to out.
// The two do not overlap.
func (p *Pack) Expand(st gpu.Stream, a *gpu.Args, packed, out gpu.Ptr, n int, third Third) error {
	if n < 0 || n > 1<<30 {
		return fmt.Errorf("expand %d scalars: more than 2^30", n)
	}
	const threads = 256
	blocks := (n + packBlock - 1) / packBlock
	first := packed + gpu.Ptr(4*packWords*blocks)
	others := packed + gpu.Ptr(PackHeader(n))
	shape := gpu.Linear(int64(blocks)*32, threads)
	if err := p.k.PackExpand(st, shape, a, packed, first, others, uint32(third), out, uint32(n)); err != nil {
		return fmt.Errorf("queue the expansion of %d scalars: %w", n, err)
	}
	return nil
}
