package window

import "math/bits"

// Scalar is a recoded scalar: the smaller of s and r − s plus the offset of the
// plan, with the sign in the top bit. Both curves' r leave it room there.
type Scalar = [4]uint64

const signBit = 1 << 63

// Fold replaces the plain scalar s < r by the smaller of s and r − s, with the
// sign in the top bit, and returns its bit length.
func Fold(s *Scalar, r *Scalar) int {
	var t Scalar
	var b uint64
	t[0], b = bits.Sub64(r[0], s[0], 0)
	t[1], b = bits.Sub64(r[1], s[1], b)
	t[2], b = bits.Sub64(r[2], s[2], b)
	t[3], _ = bits.Sub64(r[3], s[3], b)
	// t < s, for an odd r, exactly when s > (r − 1)/2
	_, b = bits.Sub64(t[0], s[0], 0)
	_, b = bits.Sub64(t[1], s[1], b)
	_, b = bits.Sub64(t[2], s[2], b)
	_, b = bits.Sub64(t[3], s[3], b)
	var sign uint64
	if b != 0 {
		*s, sign = t, signBit
	}
	n := Len(s)
	s[3] |= sign
	return n
}

// Unfold undoes Fold.
func Unfold(s *Scalar, r *Scalar) {
	if s[3]&signBit == 0 {
		return
	}
	s[3] &^= signBit
	var b uint64
	s[0], b = bits.Sub64(r[0], s[0], 0)
	s[1], b = bits.Sub64(r[1], s[1], b)
	s[2], b = bits.Sub64(r[2], s[2], b)
	s[3], _ = bits.Sub64(r[3], s[3], b)
}

// Len is the bit length of a plain scalar.
func Len(s *Scalar) int {
	for i := 3; i >= 0; i-- {
		if s[i] != 0 {
			return 64*i + bits.Len64(s[i])
		}
	}
	return 0
}

// Offset is what makes digits signed without a carry from window to window:
// half a window's range added at every window but the top one. The digit is
// then the window's bits less that half.
func (p Plan) Offset() Scalar {
	var o Scalar
	for w := range p.Windows - 1 {
		bit := w*p.C + p.C - 1
		o[bit/64] |= 1 << (bit % 64)
	}
	return o
}

// AddOffset adds the offset o to the folded scalar s. The sign stays.
func AddOffset(s, o *Scalar) {
	var c uint64
	s[0], c = bits.Add64(s[0], o[0], 0)
	s[1], c = bits.Add64(s[1], o[1], c)
	s[2], c = bits.Add64(s[2], o[2], c)
	s[3], _ = bits.Add64(s[3], o[3], c)
}

// digit is one window's view of a scalar.
type digit struct {
	limb, shift uint
	high        uint // shift of the next limb; 64 gives 0 in Go
	mask        uint64
	half        uint64
	next        uint
}

func (p Plan) digit(w int) digit {
	bit := uint(w * p.C)
	d := digit{limb: bit / 64, shift: bit % 64, mask: 1<<p.C - 1, half: 1 << (p.C - 1)}
	d.high = 64 - d.shift
	d.next = d.limb + 1
	if d.next > 3 {
		d.next, d.high = 3, 64
	}
	if w == p.Windows-1 {
		d.half = 0
	}
	return d
}

// of returns the magnitude of the digit and its sign, 0 or 1.
func (d *digit) of(s *Scalar) (mag, neg uint64) {
	lo, hi := s[d.limb&3], s[d.next&3]
	sign := s[3] >> 63
	if d.limb == 3 {
		lo &^= signBit
	}
	if d.next == 3 {
		hi &^= signBit
	}
	v := (lo>>d.shift | hi<<d.high) & d.mask
	v -= d.half
	m := uint64(int64(v) >> 63)
	return (v ^ m) - m, (m & 1) ^ sign
}

// Compact moves the scalars that are not zero to the front, and writes the
// points that go with them to index, which has as many places: those of pick,
// or their own numbers when that is nil.
func Compact(s []Scalar, index, pick []uint32) {
	n := 0
	for i := range s {
		if s[i] == (Scalar{}) {
			continue
		}
		s[n] = s[i]
		index[n] = uint32(i)
		if pick != nil {
			index[n] = pick[i]
		}
		n++
	}
}
