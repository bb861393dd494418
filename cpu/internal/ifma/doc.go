// Package ifma is the arithmetic of a proof in AVX-512 IFMA vector kernels:
// multi-scalar multiplication and plain sums in G1 and G2, and number-theoretic
// transforms over the scalar field, for BLS12-381 and BN254.
//
// Eight elements are worked on at once, one in each lane, in limbs of 52 bits
// with the Montgomery radix 2^416 or 2^260. Inputs and outputs are in the
// memory layout of gnark-crypto; x·2^384·2^32 = x·2^416 (x·2^256·2^4 = x·2^260),
// so coming from there is a shift and a weak reduction, without a product.
//
// The package allocates nothing that grows with its input: callers pass scratch
// memory of the size that the Scratch functions state. Nothing here is constant
// time.
//
// Use is optional: where [Available] is false, the constructors return nil.
package ifma

//go:generate sh gen/generate.sh
