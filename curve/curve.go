// Package curve names the curves that a proof can live on and gives the sizes
// of their elements, the scalar type they share, and views of raw memory as
// points. It holds no arithmetic and imports nothing of this module, so that
// every arithmetic (CPU, CUDA) and every file format can speak of the same
// memory.
package curve

import (
	"fmt"
	"math/big"
	"strings"
)

// ID is a pairing-friendly curve. The zero value is no curve.
type ID uint8

// The curves that are known.
const (
	BN254    ID = 1 // alt_bn128 of Ethereum; "bn128" in circom's files
	BLS12381 ID = 2 // of Zcash and Filecoin
)

// All lists the known curves in a fixed order.
func All() []ID { return []ID{BN254, BLS12381} }

// params are the constants of a curve.
type params struct {
	name    string
	circom  string
	fp      int // bytes of a base field element
	r, q    string
	twoAdic int
}

var table = [...]params{
	BN254: {
		name: "bn254", circom: "bn128", fp: 32, twoAdic: 28,
		r: "21888242871839275222246405745257275088548364400416034343698204186575808495617",
		q: "21888242871839275222246405745257275088696311157297823662689037894645226208583",
	},
	BLS12381: {
		name: "bls12-381", circom: "bls12381", fp: 48, twoAdic: 32,
		r: "52435875175126190479447740508185965837690552500527637822603658699938581184513",
		q: "4002409555221667393417789825735904156556882819939007885332058136124031650490837864442687629129015664037894272559787",
	},
}

// Parse reads the name of a curve in any of the spellings in use: bn254,
// bn128, alt_bn128, bn-254, bls12-381, bls12381, bls12_381.
func Parse(name string) (ID, error) {
	switch strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name)) {
	case "bn254", "bn128", "altbn128":
		return BN254, nil
	case "bls12381", "bls381":
		return BLS12381, nil
	}
	return 0, fmt.Errorf("unknown curve %q (known: bn254, bls12-381)", name)
}

// Valid reports whether id is a known curve.
func (id ID) Valid() bool { return id == BN254 || id == BLS12381 }

// String is the curve's usual name: "bn254", "bls12-381".
func (id ID) String() string {
	if !id.Valid() {
		return fmt.Sprintf("curve(%d)", uint8(id))
	}
	return table[id].name
}

// Circom is the name that circom and snarkjs give the curve: "bn128", "bls12381".
func (id ID) Circom() string {
	if !id.Valid() {
		return id.String()
	}
	return table[id].circom
}

// FieldBytes is the size of a base field element: 32 or 48.
func (id ID) FieldBytes() int {
	if !id.Valid() {
		return 0
	}
	return table[id].fp
}

// G1Bytes is the size of an affine G1 point in memory: 64 or 96.
func (id ID) G1Bytes() int { return 2 * id.FieldBytes() }

// G2Bytes is the size of an affine G2 point in memory: 128 or 192.
func (id ID) G2Bytes() int { return 4 * id.FieldBytes() }

// TwoAdicity is the largest k for which the scalar field has a domain of 2^k.
func (id ID) TwoAdicity() int {
	if !id.Valid() {
		return 0
	}
	return table[id].twoAdic
}

// ScalarModulus returns a fresh copy of r, the order of the groups.
func (id ID) ScalarModulus() *big.Int { return decimal(table[id].r) }

// FieldModulus returns a fresh copy of q, the order of the base field.
func (id ID) FieldModulus() *big.Int { return decimal(table[id].q) }

func decimal(s string) *big.Int {
	v, _ := new(big.Int).SetString(s, 10)
	return v
}
