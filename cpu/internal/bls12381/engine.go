// Package bls12381 is the arithmetic of a Groth16 proof over BLS12-381 on a
// CPU. The package for BN254 is generated from it, and the code for G2 from
// that for G1; see generate.go of package cpu.
package bls12381

import (
	"unsafe"

	"golang.org/x/sync/semaphore"

	gc "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/snarkline/snarkline/cpu/internal/ifma"
	"github.com/snarkline/snarkline/cpu/internal/limb"
	"github.com/snarkline/snarkline/curve"
)

const id = curve.BLS12381

// Engine does the arithmetic. Turn, which engines may share, lets one large
// call at a time have all workers. VecG1 and VecG2 are the vector kernels that
// take larger sums; nil where there are none.
type Engine struct {
	Workers      int
	Turn         *semaphore.Weighted
	VecG1, VecG2 *ifma.Group
	Tables       tables
	Roots        roots
}

// New makes an engine, with vector kernels if they are wanted and can run here.
func New(workers int, turn *semaphore.Weighted, vectors bool) *Engine {
	e := &Engine{Workers: workers, Turn: turn}
	if vectors {
		e.VecG1, e.VecG2 = ifma.NewGroup(id, curve.InG1), ifma.NewGroup(id, curve.InG2)
	}
	return e
}

// The points and coordinates of the two groups.
type (
	pointG1 = gc.G1Affine
	pointG2 = gc.G2Affine
	coordG1 = fp.Element
	coordG2 = gc.E2
)

const (
	bytesG1 = int(unsafe.Sizeof(pointG1{}))
	bytesG2 = int(unsafe.Sizeof(pointG2{}))

	// foldedBits is the length of the largest scalar once the smaller of s
	// and r − s is taken.
	foldedBits = fr.Bits - 1
)

const (
	// vecMin is the number of terms below which vector kernels are never faster.
	vecMin = 512
	// vecGain is how many additions of the vector kernels take the time of one
	// of this package.
	vecGain = 4
)

// valueG1 is p in the memory that the curves share.
func valueG1(p *pointG1) (v curve.G1) {
	n := copy(v[:], p.X[:])
	copy(v[n:], p.Y[:])
	return v
}

// valueG2 is p in the memory that the curves share.
func valueG2(p *pointG2) (v curve.G2) {
	n := copy(v[:], p.X.A0[:])
	copy(v[n:], p.X.A1[:])
	copy(v[2*n:], p.Y.A0[:])
	copy(v[3*n:], p.Y.A1[:])
	return v
}

// elements is v as field elements.
func elements(v []curve.Scalar) fr.Vector {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*fr.Element)(unsafe.SliceData(v)), len(v))
}

// modulus is r in plain limbs.
func modulus() (r [4]uint64) {
	m := fr.Modulus()
	for i, w := range m.Bits() {
		r[i] = uint64(w)
	}
	return r
}

// prime is the order of the base field in plain limbs.
var prime = func() (q [fp.Limbs]uint64) {
	for i, w := range fp.Modulus().Bits() {
		q[i] = uint64(w)
	}
	return q
}()

// subG1 and subG2 are z = x − y without a branch.
func subG1(z, x, y *coordG1) {
	limb.Sub6((*[fp.Limbs]uint64)(z), (*[fp.Limbs]uint64)(x), (*[fp.Limbs]uint64)(y), &prime)
}

func subG2(z, x, y *coordG2) { z.Sub(x, y) }
