// Package circom reads and writes the files of circom and snarkjs, for both
// curves that snarkjs proves on (bn128 and bls12381):
//
//   - .r1cs, the constraint system ([OpenR1CS], [WriteR1CS]);
//   - .wtns, a witness ([OpenWtns], [WriteWtns]);
//   - .zkey, a Groth16 proving key with its circuit ([OpenZkey], [WriteZkey]);
//   - verification_key.json, proof.json, public.json and Solidity calldata,
//     byte for byte as snarkjs writes them;
//   - circom's .wasm witness calculator with an input.json ([OpenCalculator]).
//
// Binary files are mapped into memory, and their sections are used where they
// lie: a proving key's points are never copied. A file that is replaced by
// renaming is safe while it is mapped; one that is cut short in place is not
// (the system then ends the process), as with any mapped file.
//
// Input is hostile. Every length is checked against the file before anything
// is allocated, points are checked to be on the curve and in the subgroup, and
// values to be below their modulus. What is wrong comes back as a
// *[FormatError] with the file, the section and the offset.
package circom
