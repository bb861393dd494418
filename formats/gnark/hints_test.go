package gnark

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/consensys/gnark/constraint/solver"
	"github.com/consensys/gnark/frontend"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark/internal/parts"
	"github.com/snarkline/snarkline/groth16"
)

// touchy panics, or takes its output away, for some inputs.
func touchy(_ *big.Int, in, out []*big.Int) error {
	switch in[0].Int64() {
	case 7:
		_ = in[len(in)].Sign()
	case 8:
		out[0] = nil
	default:
		out[0].Set(in[0])
	}
	return nil
}

// touched calls the hint so often on one level that gnark takes its goroutines.
type touched struct {
	X frontend.Variable
	Y frontend.Variable `gnark:",public"`
}

func (c *touched) Define(api frontend.API) error {
	for range 400 {
		h, err := api.Compiler().NewHint(touchy, 1, c.X)
		if err != nil {
			return err
		}
		api.AssertIsEqual(api.Mul(h[0], h[0]), c.Y)
	}
	return nil
}

// A hint that panics gives an error: in a goroutine of gnark's it would end the
// process. So it is with one that the system does not say it needs.
func TestHintsThatPanic(t *testing.T) {
	noLeak(t)
	for _, id := range curve.All() {
		ccs := compile(t, id, &touched{})
		sys, err := systemOf(ccs)
		if err != nil {
			t.Fatal(err)
		}
		for _, hidden := range []bool{false, true} {
			if hidden {
				clear(sys.MHintsDependencies)
			}
			c, err := NewCircuit(ccs, solver.WithHints(touchy), solver.WithNbTasks(4))
			if err != nil {
				t.Fatal(err)
			}
			d, err := groth16.NewDomain(id, c.NbConstraints(), curve.Coset)
			if err != nil {
				t.Fatal(err)
			}
			try := func(x, y int) error {
				a, err := c.Synthesize(t.Context(), nil, &touched{X: x, Y: y}, groth16.Want{Domain: d})
				if err == nil {
					a.Release()
				}
				return err
			}
			if err := try(6, 36); err != nil {
				t.Errorf("%v: %v", id, err)
			}
			for _, x := range []int{7, 8} {
				if err := try(x, x*x); !errors.Is(err, parts.ErrPanic) || errors.Is(err, groth16.ErrUnsatisfied) || !strings.Contains(err.Error(), "touchy") {
					t.Errorf("%v, %d: %v", id, x, err)
				}
			}
		}
	}
}

// The number of an unsatisfied constraint is said once.
func TestUnsatisfiedReadsOnce(t *testing.T) {
	s := sampleNamed(t, "hint")
	for _, id := range curve.All() {
		ccs := compile(t, id, s.circuit)
		w, _ := full(t, id, s.junk)
		_, err := newCircuit(t, ccs).f.Solve(ccs, w, nil, nil)
		var u *groth16.UnsatisfiedError
		if !errors.As(err, &u) {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("constraint %d (counted from 0) is not satisfied: ", u.Row); !strings.HasPrefix(err.Error(), want) || strings.Count(err.Error(), "satisfied") != 1 {
			t.Errorf("%v: %v", id, err)
		}
	}
}

// plain and other do as touchy does; the names count.
func plain(_ *big.Int, in, out []*big.Int) error { out[0].Set(in[0]); return nil }
func other(_ *big.Int, in, out []*big.Int) error { out[0].Set(in[0]); return nil }

// threeHints calls three hints.
type threeHints struct {
	X frontend.Variable `gnark:",public"`
}

func (c *threeHints) Define(api frontend.API) error {
	for _, f := range []solver.Hint{touchy, plain, other} {
		h, err := api.Compiler().NewHint(f, 1, c.X)
		if err != nil {
			return err
		}
		api.AssertIsEqual(h[0], c.X)
	}
	return nil
}

// All hints that are not registered are named, sorted.
func TestMissingHints(t *testing.T) {
	noLeak(t)
	for _, id := range curve.All() {
		ccs := compile(t, id, &threeHints{})
		w, _ := full(t, id, &threeHints{X: 1})
		for _, c := range []struct {
			hints []solver.Hint
			want  []string
		}{
			{nil, []string{".other, ", ".plain, ", ".touchy"}},
			{[]solver.Hint{plain}, []string{".other, ", ".touchy"}},
			{[]solver.Hint{plain, other}, []string{".touchy, which is not registered"}},
			{[]solver.Hint{plain, other, touchy}, nil},
		} {
			_, err := newCircuit(t, ccs).f.Solve(ccs, w, nil, []solver.Option{solver.WithHints(c.hints...)})
			if (err == nil) != (c.want == nil) {
				t.Errorf("%v, %d hints: %v", id, len(c.hints), err)
				continue
			}
			if err == nil {
				continue
			}
			rest := err.Error()
			for _, s := range c.want {
				_, after, ok := strings.Cut(rest, s)
				if !ok {
					t.Errorf("%v, %d hints: no %q in %v", id, len(c.hints), s, err)
				}
				rest = after
			}
			if rest != "" {
				t.Errorf("%v, %d hints: %v", id, len(c.hints), err)
			}
		}
	}
}
