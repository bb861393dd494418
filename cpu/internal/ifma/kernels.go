package ifma

import "unsafe"

// kernels are the vector kernels of one source group and the shapes they work on.
//
// A vector is nl·8 words: limb j of lane e at word 8·j + e. A coefficient is a
// vector, a coordinate nc of them. A record is recFields coordinates and holds
// eight pair additions. A row is a point between kernels: x then y, values
// below 2p (BLS12-381: 3p) with the package's radix; 52-bit limbs of 8 words a coefficient when
// nl is 8, packed in 4 words when nl is 5. An infinite row has bit 63 of word
// infWord set and is never an operand.
type kernels struct {
	sortKernels
	nl, nc, words int
	infWord       int
	recBytes      int
	one           []uint64 // limbs of 1, Montgomery

	loadPoints, loadRows func(rec, src *byte, a, b *uint32, n int)
	convert              func(rows, src *byte, a, dst *uint32, tmp *byte, n int)
	// mul sets dst = a·b in n records, n even, from the first to the last or
	// the other way round; the pointers are to fields of the first. tmp is a
	// vector of scratch.
	mul func(dst, a, b, tmp *byte, n int, backward bool)
	x3  func(rec *byte, n int) // n records, n even
	y3  func(rec, rows *byte, dst *uint32, n int)
}

// sortKernels sort terms by bucket.
type sortKernels struct {
	digits      func(dst *uint32, scalars *uint64, n int, w *uint64)
	place       func(entries, at, digit *uint32, n int, first uint32)
	placePicked func(entries, at, digit *uint32, n int, pick *uint32)
}

// The fields of a record, in coordinates.
const (
	fieldDX = iota
	fieldDY
	fieldX1
	fieldY1
	fieldSX
	fieldPre
	fieldInv
	recFields
)

func (k *kernels) vecBytes() int   { return 64 * k.nl }
func (k *kernels) coordBytes() int { return k.nc * k.vecBytes() }
func (k *kernels) pointBytes() int { return 16 * k.nc * k.words }

// rowWords is the size of a row in words.
func (k *kernels) rowWords() int {
	if k.nl == 8 {
		return 16 * k.nc
	}
	return 8 * k.nc
}

// ptr is the address of b[off].
func ptr(b []byte, off int) *byte { return &b[off] }

// words reads n words at b[off:]; b comes from scratch and is 64-byte aligned.
func words(b []byte, off, n int) []uint64 {
	_ = b[off : off+8*n]
	return unsafe.Slice((*uint64)(unsafe.Pointer(&b[off])), n)
}
