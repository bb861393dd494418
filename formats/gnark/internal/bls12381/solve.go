package bls12381

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/consensys/gnark-crypto/ecc"
	ec "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/hash_to_field"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/pedersen"
	"github.com/consensys/gnark/backend/witness"
	"github.com/consensys/gnark/constraint"
	cs "github.com/consensys/gnark/constraint/bls12-381"
	"github.com/consensys/gnark/constraint/solver"
	fcs "github.com/consensys/gnark/frontend/cs"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark/internal/parts"
	"github.com/snarkline/snarkline/groth16"
)

// System is the base part of a constraint system of this curve; false when it
// is another curve's.
func (Backend) System(c constraint.ConstraintSystem) (*constraint.System, []fr.Element, bool) {
	s, ok := c.(*cs.R1CS)
	if !ok {
		return nil, nil, false
	}
	return &s.System, s.Coefficients, true
}

// IsWitness reports whether w holds values of this curve's scalar field.
func (Backend) IsWitness(w witness.Witness) bool {
	_, ok := w.Vector().(fr.Vector)
	return ok
}

// Wipe clears what a witness holds.
func (Backend) Wipe(w witness.Witness) {
	if v, ok := w.Vector().(fr.Vector); ok {
		clear(v)
	}
}

// Solve runs gnark's solver with the commitments computed as gnark's prover
// computes them.
func (Backend) Solve(c constraint.ConstraintSystem, w witness.Witness, keys []groth16.CommitmentKey, opts []solver.Option) (*parts.Solved, error) {
	r1cs, ok := c.(*cs.R1CS)
	if !ok {
		return nil, fmt.Errorf("the circuit is a %T", c)
	}
	info, ok := r1cs.CommitmentInfo.(constraint.Groth16Commitments)
	if !ok {
		return nil, fmt.Errorf("the circuit's commitments are %T", r1cs.CommitmentInfo)
	}
	if len(info) != len(keys) {
		return nil, fmt.Errorf("the circuit has %d commitments, the key takes %d", len(info), len(keys))
	}
	com := &committer{info: info, values: make([][]fr.Element, len(info)), points: make([]ec.G1Affine, len(info))}
	defer com.wipe()
	for _, k := range keys {
		com.keys = append(com.keys, pedersen.ProvingKey{Basis: g1s(k.Basis), BasisExpSigma: g1s(k.BasisExpSigma)})
	}
	opts = append(opts[:len(opts):len(opts)], solver.OverrideHint(solver.GetHintID(fcs.Bsb22CommitmentComputePlaceholder), com.commit), parts.GuardHints(&com.failed))

	if err := solvable(r1cs, w, opts); err != nil {
		return nil, err
	}

	solution, err := r1cs.Solve(w, opts...)
	if err != nil {
		if failed := com.failed.Err(); failed != nil {
			return nil, failed
		}
		var u *cs.UnsatisfiedConstraintError
		if errors.As(err, &u) {
			return nil, &groth16.UnsatisfiedError{Row: u.CID, Err: reason{u}}
		}
		// What remains is a hint that refuses its inputs.
		return nil, &groth16.UnsatisfiedError{Row: -1, Err: err}
	}
	s, ok := solution.(*cs.R1CSSolution)
	if !ok {
		return nil, fmt.Errorf("gnark's solver gave a %T", solution)
	}
	out := &parts.Solved{W: scalars(s.W), A: scalars(s.A), B: scalars(s.B), C: scalars(s.C)}
	if len(keys) == 0 {
		return out, nil
	}
	pok, err := com.prove(s.W)
	if err != nil {
		out.Wipe()
		return nil, fmt.Errorf("prove knowledge of the commitments: %w", err)
	}
	for i := range com.points {
		out.Commitments = append(out.Commitments, fromG1(&com.points[i]))
	}
	out.CommitmentPok = fromG1(&pok)
	return out, nil
}

// reason is gnark's error without the number of the constraint, which
// UnsatisfiedError says itself.
type reason struct{ *cs.UnsatisfiedConstraintError }

func (r reason) Error() string {
	if r.DebugInfo != nil {
		return *r.DebugInfo
	}
	return r.Err.Error()
}

func (r reason) Unwrap() error { return r.UnsatisfiedConstraintError }

// solvable looks for what is the caller's mistake rather than the witness's.
func solvable(r1cs *cs.R1CS, w witness.Witness, opts []solver.Option) error {
	if v, ok := w.Vector().(fr.Vector); !ok {
		return fmt.Errorf("the witness is a %T", w.Vector())
	} else if n := r1cs.GetNbPublicVariables() - 1 + r1cs.GetNbSecretVariables(); len(v) != n {
		return fmt.Errorf("the witness has %d values, the circuit takes %d", len(v), n)
	}
	config, err := solver.NewConfig(opts...)
	if err != nil {
		return fmt.Errorf("options of the solver: %w", err)
	}
	var missing []string
	for id, name := range r1cs.MHintsDependencies {
		if r1cs.GkrInfo.Is() && (id == r1cs.GkrInfo.SolveHintID || id == r1cs.GkrInfo.ProveHintID) {
			continue // the solver brings them
		}
		if _, ok := config.HintFunctions[id]; !ok {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("the circuit needs the hint %s, which is not registered", missing[0])
	}
	return fmt.Errorf("the circuit needs hints that are not registered: %s", strings.Join(missing, ", "))
}

// committer computes the Pedersen commitments of one witness.
type committer struct {
	info   constraint.Groth16Commitments
	keys   []pedersen.ProvingKey
	values [][]fr.Element
	points []ec.G1Affine
	failed parts.Failure // of commit, or a hint that panics
}

func (c *committer) wipe() {
	for _, v := range c.values {
		clear(v)
	}
}

// commit is the hint of a commitment's wire: the hash to the field of the
// commitment and of what else it covers.
func (c *committer) commit(_ *big.Int, in, out []*big.Int) error {
	err := c.compute(in, out)
	if err != nil {
		c.failed.Note(err)
	}
	return err
}

func (c *committer) compute(in, out []*big.Int) error {
	if len(in) == 0 || len(out) != 1 {
		return fmt.Errorf("the hint of a commitment has %d inputs and %d outputs", len(in), len(out))
	}
	if !in[0].IsInt64() || in[0].Int64() < 0 || in[0].Int64() >= int64(len(c.info)) {
		return fmt.Errorf("commitment %v of %d", in[0], len(c.info))
	}
	i := int(in[0].Int64())
	in = in[1:]
	covered := len(c.info[i].PublicAndCommitmentCommitted)
	if len(in) != covered+len(c.info[i].PrivateCommitted) {
		return fmt.Errorf("commitment %d has %d inputs", i, len(in))
	}
	hashed, committed := in[:covered], in[covered:]
	c.values[i] = make([]fr.Element, len(committed))
	for j, v := range committed {
		c.values[i][j].SetBigInt(v)
	}
	var err error
	if c.points[i], err = c.keys[i].Commit(c.values[i]); err != nil {
		return fmt.Errorf("commitment %d: %w", i, err)
	}
	h := hash_to_field.New([]byte(constraint.CommitmentDst))
	if _, err := h.Write(constraint.SerializeCommitment(c.points[i].Marshal(), hashed, fr.Bytes)); err != nil {
		return fmt.Errorf("commitment %d: %w", i, err)
	}
	digest := h.Sum(nil)
	var res fr.Element
	res.SetBytes(digest[:min(fr.Bytes, h.Size())])
	res.BigInt(out[0])
	return nil
}

// prove folds the proofs of knowledge of all commitments into one.
func (c *committer) prove(w fr.Vector) (pok ec.G1Affine, err error) {
	poks := make([]ec.G1Affine, len(c.keys))
	serialized := make([]byte, 0, fr.Bytes*len(c.keys))
	for i := range c.keys {
		if poks[i], err = c.keys[i].ProveKnowledge(c.values[i]); err != nil {
			return pok, err
		}
		serialized = append(serialized, w[c.info[i].CommitmentIndex].Marshal()...)
	}
	challenge, err := fr.Hash(serialized, []byte("G16-BSB22"), 1)
	if err != nil {
		return pok, err
	}
	_, err = pok.Fold(poks, challenge[0], ecc.MultiExpConfig{NbTasks: 1})
	return pok, err
}

// Values are copies of what a witness of this curve holds.
func (Backend) Values(w witness.Witness) []curve.Scalar {
	v, _ := w.Vector().(fr.Vector)
	return append([]curve.Scalar{}, scalars(v)...)
}
