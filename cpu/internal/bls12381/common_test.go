package bls12381

import (
	"math/rand/v2"
	"testing"

	gc "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

func generatorG1() pointG1 {
	_, _, g, _ := gc.Generators()
	return g
}

func generatorG2() pointG2 {
	_, _, _, g := gc.Generators()
	return g
}

func randomScalar(rng *rand.Rand) fr.Element {
	var s fr.Element
	var b [fr.Bytes + 8]byte
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return *s.SetBytes(b[:])
}

func newRand(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// make30 is a pick of 30 points, all at j.
func make30(j uint32) []uint32 {
	pick := make([]uint32, 30)
	for i := range pick {
		pick[i] = j
	}
	return pick
}
