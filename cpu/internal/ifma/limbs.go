package ifma

import (
	"math/bits"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	bn "github.com/consensys/gnark-crypto/ecc/bn254/fp"
)

// Conversions of single elements between a lane of a vector and gnark-crypto.
// They are for the few elements a batch that leave the vectors.

const mask52 = 1<<52 - 1

var (
	p381 = [6]uint64{0xb9feffffffffaaab, 0x1eabfffeb153ffff, 0x6730d2a0f6b0f624, 0x64774b84f38512bf, 0x4b1ba7b6434bacd7, 0x1a0111ea397fe69a}
	p254 = [4]uint64{0x3c208c16d87cfd47, 0x97816a916871ca8d, 0xb85045b68181585d, 0x30644e72e131a029}

	// up381 and up254 are the ratio of the two Montgomery radices, down381 and down254 its inverse.
	up381, down381 = ratio381()
	up254, down254 = ratio254()
)

func ratio381() (up, down bls.Element) {
	up.SetUint64(1 << 32)
	down.Inverse(&up)
	return up, down
}

func ratio254() (up, down bn.Element) {
	up.SetUint64(1 << 4)
	down.Inverse(&up)
	return up, down
}

// get381 reads an element from v[0], v[stride], …; limbs may be raw, the value
// is not negative and below 2^416.
func get381(v []uint64, stride int) bls.Element {
	var l [8]uint64
	var c int64
	for j := range l {
		x := int64(v[j*stride]) + c
		if j < 7 {
			l[j], c = uint64(x)&mask52, x>>52
		} else {
			l[j] = uint64(x)
		}
	}
	return fromWords381([6]uint64{
		l[0] | l[1]<<52, l[1]>>12 | l[2]<<40, l[2]>>24 | l[3]<<28,
		l[3]>>36 | l[4]<<16, l[4]>>48 | l[5]<<4 | l[6]<<56, l[6]>>8 | l[7]<<44,
	}, l[7]>>20)
}

// fromWords381 reads x·2^416 + a multiple of p as x; high is what the value has
// from 2^384 on.
func fromWords381(w [6]uint64, high uint64) bls.Element {
	for {
		var d [6]uint64
		var b uint64
		for i := range d {
			d[i], b = bits.Sub64(w[i], p381[i], b)
		}
		if b != 0 {
			break
		}
		w = d
	}
	z := bls.Element(w)
	if high != 0 { // as an element's memory, high is high·2^384
		var h bls.Element
		h.SetUint64(high)
		z.Add(&z, &h)
	}
	z.Mul(&z, &down381)
	return z
}

// put381 writes e to v[0], v[stride], …, canonical.
func put381(v []uint64, stride int, e bls.Element) {
	e.Mul(&e, &up381)
	l := [8]uint64{
		e[0], e[0]>>52 | e[1]<<12, e[1]>>40 | e[2]<<24, e[2]>>28 | e[3]<<36,
		e[3]>>16 | e[4]<<48, e[4] >> 4, e[4]>>56 | e[5]<<8, e[5] >> 44,
	}
	for j := range l {
		v[j*stride] = l[j] & mask52
	}
}

// get254 is get381 for the field of BN254; the value is below 2^256.
func get254(v []uint64, stride int) bn.Element {
	var l [5]uint64
	var c int64
	for j := range l {
		x := int64(v[j*stride]) + c
		if j < 4 {
			l[j], c = uint64(x)&mask52, x>>52
		} else {
			l[j] = uint64(x)
		}
	}
	return fromWords254([4]uint64{
		l[0] | l[1]<<52, l[1]>>12 | l[2]<<40, l[2]>>24 | l[3]<<28, l[3]>>36 | l[4]<<16,
	})
}

// fromWords254 reads x·2^260 + a multiple of p as x.
func fromWords254(w [4]uint64) bn.Element {
	for {
		var d [4]uint64
		var b uint64
		for i := range d {
			d[i], b = bits.Sub64(w[i], p254[i], b)
		}
		if b != 0 {
			break
		}
		w = d
	}
	z := bn.Element(w)
	z.Mul(&z, &down254)
	return z
}

// put254 is put381 for the field of BN254.
func put254(v []uint64, stride int, e bn.Element) {
	e.Mul(&e, &up254)
	l := [5]uint64{e[0], e[0]>>52 | e[1]<<12, e[1]>>40 | e[2]<<24, e[2]>>28 | e[3]<<36, e[3] >> 16}
	for j := range l {
		v[j*stride] = l[j] & mask52
	}
}

func one381() []uint64 {
	v := make([]uint64, 8)
	put381(v, 1, bls.One())
	return v
}

func one254() []uint64 {
	v := make([]uint64, 5)
	put254(v, 1, bn.One())
	return v
}
