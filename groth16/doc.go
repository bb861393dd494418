// Package groth16 holds what a Groth16 proof is made of and judged by: proving
// and verifying keys, proofs, circuits and their assignments, an (unsafe)
// set-up for development, the folding of keys, the last step of a proof, and
// verification, which is gnark's own.
//
// It also states Arithmetic, the one interface through which stages ask a
// processor to compute. The package cpu satisfies it; there is no package for
// another processor yet.
//
// All types are neutral of the curve: points and scalars are plain memory in
// gnark-crypto's layout, and each value says which curve it is on.
//
// The scheme is that of J. Groth, "On the Size of Pairing-based Non-interactive
// Arguments", EUROCRYPT 2016, section 3.2; commitments are those of gnark (BSB22,
// "Recursion over Public-Coin Interactive Proof Systems", eprint 2022/1072).
package groth16
