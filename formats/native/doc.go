// Package native reads and writes this module's own key file, extension .slk: a
// proving key of any basis, folded or not, with its verifying key and the
// circuit's matrices if there are any. Sections are aligned and hold points as
// they lie in memory, so a key is mapped and used in place: nothing is copied,
// several processes share the pages, and opening one takes milliseconds if its
// points were vetted before.
//
// The layout, little-endian throughout:
//
//	0    magic "SNRKLNK\n", u32 version (1), u32 curve (1 bn254, 2 bls12-381),
//	     u32 basis (1 monomial, 2 coset), u32 flags (1 folded, 2 input rows,
//	     4 circuit), u32 log₂ of the domain, u32 number of sections
//	32   u64 constraints, u64 wires, u64 public inputs, u64 size of the file
//	64   32 bytes generator, 32 bytes shift of the domain (Montgomery)
//	128  SHA-256 of the first 128 bytes and the table of sections, 32 zero bytes
//	192  the table: u32 kind, u32 index, u64 offset, u64 length, u32 first, u32 0
//
// Sections begin at multiples of 64. Points are affine, x then y, G2's c0 then
// c1, limbs in Montgomery form, all zero for infinity: gnark-crypto's memory,
// and that of a .zkey.
package native

// Extension is what the files are called by.
const Extension = ".slk"

const (
	magic      = "SNRKLNK\n"
	version    = 1
	headerSize = 192
	hashed     = 128 // bytes of the header that the checksum covers
	entrySize  = 32
	alignment  = 64

	flagFolded    = 1
	flagInputRows = 2
	flagCircuit   = 4

	// maxSections bounds the table; commitments are what makes it grow.
	maxSections = 1 << 16
)

// kind is what a section holds.
type kind uint32

const (
	kindSingles   kind = 1 // α₁ β₁ δ₁ β₂ δ₂
	kindA         kind = 2
	kindAWires    kind = 3 // u32 each; absent when they follow "first" of the points' entry
	kindB1        kind = 4
	kindB1Wires   kind = 5
	kindB2        kind = 6
	kindB2Wires   kind = 7
	kindL         kind = 8
	kindLWires    kind = 9
	kindH         kind = 10
	kindBasis     kind = 11 // of commitment "index"; first is the commitment's wire
	kindSigma     kind = 12
	kindComWires  kind = 13
	kindVK        kind = 20 // α₁ β₁ δ₁ β₂ γ₂ δ₂
	kindIC        kind = 21
	kindComVK     kind = 22 // G, −σG of commitment "index"
	kindCovered   kind = 23 // u64 each
	kindRows      kind = 30 // of matrix "index": 0 A, 1 B, 2 C; u32 each
	kindTerms     kind = 31 // u32 wire, u32 coefficient
	kindCoeffs    kind = 32 // 32 bytes, Montgomery
	kindCommitted kind = 33 // u32 wires that the circuit's commitment "index" is to; first is its wire
	kindCircCover kind = 34 // u64 each
)

var kindNames = map[kind]string{
	kindSingles: "single points", kindA: "A", kindAWires: "wires of A", kindB1: "B1", kindB1Wires: "wires of B1",
	kindB2: "B2", kindB2Wires: "wires of B2", kindL: "L", kindLWires: "wires of L", kindH: "H",
	kindBasis: "commitment basis", kindSigma: "commitment σ·basis", kindComWires: "commitment wires",
	kindVK: "verifying key", kindIC: "IC", kindComVK: "commitment verifying key", kindCovered: "covered inputs",
	kindRows: "matrix rows", kindTerms: "matrix terms", kindCoeffs: "matrix coefficients",
	kindCommitted: "circuit commitment wires", kindCircCover: "circuit covered inputs",
}

// perIndex says which kinds there is one of for each index.
func (k kind) perIndex() bool {
	switch k {
	case kindBasis, kindSigma, kindComWires, kindComVK, kindCovered, kindRows, kindTerms, kindCoeffs, kindCommitted, kindCircCover:
		return true
	}
	return false
}
