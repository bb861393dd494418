package sniff

import (
	"encoding/binary"
	"io"

	"github.com/snarkline/snarkline/curve"
)

// gnark fills res in if the file is one of gnark's.
func gnark(f io.ReaderAt, res *Result) {
	walk := func() *reader { return &reader{f: f, end: res.Size} }
	if witness(walk()) {
		res.Kind = GnarkWitness
		return
	}
	for _, id := range curve.All() {
		for _, raw := range []bool{false, true} {
			g1, g2 := int64(id.G1Bytes()), int64(id.G2Bytes())
			if !raw {
				g1, g2 = g1/2, g2/2
			}
			for _, form := range []struct {
				kind Kind
				fits func(r *reader, g1, g2 int64) bool
			}{{GnarkProof, proof}, {GnarkVK, verifyingKey}, {GnarkPK, provingKey}} {
				if form.fits(walk(), g1, g2) && (form.kind == GnarkPK || compressed(f, id) != raw) {
					res.Kind, res.Curve, res.Raw = form.kind, id, raw
					return
				}
			}
		}
	}
	if dump(walk()) {
		res.Kind, res.Raw = GnarkPK, true
		return
	}
	if system(walk()) {
		res.Kind = GnarkR1CS
	}
}

// compressed reads the flags of the first point in a file: on BN254 a
// compressed point has one of the two top bits set, on BLS12-381 the top bit.
func compressed(f io.ReaderAt, id curve.ID) bool {
	var b [1]byte
	if _, err := f.ReadAt(b[:], 0); err != nil {
		return false
	}
	if id == curve.BN254 {
		return b[0]>>6 != 0
	}
	return b[0]>>7 != 0
}

// witness: u32 public, u32 secret, u32 length, the elements.
func witness(r *reader) bool {
	public, secret, n := r.u32(), r.u32(), r.u32()
	r.skip(n * curve.ScalarBytes)
	return r.whole() && public+secret == n
}

// proof: A, B, C, the commitments, their proof of knowledge.
func proof(r *reader, g1, g2 int64) bool {
	r.skip(g1 + g2 + g1)
	r.skip(r.u32() * g1)
	r.skip(g1)
	return r.whole()
}

// verifyingKey: α, β in G1, β, γ in G2, δ in both, IC, what is committed to,
// and the commitments' keys.
func verifyingKey(r *reader, g1, g2 int64) bool {
	r.skip(g1 + g1 + g2 + g2 + g1 + g2)
	r.skip(r.u32() * g1)
	for n := r.count(4); n > 0 && !r.bad; n-- {
		r.skip(r.u32() * 8)
	}
	r.skip(r.u32() * 2 * g2)
	return r.whole()
}

// domainBytes is the size of gnark-crypto's fft.Domain in a file.
const domainBytes = 8 + 5*curve.ScalarBytes + 1

// provingKey: the domain, α, β, δ, A, B, Z, K in G1, β, δ, B in G2, the wires
// with the flags of those at infinity, and the commitments' keys.
func provingKey(r *reader, g1, g2 int64) bool {
	n := r.u64()
	if n == 0 || n&(n-1) != 0 {
		return false
	}
	r.skip(domainBytes - 8)
	r.skip(3 * g1)
	for range 4 {
		r.skip(r.u32() * g1)
	}
	r.skip(2 * g2)
	r.skip(r.u32() * g2)
	wires := r.u64()
	r.skip(8 + 8)
	r.skip(2 * wires)
	for n := r.count(8); n > 0 && !r.bad; n-- {
		r.skip(r.u32() * g1)
		r.skip(r.u32() * g1)
	}
	return r.whole()
}

// dump is a proving key as gnark's WriteDump makes it.
func dump(r *reader) bool {
	b := r.bytes(8)
	return !r.bad && (binary.LittleEndian.Uint64(b) == 0xdeadbeef || binary.BigEndian.Uint64(b) == 0xdeadbeef)
}

// system: u64 length of the rest, three of gnark's version, all little-endian.
func system(r *reader) bool {
	b := r.bytes(32)
	if n := binary.LittleEndian.Uint64(b); n < 32 || n > uint64(r.end) {
		return false
	}
	r.skip(int64(binary.LittleEndian.Uint64(b)))
	return r.whole()
}
