package gnark

import (
	"errors"
	"math/big"
	"testing"

	gnark "github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/backend/witness"
	"github.com/consensys/gnark/constraint"
	"github.com/consensys/gnark/constraint/solver"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
	"github.com/consensys/gnark/logger"
	"github.com/consensys/gnark/std/lookup/logderivlookup"
	"github.com/consensys/gnark/std/rangecheck"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

func TestMain(m *testing.M) {
	logger.Disable()
	solver.RegisterHint(half)
	m.Run()
}

// chain squares X so many times; a constraint each, and one to compare.
type chain struct {
	X     frontend.Variable
	Y     []frontend.Variable `gnark:",public"`
	steps int
}

func (c *chain) Define(api frontend.API) error {
	v := c.X
	for range c.steps {
		v = api.Mul(v, v)
	}
	for _, y := range c.Y {
		api.AssertIsEqual(v, y)
	}
	return nil
}

func chainOf(steps, public int) (*chain, *chain) {
	// 1 and 0 only square to themselves, so that values stay small.
	value := &chain{X: 1, steps: steps, Y: make([]frontend.Variable, public)}
	for i := range value.Y {
		value.Y[i] = 1
	}
	return &chain{steps: steps, Y: make([]frontend.Variable, public)}, value
}

// half is a hint.
func half(_ *big.Int, in, out []*big.Int) error {
	if in[0].Bit(0) != 0 {
		return errors.New("odd")
	}
	out[0].Rsh(in[0], 1)
	return nil
}

// hinted divides by two by way of a hint.
type hinted struct {
	X frontend.Variable
	Y frontend.Variable `gnark:",public"`
}

func (c *hinted) Define(api frontend.API) error {
	h, err := api.Compiler().NewHint(half, 1, c.X)
	if err != nil {
		return err
	}
	api.AssertIsEqual(api.Mul(h[0], 2), c.X)
	api.AssertIsEqual(api.Mul(h[0], h[0]), c.Y)
	return nil
}

// ranged uses range checks, which commit.
type ranged struct {
	X [3]frontend.Variable
	Y frontend.Variable `gnark:",public"`
}

func (c *ranged) Define(api frontend.API) error {
	r := rangecheck.New(api)
	sum := frontend.Variable(0)
	for i, x := range c.X {
		r.Check(x, 7+i)
		sum = api.Add(sum, api.Mul(x, x))
	}
	api.AssertIsEqual(sum, c.Y)
	return nil
}

// lookedUp uses a lookup table, which is stateful and commits.
type lookedUp struct {
	I [4]frontend.Variable
	T [8]frontend.Variable
	Y frontend.Variable `gnark:",public"`
}

func (c *lookedUp) Define(api frontend.API) error {
	table := logderivlookup.New(api)
	for _, t := range c.T {
		table.Insert(t)
	}
	sum := frontend.Variable(0)
	for _, v := range table.Lookup(c.I[:]...) {
		sum = api.Add(sum, v)
	}
	api.AssertIsEqual(sum, c.Y)
	return nil
}

// committing commits three times, to public, private and committed values.
type committing struct {
	X, Z frontend.Variable
	Y    [2]frontend.Variable `gnark:",public"`
}

func (c *committing) Define(api frontend.API) error {
	com, ok := api.(frontend.Committer)
	if !ok {
		return errors.New("no committer")
	}
	a, err := com.Commit(c.X, c.Y[0])
	if err != nil {
		return err
	}
	b, err := com.Commit(c.Z, a, c.Y[1])
	if err != nil {
		return err
	}
	d, err := com.Commit(c.Y[1], c.X)
	if err != nil {
		return err
	}
	api.AssertIsDifferent(a, b)
	api.AssertIsDifferent(b, d)
	api.AssertIsEqual(api.Mul(c.X, c.Z), c.Y[0])
	api.AssertIsEqual(c.Y[1], c.Y[0])
	return nil
}

// sample is a circuit with a witness, and one that does not satisfy it.
type sample struct {
	name        string
	circuit     frontend.Circuit
	value, junk frontend.Circuit
	serial      bool
	refused     bool // a hint refuses the junk, before any constraint
}

func samples() []sample {
	none, noneValue := chainOf(5, 0)
	zero, zeroValue := chainOf(6, 2)
	zeroValue.X, zeroValue.Y = 0, []frontend.Variable{0, 0}
	same, sameValue := chainOf(14, 3)
	wrong := &chain{X: 1, Y: []frontend.Variable{1, 1, 2}, steps: 14}
	s := []sample{
		{name: "no public input", circuit: none, value: noneValue},
		{name: "zeros", circuit: zero, value: zeroValue},
		{name: "repeated inputs", circuit: same, value: sameValue, junk: wrong},
		{name: "hint", circuit: &hinted{}, value: &hinted{X: 14, Y: 49}, junk: &hinted{X: 14, Y: 50}},
		{name: "range checks", refused: true, circuit: &ranged{}, value: &ranged{X: [3]frontend.Variable{3, 100, 500}, Y: 260009}, junk: &ranged{X: [3]frontend.Variable{3, 100, 512}, Y: 272153}},
		{
			name: "lookups", circuit: &lookedUp{}, serial: true,
			value: &lookedUp{I: [4]frontend.Variable{0, 3, 3, 7}, T: [8]frontend.Variable{10, 11, 12, 13, 14, 15, 16, 17}, Y: 53},
			junk:  &lookedUp{I: [4]frontend.Variable{0, 3, 3, 6}, T: [8]frontend.Variable{10, 11, 12, 13, 14, 15, 16, 17}, Y: 53},
		},
		{
			name: "commitments", circuit: &committing{},
			value: &committing{X: 6, Z: 7, Y: [2]frontend.Variable{42, 42}},
			junk:  &committing{X: 6, Z: 7, Y: [2]frontend.Variable{42, 43}},
		},
	}
	for _, n := range []int{1, 2, 7, 8, 9, 33} {
		c, v := chainOf(n-1, 1) // n constraints
		s = append(s, sample{name: "chain of " + big.NewInt(int64(n)).String(), circuit: c, value: v})
	}
	return s
}

func compile(t testing.TB, id curve.ID, c frontend.Circuit) constraint.ConstraintSystem {
	t.Helper()
	ccs, err := frontend.Compile(id.ScalarModulus(), r1cs.NewBuilder, c)
	if err != nil {
		t.Fatal(err)
	}
	return ccs
}

func full(t testing.TB, id curve.ID, v frontend.Circuit) (w witness.Witness, public []curve.Scalar) {
	t.Helper()
	w, err := frontend.NewWitness(v, id.ScalarModulus())
	if err != nil {
		t.Fatal(err)
	}
	if public, err = PublicInputs(w, id); err != nil {
		t.Fatal(err)
	}
	return w, public
}

func gnarkVerify(t testing.TB, id curve.ID, vk *groth16.VerifyingKey, p *groth16.Proof, w witness.Witness) error {
	t.Helper()
	gvk, err := groth16.ToGnarkVerifyingKey(vk)
	if err != nil {
		t.Fatal(err)
	}
	gp, err := groth16.ToGnarkProof(p)
	if err != nil {
		t.Fatal(err)
	}
	pw, err := w.Public()
	if err != nil {
		t.Fatal(err)
	}
	return gnark.Verify(gp, gvk, pw)
}

func engine(t testing.TB, id curve.ID) groth16.Arithmetic {
	t.Helper()
	e, err := cpu.New(id)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newCircuit(t testing.TB, ccs constraint.ConstraintSystem) *Circuit {
	t.Helper()
	c, err := NewCircuit(ccs)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func noLeak(t testing.TB) {
	t.Helper()
	mark := alloc.Marked()
	t.Cleanup(func() { mark.CheckLeaks(t) })
}

func closes(t testing.TB, k *groth16.ProvingKey) *groth16.ProvingKey {
	t.Helper()
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}
