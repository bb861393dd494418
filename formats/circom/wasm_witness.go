package circom

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/big"
	"slices"
	"strings"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// InputError says what is wrong with the inputs of a circuit.
type InputError struct {
	File   string // the calculator
	Signal string // empty if it is about all of them
	Err    error
}

// Error names the signal.
func (e *InputError) Error() string {
	if e.Signal == "" {
		return fmt.Sprintf("%s: inputs: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s: input signal %q: %v", e.File, e.Signal, e.Err)
}

// Unwrap is the cause.
func (e *InputError) Unwrap() error { return e.Err }

// Witness is the witness for the inputs, as a groth16.WitnessSource: each Fill
// calculates it, straight into its destination. Its scratch memory (Scratch)
// comes from the scope of Fill's context. The inputs must not change meanwhile.
func (c *Calculator) Witness(inputs Inputs) *CalculatedWitness {
	return &CalculatedWitness{c: c, inputs: inputs}
}

// CalculatedWitness is a witness that is calculated when it is wanted.
type CalculatedWitness struct {
	c      *Calculator
	inputs Inputs
}

// Len is the number of wires.
func (w *CalculatedWitness) Len() int { return w.c.wires }

// Curve is the curve whose scalar field the values are of.
func (w *CalculatedWitness) Curve() curve.ID { return w.c.id }

// Fill calculates the witness. Inputs that are missing, too many, or unknown
// give an *InputError or a *CircuitError that names the signal; an assertion or
// a constraint that does not hold a *CircuitError that is ErrAssert.
func (w *CalculatedWitness) Fill(ctx context.Context, dst []curve.Scalar) error {
	c := w.c
	if len(dst) != c.wires {
		return fmt.Errorf("%s: a witness of %d wires does not fill %d places", c.name, c.wires, len(dst))
	}
	return c.guard(func() error {
		in, err := c.instantiate(ctx)
		if err != nil {
			return err
		}
		defer in.close()
		if _, err := in.call("init", 0); err != nil {
			return err
		}
		if err := in.set(w.inputs); err != nil {
			return err
		}
		return in.witness(dst)
	})
}

// set sets all inputs; the module computes when it has the last one.
func (in *instance) set(inputs Inputs) error {
	names := make([]string, 0, len(inputs))
	for name := range inputs {
		names = append(names, name)
	}
	slices.Sort(names)
	size := in.function("getInputSignalSize")
	total := 0
	for _, name := range names {
		values := inputs[name]
		high, low := signalKey(name)
		if size != nil {
			n, err := in.invoke(size, high, low)
			if err != nil {
				return err
			}
			if err := sizeError(int32(n), len(values)); err != nil {
				return &InputError{File: in.c.name, Signal: name, Err: err}
			}
		} else if len(values) > in.c.inputs-total {
			return &InputError{File: in.c.name, Signal: name, Err: fmt.Errorf("more values than the circuit's %d inputs take", in.c.inputs)}
		}
		total += len(values)
	}
	// Before the module is given anything, so that it does not start on inputs
	// that turn out to be too many.
	if total != in.c.inputs {
		given := "none"
		if len(names) > 0 {
			given = strings.Join(names, ", ")
		}
		if total > in.c.inputs {
			return &InputError{File: in.c.name, Err: fmt.Errorf("%d values for the circuit's %d (given: %.1000s)", total, in.c.inputs, given)}
		}
		if size == nil {
			// This version does not tell the size of a signal: let it find out
			// which one is unknown, if that is the reason.
			if err := in.setAll(names, inputs); err != nil {
				return err
			}
		}
		return &InputError{File: in.c.name, Err: fmt.Errorf("%d of the circuit's %d values are missing (given: %.1000s)", in.c.inputs-total, in.c.inputs, given)}
	}
	return in.setAll(names, inputs)
}

func (in *instance) setAll(names []string, inputs Inputs) error {
	set := in.function("setInputSignal")
	r := reducer{modulus: in.c.id.ScalarModulus()}
	defer r.wipe()
	for _, name := range names {
		high, low := signalKey(name)
		for i, v := range inputs[name] {
			if v == nil {
				return &InputError{File: in.c.name, Signal: name, Err: errors.New("a value is missing")}
			}
			if err := in.share(r.bytes(v)); err != nil {
				return err
			}
			if _, err := in.invoke(set, high, low, uint32(i)); err != nil {
				if e := (*CircuitError)(nil); errors.As(err, &e) && (e.Code == codeUnknownSignal || e.Code == codeTooMany || e.Code == codeAlreadySet || e.Code == codeOutOfRange) {
					e.Signal = name
				}
				return err
			}
		}
	}
	return nil
}

// reducer brings input values below the modulus. What it holds of them is wiped;
// of values that are negative or too large, math/big's division may leave pieces
// on Go's heap.
type reducer struct {
	modulus *big.Int
	rest    big.Int
	b       [curve.ScalarBytes]byte
}

// bytes is v modulo r, little-endian, until the next call.
func (r *reducer) bytes(v *big.Int) []byte {
	if v.Sign() < 0 || v.Cmp(r.modulus) >= 0 {
		r.wipe()
		v = r.rest.Mod(v, r.modulus)
	}
	return littleEndian(v.FillBytes(r.b[:]))
}

func (r *reducer) wipe() {
	words := r.rest.Bits()
	clear(words[:cap(words)])
	clear(r.b[:])
}

// sizeError compares the number of values with the size of a signal. That is
// negative or 0 if there is no such signal; an empty array has size 0 too.
func sizeError(want int32, got int) error {
	switch {
	case want < 0, want == 0 && got > 0:
		return errors.New(codes[codeUnknownSignal])
	case got < int(want):
		return fmt.Errorf("%d values are too few, the signal has %d", got, want)
	case got > int(want):
		return fmt.Errorf("%d values are too many, the signal has %d", got, want)
	}
	return nil
}

// witness reads the wires that the module has computed.
func (in *instance) witness(dst []curve.Scalar) error {
	get := in.function("getWitness")
	for i := range dst {
		if _, err := in.invoke(get, uint32(i)); err != nil {
			return err
		}
		b, err := in.shared()
		if err != nil {
			return err
		}
		if in.c.field.Load(dst[i:i+1], b) >= 0 {
			return in.c.fail(fmt.Errorf("%w: wire %d", ErrValue, i))
		}
	}
	in.c.field.ToMontgomery(dst)
	return nil
}

// signalKey is the FNV-1a hash of a signal's name, in two halves.
func signalKey(name string) (high, low uint32) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash does not fail
	return uint32(h.Sum64() >> 32), uint32(h.Sum64())
}

// Circuit is a circuit that takes Inputs and calculates its witness by c
// before base evaluates it, for a graph that reckons with memory: its Footprint
// has that of the calculation. base takes a groth16.WitnessSource, as circuits
// read from .r1cs and .zkey do; it must be of the same circuit.
func (c *Calculator) Circuit(base groth16.Circuit) (groth16.Circuit, error) {
	if base.Curve() != c.id {
		return nil, fmt.Errorf("%s: %w", c.name, &CurveError{Got: c.id, Want: base.Curve()})
	}
	if base.NbWires() != c.wires {
		return nil, fmt.Errorf("%s: the calculator is of another circuit: %d wires, not %d", c.name, c.wires, base.NbWires())
	}
	return &calculated{Circuit: base, c: c}, nil
}

type calculated struct {
	groth16.Circuit
	c *Calculator
}

// Synthesize implements groth16.Circuit; input is Inputs.
func (k *calculated) Synthesize(ctx context.Context, sc *alloc.Scope, input any, want groth16.Want) (*groth16.Assignment, error) {
	inputs, ok := input.(Inputs)
	if !ok {
		return nil, fmt.Errorf("synthesize: the input is a %T, not circom.Inputs", input)
	}
	return k.Circuit.Synthesize(alloc.WithScope(ctx, sc), sc, k.c.Witness(inputs), want)
}

// System implements groth16.Linear where base does.
func (k *calculated) System() (groth16.System, bool) { return groth16.SystemOf(k.Circuit) }

// Footprint implements groth16.Circuit.
func (k *calculated) Footprint(want groth16.Want) alloc.Amount {
	return k.Circuit.Footprint(want).Add(k.c.Scratch())
}
