package groth16

import (
	"errors"
	"fmt"
	"sync"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16/internal/model"
)

// ErrInvalidProof is wrapped by the errors of Verify that say that a proof,
// though well formed, does not prove what it should.
var ErrInvalidProof = errors.New("the proof is not valid")

// CommitmentVerifyingKey checks the proof of knowledge of one commitment. All
// of a verifying key have the same G.
type CommitmentVerifyingKey struct {
	G         curve.G2
	GSigmaNeg curve.G2 // −σ·G
}

// VerifyingKey is a Groth16 verifying key. Fill its fields before the first
// call of Verify and leave them alone after; Verify may then run in any number
// of goroutines. It must not be copied.
type VerifyingKey struct {
	Curve  curve.ID
	Alpha1 curve.G1
	Beta1  curve.G1 // only in files; not used to verify, infinity if unknown
	Delta1 curve.G1 // likewise
	Beta2  curve.G2
	Gamma2 curve.G2
	Delta2 curve.G2

	// IC has the point of the wire that is one, then those of the public
	// inputs, then one for each commitment.
	IC []curve.G1

	// Commitments and Committed are those of a gnark circuit that commits:
	// Committed[i] lists what the hash of commitment i covers besides the
	// commitment, counting the leading one as 0, public inputs from 1, and
	// earlier commitments after them.
	Commitments []CommitmentVerifyingKey
	Committed   [][]int

	once     sync.Once
	prepared any
	err      error
}

// NbPublic is how many public inputs a proof for this key has.
func (vk *VerifyingKey) NbPublic() int { return len(vk.IC) - 1 - len(vk.Committed) }

// Check reports what is wrong with the key in itself: counts that do not fit,
// points off the curve or out of the subgroup, α, β, γ or δ at infinity.
func (vk *VerifyingKey) Check() error {
	f, err := backendOf(vk.Curve)
	if err != nil {
		return fmt.Errorf("verifying key: %w", err)
	}
	if len(vk.Commitments) != len(vk.Committed) {
		return fmt.Errorf("verifying key: %d commitment keys for %d commitments", len(vk.Commitments), len(vk.Committed))
	}
	if vk.NbPublic() < 0 {
		return fmt.Errorf("verifying key: IC has %d points, %d are needed for the leading one and %d commitments", len(vk.IC), 1+len(vk.Committed), len(vk.Committed))
	}
	if vk.Alpha1.IsInfinity() || vk.Beta2.IsInfinity() || vk.Gamma2.IsInfinity() || vk.Delta2.IsInfinity() {
		return errors.New("verifying key: α, β, γ or δ is the point at infinity")
	}
	for i, c := range vk.Committed {
		for _, j := range c {
			if j < 1 || j > vk.NbPublic()+i {
				return fmt.Errorf("verifying key: commitment %d covers input %d, there are 1 to %d", i, j, vk.NbPublic()+i)
			}
		}
	}
	g1 := []struct {
		name string
		p    *curve.G1
	}{{"α₁", &vk.Alpha1}, {"β₁", &vk.Beta1}, {"δ₁", &vk.Delta1}}
	for _, e := range g1 {
		if err := f.CheckG1(e.p); err != nil {
			return fmt.Errorf("verifying key: %s: %w", e.name, err)
		}
	}
	g2 := []struct {
		name string
		p    *curve.G2
	}{{"β₂", &vk.Beta2}, {"γ₂", &vk.Gamma2}, {"δ₂", &vk.Delta2}}
	for i := range vk.Commitments {
		g2 = append(g2, []struct {
			name string
			p    *curve.G2
		}{{fmt.Sprintf("G of commitment %d", i), &vk.Commitments[i].G}, {fmt.Sprintf("−σG of commitment %d", i), &vk.Commitments[i].GSigmaNeg}}...)
		if vk.Commitments[i].G.IsInfinity() || vk.Commitments[i].GSigmaNeg.IsInfinity() {
			return fmt.Errorf("verifying key: key of commitment %d is the point at infinity", i)
		}
		if vk.Commitments[i].G != vk.Commitments[0].G {
			return fmt.Errorf("verifying key: G of commitment %d differs from that of commitment 0", i)
		}
	}
	for _, e := range g2 {
		if err := f.CheckG2(e.p); err != nil {
			return fmt.Errorf("verifying key: %s: %w", e.name, err)
		}
	}
	for i := range vk.IC {
		if err := f.CheckG1(&vk.IC[i]); err != nil {
			return fmt.Errorf("verifying key: IC[%d]: %w", i, err)
		}
	}
	return nil
}

// Verify reports whether proof proves the public inputs (reduced, Montgomery,
// the leading one not included). The key is checked and its pairing computed
// at the first call. The judgement is gnark's; a proof that it refuses gives an
// error that wraps ErrInvalidProof.
func (vk *VerifyingKey) Verify(proof *Proof, public []curve.Scalar) error {
	if proof == nil {
		return errors.New("verify: no proof")
	}
	f, err := backendOf(vk.Curve)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	vk.once.Do(func() {
		if vk.err = vk.Check(); vk.err == nil {
			vk.prepared, vk.err = f.Prepare(vk.model())
		}
	})
	if vk.err != nil {
		return fmt.Errorf("verify: %w", vk.err)
	}
	if proof.Curve != vk.Curve {
		return fmt.Errorf("verify: the proof is on %v, the verifying key on %v", proof.Curve, vk.Curve)
	}
	if len(public) != vk.NbPublic() {
		return fmt.Errorf("verify: %d public inputs, the verifying key takes %d", len(public), vk.NbPublic())
	}
	// gnark adds whatever commitments a proof holds to the public part, so a
	// proof with more than the key knows could be made for any statement.
	if len(proof.Commitments) != len(vk.Commitments) {
		return fmt.Errorf("verify: the proof has %d commitments, the verifying key takes %d", len(proof.Commitments), len(vk.Commitments))
	}
	for i := range public {
		if !f.Reduced(public[i]) {
			return fmt.Errorf("verify: public input %d is not reduced", i)
		}
	}
	if err := proof.Check(); err != nil {
		return fmt.Errorf("verify: %w: %w", ErrInvalidProof, err)
	}
	if err := f.Verify(vk.prepared, proof.model(), public); err != nil {
		return fmt.Errorf("verify: %w: %w", ErrInvalidProof, err)
	}
	return nil
}

func (vk *VerifyingKey) model() *model.VerifyingKey {
	m := &model.VerifyingKey{
		Curve:  vk.Curve,
		Alpha1: vk.Alpha1, Beta1: vk.Beta1, Delta1: vk.Delta1,
		Beta2: vk.Beta2, Gamma2: vk.Gamma2, Delta2: vk.Delta2,
		IC: vk.IC, Committed: vk.Committed,
	}
	for _, c := range vk.Commitments {
		m.Commitments = append(m.Commitments, model.CommitmentVerifyingKey(c))
	}
	return m
}
