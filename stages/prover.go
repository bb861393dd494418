package stages

import (
	"errors"
	"fmt"
	"io"

	"github.com/snarkline/snarkline/groth16"
)

// The names of the stages, on the screen and in settings.
const (
	NameSynthesize = "synthesize"
	NamePrestage   = "prestage"
	NameNTT        = "ntt"
	NameHMSM       = "h-msm"
	NameBatchAdd   = "batch-add"
	NameTailMSM    = "tail-msm"
	NameBG2MSM     = "b_g2_msm"
	NameAssemble   = "assemble"
)

// Names are the eight stages in the order of the diagram.
func Names() []string {
	return []string{NameSynthesize, NamePrestage, NameNTT, NameHMSM,
		NameBatchAdd, NameTailMSM, NameBG2MSM, NameAssemble}
}

// DefaultMinOnes is the share of ones in a witness from which batch-add adds
// their points apart from the rest. See Prover.MinOnes.
const DefaultMinOnes = 0.05

// Prover is what the stages of a pipeline share: a key, its circuit and the
// processor that does the arithmetic. It does not change while it is in use,
// and any number of graphs may use it at once.
type Prover struct {
	Key     *groth16.ProvingKey
	VK      *groth16.VerifyingKey // may be nil only with NoVerify
	Circuit groth16.Circuit
	Arith   groth16.Arithmetic // a processor, or a Set of several

	// Elsewhere are the processors on which, in turn after Arith, a job is made
	// that has to be made again from its input: because a device was reset under
	// it, or because its proof does not verify. Without any it is made again on
	// Arith, and a proof that does not verify only if Arith is no CPU.
	Elsewhere []groth16.Arithmetic
	// Again is how often at most a job is made again. 0 means DefaultAgain where
	// there is an Elsewhere or a processor with a memory of its own, and
	// otherwise, as a negative value, never.
	Again int

	// B2 is where the sum of b_g2_msm is made, if not where the other stages run.
	// With Either it is decided for each job. A job that is made Elsewhere is
	// made there whole.
	B2 groth16.Arithmetic

	// NoVerify hands proofs over without having verified them. A processor
	// that computes wrongly then gives wrong proofs.
	NoVerify bool
	// NoCheck leaves out the search for the first unsatisfied constraint at
	// synthesis. A wrong witness is then refused only by the verification, and
	// without the constraint's number; so it is, too, where the circuit has no
	// C matrix, as that in a .zkey.
	NoCheck bool

	// HostEvaluation has a, b and c evaluated at synthesis in any case. Without it
	// a processor that can (groth16.Evaluator) makes them of the witness, once Keep
	// has given it the circuit's matrices and where it has room; the check of the
	// constraints is then part of prestage.
	HostEvaluation bool

	// MinOnes is the share of ones in a witness, of all its wires, from which
	// batch-add sums the points of ones by plain additions and hands only the
	// others to tail-msm. With fewer, tail-msm takes the witness whole: its
	// scattered picks cost more than the few additions save. 0 means
	// DefaultMinOnes; a negative value splits always, one above 1 never.
	MinOnes float64

	// Rand is where the blinding r and s come from; nil, as it should be
	// outside of tests, means crypto/rand. It is read by several goroutines.
	Rand io.Reader
}

func (p *Prover) minOnes() float64 {
	if p.MinOnes == 0 {
		return DefaultMinOnes
	}
	return p.MinOnes
}

// Check reports whether key, verifying key, circuit and arithmetic belong
// together, as far as their sizes and curves can tell, and the two keys by the
// points that both of them hold.
func (p *Prover) Check() error {
	switch {
	case p == nil || p.Key == nil:
		return errors.New("prover: no proving key")
	case p.Circuit == nil:
		return errors.New("prover: no circuit")
	case p.Arith == nil:
		return errors.New("prover: no arithmetic")
	case p.VK == nil && !p.NoVerify:
		return errors.New("prover: no verifying key, and NoVerify is not set")
	}
	k, c := p.Key, p.Circuit
	if c.Curve() != k.Curve {
		return fmt.Errorf("prover: the key is on %v, the circuit on %v", k.Curve, c.Curve())
	}
	for i, ar := range p.Elsewhere {
		if ar == nil {
			return fmt.Errorf("prover: arithmetic %d of Elsewhere is nil", i)
		}
	}
	for _, ar := range p.everyone() {
		if ar.Curve() != k.Curve {
			return fmt.Errorf("prover: the key is on %v, the arithmetic %s on %v", k.Curve, ar.Name(), ar.Curve())
		}
	}
	if p.VK != nil {
		if err := CheckKeys(k, p.VK); err != nil {
			return fmt.Errorf("prover: %w", err)
		}
	}
	if c.NbWires() != k.NbWires || c.NbPublic() != k.NbPublic {
		return fmt.Errorf("prover: the key is for %d wires, %d of them public; the circuit has %d and %d",
			k.NbWires, k.NbPublic, c.NbWires(), c.NbPublic())
	}
	if n := c.NbConstraints(); n > k.Domain.Size() {
		return fmt.Errorf("prover: the circuit has %d constraints, the key's domain is 2^%d", n, k.Domain.Log)
	}
	return nil
}

// CheckKeys reports whether a verifying key is of the same set-up as a proving
// key, as far as can be told without a proof: by the curve, the counts of
// public inputs and commitments, and the points that both keys hold. β₁ and δ₁,
// which nothing is verified with, are compared where the verifying key knows
// them. Keys of two circuits that share α, β and δ, as those of a ceremony
// before its first contribution, pass.
func CheckKeys(pk *groth16.ProvingKey, vk *groth16.VerifyingKey) error {
	switch {
	case vk.Curve != pk.Curve:
		return fmt.Errorf("the proving key is on %v, the verifying key on %v", pk.Curve, vk.Curve)
	case vk.NbPublic() != pk.NbPublic:
		return fmt.Errorf("the proving key is for %d public inputs, the verifying key for %d: they are of different circuits", pk.NbPublic, vk.NbPublic())
	case len(vk.Commitments) != len(pk.Commitments):
		return fmt.Errorf("the proving key makes %d commitments, the verifying key takes %d: they are of different circuits", len(pk.Commitments), len(vk.Commitments))
	}
	for _, e := range []struct {
		name string
		same bool
	}{
		{"α₁", vk.Alpha1 == pk.Alpha1},
		{"β₂", vk.Beta2 == pk.Beta2},
		{"δ₂", vk.Delta2 == pk.Delta2},
		{"β₁", vk.Beta1.IsInfinity() || vk.Beta1 == pk.Beta1},
		{"δ₁", vk.Delta1.IsInfinity() || vk.Delta1 == pk.Delta1},
	} {
		if !e.same {
			return fmt.Errorf("proving and verifying key have a different %s: they are of different set-ups", e.name)
		}
	}
	return nil
}
