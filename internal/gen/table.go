package main

// rename is one substitution. They are applied in order, to text and, if the
// copy stays in its folder, to file names too.
type rename struct{ From, To string }

// bn254 turns code for BLS12-381 into code for BN254.
var bn254 = []rename{
	{"bls12-381", "bn254"},
	{"bls12381", "bn254"},
	{"BLS12381", "BN254"},
	{"BLS12-381", "BN254"},
	{"limb.Sub6", "limb.Sub4"},
}

// g2 turns code for G1 into code for G2.
var g2 = []rename{
	{"G1", "G2"},
	{"g1", "g2"},
}

// copies lists what is generated, in the order in which it must be made: a
// copy may be made of copies.
var copies = []copying{
	{From: "cpu/internal/bls12381", Suffixes: []string{"_g1.go", "_g1_test.go"}, Renames: g2},
	{From: "cpu/internal/bls12381", To: "cpu/internal/bn254", Renames: bn254},
	{From: "groth16/internal/bls12381", To: "groth16/internal/bn254", Renames: bn254},
	{From: "formats/gnark/internal/bls12381", To: "formats/gnark/internal/bn254", Renames: bn254},
}
