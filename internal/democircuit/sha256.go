package democircuit

import (
	"encoding/binary"
	"math/bits"

	"github.com/consensys/gnark/frontend"
	gnarkbits "github.com/consensys/gnark/std/math/bits"
)

// blockRounds is the number of rounds of one SHA-256 compression (FIPS 180-4, 6.2.2).
const blockRounds = 64

// sha256Chain is a chain of SHA-256 compressions with a boolean wire for every
// bit, the form in which bellperson and circomlib write it: nearly all wires
// are 0 or 1. The last compression may stop early, so that the size of the
// circuit can be chosen finely; with whole compressions and a padded message
// Digest is the message's SHA-256.
type sha256Chain struct {
	Blocks [][16]frontend.Variable // 32-bit words, most significant byte first
	Digest [2]frontend.Variable    `gnark:",public"` // two halves of 128 bits

	rounds int // of the last block
}

func newChain(blocks, lastRounds int) *sha256Chain {
	return &sha256Chain{Blocks: make([][16]frontend.Variable, blocks), rounds: lastRounds}
}

// word is 32 bits, least significant first.
type word [32]frontend.Variable

// Define implements frontend.Circuit.
func (c *sha256Chain) Define(api frontend.API) error {
	var state [8]word
	for i, v := range initial {
		state[i] = constant(v)
	}
	for i := range c.Blocks {
		rounds := blockRounds
		if i == len(c.Blocks)-1 {
			rounds = c.rounds
		}
		state = compress(api, state, &c.Blocks[i], rounds)
	}
	for half := range c.Digest {
		var all []frontend.Variable
		for i := 3; i >= 0; i-- {
			all = append(all, state[4*half+i][:]...)
		}
		api.AssertIsEqual(c.Digest[half], pack(api, all))
	}
	return nil
}

func compress(api frontend.API, state [8]word, block *[16]frontend.Variable, rounds int) [8]word {
	w := make([]word, max(rounds, 16))
	for i := range block {
		w[i] = split(api, block[i], 32)
	}
	for i := 16; i < rounds; i++ {
		s0 := xor3(api, rotate(w[i-15], 7), rotate(w[i-15], 18), shift(w[i-15], 3))
		s1 := xor3(api, rotate(w[i-2], 17), rotate(w[i-2], 19), shift(w[i-2], 10))
		w[i] = add(api, 0, w[i-16], s0, w[i-7], s1)
	}
	v := state
	for i := range rounds {
		a, b, c, d, e, f, g, h := v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]
		s1 := xor3(api, rotate(e, 6), rotate(e, 11), rotate(e, 25))
		s0 := xor3(api, rotate(a, 2), rotate(a, 13), rotate(a, 22))
		var ch, maj word
		for j := range ch {
			ch[j] = api.Add(g[j], api.Mul(e[j], api.Sub(f[j], g[j])))
			// maj = b·c + a·(b ⊕ c)
			bc := api.Mul(b[j], c[j])
			maj[j] = api.Add(bc, api.Mul(a[j], api.Sub(api.Add(b[j], c[j]), api.Mul(2, bc))))
		}
		v = [8]word{
			add(api, roundConstants[i], h, s1, ch, w[i], s0, maj), a, b, c,
			add(api, roundConstants[i], d, h, s1, ch, w[i]), e, f, g,
		}
	}
	for i := range v {
		v[i] = add(api, 0, v[i], state[i])
	}
	return v
}

// constant is v as bits that are known when the circuit is compiled.
func constant(v uint32) (w word) {
	for i := range w {
		w[i] = v >> i & 1
	}
	return w
}

// split gives the low 32 of the n bits of v, which it constrains to n bits.
func split(api frontend.API, v frontend.Variable, n int) (w word) {
	copy(w[:], api.ToBinary(v, n))
	return w
}

// pack is the number that the bits make. They are known to be bits already,
// so it costs no constraint.
func pack(api frontend.API, b []frontend.Variable) frontend.Variable {
	return gnarkbits.FromBinary(api, b, gnarkbits.WithUnconstrainedInputs())
}

// add is the sum of k and words mod 2^32.
func add(api frontend.API, k uint32, words ...word) word {
	var sum frontend.Variable = k
	most := uint64(k)
	for i := range words {
		sum = api.Add(sum, pack(api, words[i][:]))
		most += 1<<32 - 1
	}
	return split(api, sum, bits.Len64(most))
}

func xor3(api frontend.API, a, b, c word) (out word) {
	for i := range out {
		out[i] = api.Xor(api.Xor(a[i], b[i]), c[i])
	}
	return out
}

func rotate(a word, n int) (out word) {
	for i := range out {
		out[i] = a[(i+n)%32]
	}
	return out
}

func shift(a word, n int) (out word) {
	for i := range out {
		out[i] = 0
		if i+n < 32 {
			out[i] = a[i+n]
		}
	}
	return out
}

// sum is the chain in the clear: the state after the blocks of msg, whose
// length is a multiple of 64.
func sum(msg []byte, lastRounds int) [32]byte {
	state := initial
	for ; len(msg) > 0; msg = msg[64:] {
		rounds := blockRounds
		if len(msg) == 64 {
			rounds = lastRounds
		}
		w := make([]uint32, max(rounds, 16))
		for i := range 16 {
			w[i] = binary.BigEndian.Uint32(msg[4*i:])
		}
		for i := 16; i < rounds; i++ {
			x, y := w[i-15], w[i-2]
			w[i] = w[i-16] + w[i-7] +
				(rotr(x, 7) ^ rotr(x, 18) ^ x>>3) + (rotr(y, 17) ^ rotr(y, 19) ^ y>>10)
		}
		v := state
		for i := range rounds {
			t1 := v[7] + (rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25)) +
				(v[4]&v[5] ^ ^v[4]&v[6]) + roundConstants[i] + w[i]
			t2 := (rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22)) +
				(v[0]&v[1] ^ v[0]&v[2] ^ v[1]&v[2])
			v = [8]uint32{t1 + t2, v[0], v[1], v[2], v[3] + t1, v[4], v[5], v[6]}
		}
		for i := range state {
			state[i] += v[i]
		}
	}
	var out [32]byte
	for i, v := range state {
		binary.BigEndian.PutUint32(out[4*i:], v)
	}
	return out
}

func rotr(x uint32, n int) uint32 { return bits.RotateLeft32(x, -n) }

// pad fills msg up to blocks·64 bytes as SHA-256 does (FIPS 180-4, 5.1.1);
// len(msg) is at most blocks·64 − 9.
func pad(msg []byte, blocks int) []byte {
	out := make([]byte, 64*blocks)
	copy(out, msg)
	out[len(msg)] = 0x80
	binary.BigEndian.PutUint64(out[len(out)-8:], uint64(8*len(msg)))
	return out
}

var initial = [8]uint32{
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
}

var roundConstants = [blockRounds]uint32{
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}
