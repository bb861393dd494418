package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/sniff"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/formats/circom"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/stages"
)

// keyFlags name a proving key and what goes with it.
type keyFlags struct {
	Key               string `required:"" placeholder:"FILE" help:"Proving key: .zkey, .slk, or a gnark proving key."`
	VK                string `name:"vk" placeholder:"FILE" help:"Verifying key, for a proving key whose file holds none (gnark's)."`
	Circuit           string `placeholder:"FILE" help:"Constraint system (.r1cs of circom or gnark). A gnark key needs it; with a .zkey it lets an unsatisfied constraint be named."`
	SkipSubgroupCheck bool   `help:"Trust that the key's points are in the subgroup, as for a key that was checked before."`
	KeyTemp           string `default:"auto" placeholder:"DIR" help:"Folder of the temporary file that a gnark key's points are mapped from: auto (default) is $$TMPDIR, else /var/tmp or /tmp, if that is a disk with room; none keeps them in memory."`
}

// material is a proving key, opened, with what goes with it.
type material struct {
	path string
	kind sniff.Kind // of the key's file
	key  *groth16.ProvingKey
	vk   *groth16.VerifyingKey // nil if there is none

	// The circuit takes what load gives. Its matrices are nil where only the
	// circuit itself knows them; gnark's are made when they are asked for, since
	// they take memory that a proof needs not. With hasC it can tell whether a witness
	// satisfies it.
	circuit  groth16.Circuit
	matrices func() (*groth16.R1CS, error)
	load     loader
	hasC     bool
	ofGnark  bool // the circuit is one of gnark's

	closers []func() error
}

// given is for matrices that are there.
func given(r *groth16.R1CS) func() (*groth16.R1CS, error) {
	return func() (*groth16.R1CS, error) { return r, nil }
}

// onClose adds f to what close does, last first.
func (m *material) onClose(f func() error) { m.closers = append(m.closers, f) }

// close gives everything back. Its errors are of no use to anybody: the memory
// is gone with the process at the latest.
func (m *material) close() {
	for i := len(m.closers) - 1; i >= 0; i-- {
		_ = m.closers[i]()
	}
	m.closers = nil
}

// openKey opens the files that the flags name, checks their points, and makes
// sure that they belong together as far as their sizes tell.
func (a *app) openKey(f *keyFlags) (*material, error) {
	res, err := sniff.File(f.Key)
	if err != nil {
		return nil, inputErrorf("proving key: %w", err)
	}
	m := &material{path: f.Key, kind: res.Kind}
	if err := a.fillMaterial(m, f); err != nil {
		m.close()
		return nil, inputError(err)
	}
	return m, nil
}

func (a *app) fillMaterial(m *material, f *keyFlags) (err error) {
	ctx := a.scope("key")
	check, done := a.stepper("points of the key checked")
	defer done()
	switch m.kind {
	case sniff.Zkey:
		err = m.zkey(ctx, f, check)
	case sniff.Native:
		err = m.native(ctx, f, check)
	case sniff.GnarkPK:
		err = m.gnark(ctx, f, check, a.keyTemp(f.KeyTemp))
	default:
		return fmt.Errorf("%s: is no proving key (it looks like: %s)", f.Key, m.kind)
	}
	if err != nil {
		return err
	}
	if m.vk != nil {
		if err := stages.CheckKeys(m.key, m.vk); err != nil {
			return fmt.Errorf("%s: %w", f.Key, err)
		}
	}
	return m.separateVK(ctx, f)
}

// scope is the context of work whose memory is accounted to a stage of that name.
func (a *app) scope(stage string) context.Context {
	return alloc.WithScope(a.ctx, alloc.NewScope(alloc.StageOf(stage), alloc.Host, nil))
}

// zkey takes keys and circuit of a .zkey.
func (m *material) zkey(ctx context.Context, f *keyFlags, check func(done, total int)) error {
	z, err := circom.OpenZkey(f.Key)
	if err != nil {
		return err
	}
	m.onClose(z.Close)
	opt := circom.KeyOptions{SkipSubgroup: f.SkipSubgroupCheck, Progress: check}
	if m.key, err = z.ProvingKey(ctx, opt); err != nil {
		return err
	}
	m.onClose(m.key.Close)
	if m.vk, err = z.VerifyingKey(ctx, circom.KeyOptions{SkipSubgroup: f.SkipSubgroupCheck}); err != nil {
		return err
	}
	if f.Circuit != "" {
		return m.circomCircuit(ctx, f.Circuit)
	}
	c, err := z.Circuit(ctx, alloc.ScopeOf(ctx))
	if err != nil {
		return err
	}
	m.onClose(c.Close)
	m.circuit, m.matrices, m.load = c, given(&c.R1CS), loadWtns
	return nil
}

// circomCircuit reads a .r1cs of circom for the key.
func (m *material) circomCircuit(ctx context.Context, path string) error {
	c, err := openR1CS(ctx, path)
	if err != nil {
		return err
	}
	m.onClose(c.Close)
	if err := sameCircuit(path, &c.R1CS, m.path, m.key); err != nil {
		return err
	}
	m.circuit, m.matrices, m.load, m.hasC = c, given(&c.R1CS), loadWtns, true
	return nil
}

// openR1CS reads the constraint system in a .r1cs of circom.
func openR1CS(ctx context.Context, path string) (*circom.Circuit, error) {
	r, err := sniff.File(path)
	if err != nil {
		return nil, fmt.Errorf("circuit: %w", err)
	}
	if r.Kind != sniff.R1CS {
		return nil, fmt.Errorf("%s: is no constraint system of circom (it looks like: %s)", path, r.Kind)
	}
	file, err := circom.OpenR1CS(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return file.Circuit(ctx, alloc.ScopeOf(ctx))
}

// sameCircuit compares what a circuit and a key say of their sizes.
func sameCircuit(circuitPath string, c groth16.Circuit, keyPath string, k *groth16.ProvingKey) error {
	switch {
	case c.Curve() != k.Curve:
		return fmt.Errorf("%s is on %v, the key %s on %v", circuitPath, c.Curve(), keyPath, k.Curve)
	case c.NbWires() != k.NbWires || c.NbPublic() != k.NbPublic:
		return fmt.Errorf("%s has %d wires, %d of them public; the key %s is for %d and %d: they are of different circuits",
			circuitPath, c.NbWires(), c.NbPublic(), keyPath, k.NbWires, k.NbPublic)
	case c.NbConstraints() > k.Domain.Size():
		return fmt.Errorf("%s has %d constraints, the key %s has room for %d: they are of different circuits",
			circuitPath, c.NbConstraints(), keyPath, k.Domain.Size())
	}
	return nil
}

// calculator puts circom's witness calculator before the circuit.
func (m *material) calculator(ctx context.Context, path string) error {
	c, err := circom.OpenCalculator(ctx, path, circom.CalculatorOptions{})
	if err != nil {
		return err
	}
	m.onClose(c.Close)
	if m.circuit, err = c.Circuit(m.circuit); err != nil {
		return fmt.Errorf("%s and %s: %w", path, m.path, err)
	}
	m.load = loadInput
	return nil
}

// separateVK reads --vk, in place of the key's own verifying key.
func (m *material) separateVK(ctx context.Context, f *keyFlags) error {
	if f.VK == "" {
		return nil
	}
	vk, err := readVerifyingKey(ctx, f.VK)
	if err != nil {
		return err
	}
	if err := stages.CheckKeys(m.key, vk); err != nil {
		return fmt.Errorf("%s and %s do not belong together: %w", f.Key, f.VK, err)
	}
	// A proving key does not hold all of a verifying key; a file that does
	// tells the rest.
	if own := m.vk; own != nil && (own.Gamma2 != vk.Gamma2 || !slices.Equal(own.IC, vk.IC) || !slices.Equal(own.Commitments, vk.Commitments)) {
		return fmt.Errorf("%s and %s do not belong together: the verifying key in the first is not that in the second", f.Key, f.VK)
	}
	m.vk = vk
	return nil
}

// prover is what the stages need, on the CPU. Its inputs are *deferred.
func (m *material) prover(noVerify bool) (*stages.Prover, error) {
	if m.circuit == nil {
		return nil, usagef("%s holds no circuit: give it with --circuit", m.path)
	}
	if m.vk == nil && !noVerify {
		return nil, usagef("%s holds no verifying key: give it with --vk, or hand proofs over unverified with --no-verify", m.path)
	}
	engine, err := cpu.New(m.key.Curve)
	if err != nil {
		return nil, inputError(err)
	}
	p := &stages.Prover{Key: m.key, VK: m.vk, Circuit: &loading{m.circuit, m.load}, Arith: engine, NoVerify: noVerify}
	return p, inputError(p.Check())
}

// describe is what a report says of the key.
func (m *material) describe() any {
	return struct {
		File        string `json:"file"`
		Kind        string `json:"kind"`
		Curve       string `json:"curve"`
		Basis       string `json:"basis"`
		Folded      bool   `json:"folded"`
		Constraints int    `json:"constraints"`
		Wires       int    `json:"wires"`
		Public      int    `json:"public"`
		Domain      int    `json:"domain"`
		Bytes       int64  `json:"bytes"`
	}{m.path, string(m.kind), m.key.Curve.String(), m.key.Basis.String(), m.key.Folded, m.key.NbConstraints,
		m.key.NbWires, m.key.NbPublic, m.key.Domain.Size(), m.key.Bytes()}
}

// explain says what a failed verification means for this circuit. Without the
// C matrix, which no .zkey has, a wrong witness is not found before that; and
// the keys, which such a circuit comes in one file with, belong together.
func (m *material) explain(err error) error {
	var v *stages.VerifyError
	if m.hasC || !errors.As(err, &v) {
		return err
	}
	return &codedError{codeUnsatisfied, &unsatisfiedError{err, v.On}}
}

// unsatisfiedError is a verification's failure, told as what it most likely means.
type unsatisfiedError struct {
	err error
	on  string // the processor that the proof was made on
}

func (e *unsatisfiedError) Error() string {
	s := "the witness does not satisfy the circuit, or is of another one"
	if e.on != "cpu" {
		s += ", or " + e.on + " computes wrongly"
	}
	return s + ": its proof does not verify (with --circuit FILE.r1cs the constraint is named)"
}

func (e *unsatisfiedError) Unwrap() error { return e.err }
