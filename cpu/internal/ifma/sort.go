package ifma

import (
	"unsafe"

	"github.com/snarkline/snarkline/curve"
)

// placeAhead is how many digits the kernels read past the end.
const placeAhead = 16

// digitSign is the sign of a digit; the rest of it is the magnitude.
const digitSign = 1 << 31

// digitWindow says where in a shifted scalar the digit of a window is. The
// kernel reads it as words, in this order.
type digitWindow struct {
	lo, hi         uint64 // words of the scalar
	shift          uint64 // of the two, to the right
	loMask, hiMask uint64 // what counts of them
	mask           uint64 // bits of the digit
	off            uint64 // that was added to make it positive
}

// window is where the digits of a window are: in two words, whatever the
// window is. The sign of the scalar, in the last one, is not part of a digit.
func (p *Plan) window(win int) digitWindow {
	bit := uint64(win * p.c)
	w := digitWindow{
		lo: bit / 64, hi: bit/64 + 1, shift: bit % 64,
		loMask: ^uint64(0), hiMask: ^uint64(0),
		mask: 1<<p.c - 1, off: 1 << (p.c - 1),
	}
	if win == p.windows-1 {
		w.off, w.mask = 0, 1<<(maxWindow+1)-1
	}
	switch w.lo {
	case 2:
		w.hiMask = signBit - 1
	case 3:
		w.hi, w.loMask, w.hiMask = 3, signBit-1, 0
	}
	return w
}

// digits writes the digits of a window to dst.
func (m *msm) digits(dst []uint32, scalars []curve.Scalar, win int) {
	w := m.window(win)
	m.k.digits(&dst[0], &scalars[0][0], len(scalars), (*uint64)(unsafe.Pointer(&w)))
}

// sort writes the entries of the scalars from, …, to−1 by bucket, leaves the
// ends of the buckets in hist, and returns the number of buckets.
func (w *msmWorker) sort(from, to, win int) int {
	nb := 1 << (w.c - 1)
	if win == w.windows-1 {
		nb = w.top
	}
	hist := w.hist[:nb+1]
	clear(hist)
	n := to - from
	digit := w.digit[:n]
	w.digits(digit, w.scalars[from:to], win)
	for _, d := range digit {
		hist[d&^digitSign]++
	}
	at := uint32(0)
	for i, h := range hist {
		hist[i] = at
		at += h
	}
	clear(w.digit[n : n+placeAhead])
	if w.pick == nil {
		w.k.place(&w.entries[0], &hist[0], &digit[0], n, uint32(from))
	} else {
		w.k.placePicked(&w.entries[0], &hist[0], &digit[0], n, &w.pick[from])
	}
	return nb
}
