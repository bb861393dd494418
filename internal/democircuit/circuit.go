// Package democircuit holds the circuits of the demonstration
// and the benchmarks: a SHA-256 chain, whose witness is nearly all bits, and a
// MiMC chain, whose witness is all full-size field elements. Both come in any
// size and on both curves. Their set-up is for development only.
package democircuit

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"

	"github.com/consensys/gnark/backend/witness"
	"github.com/consensys/gnark/constraint"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"

	"github.com/consensys/gnark-crypto/ecc"

	"github.com/snarkline/snarkline/curve"
)

// Circuit is a compiled circuit with a witness for each partition of a batch.
type Circuit struct {
	Name  string
	Curve curve.ID
	CCS   constraint.ConstraintSystem

	assign   func(part int) frontend.Circuit
	describe func(part int) string
}

// The smallest and the largest sizes that BitHeavy and Dense make.
const (
	MinLog = 11
	MaxLog = 24
)

// Demo is the circuit of `make demo`: the SHA-256 of a message of 119 bytes,
// two compressions, on BLS12-381; its domain is 2^16.
func Demo() (*Circuit, error) { return sha(curve.BLS12381, "sha-256", 2, blockRounds) }

// Constraints of the SHA-256 chain; a test holds them against the compiled circuit.
const (
	wholeBlock = 27010 // of a compression
	lastFixed  = 800   // of a shortened last one: message and final additions
	earlyRound = 297   // of each of its first 16 rounds
	lateRound  = 447   // of each round after them, with a word of the schedule
)

// BitHeavy is a SHA-256 chain of at most 2^log constraints, and not many less.
func BitHeavy(id curve.ID, log int) (*Circuit, error) {
	if log < MinLog || log > MaxLog {
		return nil, fmt.Errorf("bit-heavy circuit of 2^%d constraints: the log is %d to %d", log, MinLog, MaxLog)
	}
	blocks, left := (1<<log)/wholeBlock, (1<<log)%wholeBlock-lastFixed
	rounds := blockRounds
	if r := min(left/earlyRound, 16) + max(left-16*earlyRound, 0)/lateRound; left >= earlyRound {
		blocks, rounds = blocks+1, r
	}
	return sha(id, fmt.Sprintf("bit-heavy 2^%d", log), blocks, rounds)
}

// Dense is a MiMC chain of at most 2^log constraints, and not many less.
func Dense(id curve.ID, log int) (*Circuit, error) {
	if log < 2 || log > MaxLog {
		return nil, fmt.Errorf("dense circuit of 2^%d constraints: the log is 2 to %d", log, MaxLog)
	}
	rounds := (1<<log - 1) / 3
	c := &Circuit{Name: fmt.Sprintf("dense 2^%d", log), Curve: id}
	input := func(part int) (start, key *big.Int) {
		return big.NewInt(int64(part) + 1), new(big.Int).Add(roundConstant(-1), big.NewInt(int64(part)))
	}
	c.assign = func(part int) frontend.Circuit {
		start, key := input(part)
		return &mimcChain{Start: start, Key: key, End: mimc(start, key, rounds, id.ScalarModulus())}
	}
	c.describe = func(part int) string {
		start, key := input(part)
		return fmt.Sprintf("MiMC, %d rounds from %v: %x…", rounds, start,
			mimc(start, key, rounds, id.ScalarModulus()).Bytes()[:8])
	}
	return c, c.compile(&mimcChain{rounds: rounds})
}

func sha(id curve.ID, name string, blocks, lastRounds int) (*Circuit, error) {
	c := &Circuit{Name: name, Curve: id}
	message := func(part int) []byte {
		line := fmt.Appendf(nil, "snarkline, partition %d. ", part)
		msg := make([]byte, 64*blocks-9)
		for i := range msg {
			msg[i] = line[i%len(line)]
		}
		return msg
	}
	c.assign = func(part int) frontend.Circuit {
		padded := pad(message(part), blocks)
		w := newChain(blocks, lastRounds)
		digest := sum(padded, lastRounds)
		for i := range w.Blocks {
			for j := range w.Blocks[i] {
				w.Blocks[i][j] = binary.BigEndian.Uint32(padded[64*i+4*j:])
			}
		}
		for i := range w.Digest {
			w.Digest[i] = new(big.Int).SetBytes(digest[16*i : 16*i+16])
		}
		return w
	}
	c.describe = func(part int) string {
		digest := sum(pad(message(part), blocks), lastRounds)
		return fmt.Sprintf("%s of %q…: %s…", name, message(part)[:23], hex.EncodeToString(digest[:8]))
	}
	return c, c.compile(newChain(blocks, lastRounds))
}

// field is the scalar field as gnark names it.
func (c *Circuit) field() (*big.Int, error) {
	switch c.Curve {
	case curve.BN254:
		return ecc.BN254.ScalarField(), nil
	case curve.BLS12381:
		return ecc.BLS12_381.ScalarField(), nil
	}
	return nil, fmt.Errorf("circuit %s: unknown %v", c.Name, c.Curve)
}

func (c *Circuit) compile(definition frontend.Circuit) error {
	field, err := c.field()
	if err != nil {
		return err
	}
	c.CCS, err = frontend.Compile(field, r1cs.NewBuilder, definition)
	if err != nil {
		return fmt.Errorf("compile %s: %w", c.Name, err)
	}
	return nil
}

// Witness is the input of one partition, public and secret.
func (c *Circuit) Witness(part int) (witness.Witness, error) {
	field, err := c.field()
	if err != nil {
		return nil, err
	}
	w, err := frontend.NewWitness(c.assign(part), field)
	if err != nil {
		return nil, fmt.Errorf("witness %d of %s: %w", part, c.Name, err)
	}
	return w, nil
}

// Describe says in a line what partition part proves.
func (c *Circuit) Describe(part int) string { return c.describe(part) }
