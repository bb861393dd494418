// Package groth16 holds what a Groth16 proof is made of and judged by: proving
// and verifying keys, proofs, circuits and their assignments, an (unsafe)
// set-up for development, the folding of keys, the last step of a proof, and
// verification, which is gnark's own.
//
// It also states what stages ask of a processor. Arithmetic is the calls on host
// memory, all that a new processor needs; the package cpu satisfies it. Staging
// keeps a job's vectors where the processor wants them from stage to stage; the
// package cuda satisfies it, and StagingOf makes one of any Arithmetic. A stage
// calls the Staging in the order Prestage, QuotientOf, SumH for the quotient;
// Split, SumOnes, Others, SumOthers for the sums over the witness; and SumB2.
//
// All types are neutral of the curve: points and scalars are plain memory in
// gnark-crypto's layout, and each value says which curve it is on.
//
// The scheme is that of J. Groth, "On the Size of Pairing-based Non-interactive
// Arguments", EUROCRYPT 2016, section 3.2; commitments are those of gnark (BSB22,
// "Recursion over Public-Coin Interactive Proof Systems", eprint 2022/1072).
package groth16
