package bls12381

// What becomes of a pair.
const (
	pairAdd      = iota
	pairDouble   // A = B
	pairTakeA    // B is infinity or missing
	pairTakeB    // A is infinity
	pairInfinity // A = −B
)
