package circom

import (
	"bytes"
	"context"
	"errors"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// calculator compiles a bundled one; it is closed with the test.
func calculator(t testing.TB, id curve.ID, name string, o CalculatorOptions) *Calculator {
	t.Helper()
	c := must[*Calculator](t)(OpenCalculator(context.Background(), file(id, name+".wasm"), o))
	t.Cleanup(func() { c.Close() })
	return c
}

func TestWitnessIsAsCircomMakesIt(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		for _, name := range []string{"vault", "silent"} {
			for _, interpret := range []bool{false, true} {
				var lines []string
				c := calculator(t, id, name, CalculatorOptions{Interpret: interpret, Log: func(s string) { lines = append(lines, s) }})
				if c.Curve() != id {
					t.Errorf("%s is of %v", name, c.Curve())
				}
				var b bytes.Buffer
				check(t, WriteWtns(context.Background(), &b, id, c.Witness(inputsOf(t, name+".json"))))
				if !bytes.Equal(b.Bytes(), load(t, id, name+".wtns")) {
					t.Errorf("%s (interpreted: %v): another witness than circom's", name, interpret)
				}
				if name == "vault" && (len(lines) != 1 || !strings.HasPrefix(lines[0], "root ")) {
					t.Errorf("log() printed %q", lines)
				}
			}
		}
	})
}

// older hides an export or names an import otherwise, of the same length, as
// in calculators of other versions.
func older(t testing.TB, code []byte, names ...string) []byte {
	t.Helper()
	code = slices.Clone(code)
	for _, name := range names {
		i := bytes.Index(code, []byte(name))
		if i < 0 {
			t.Fatalf("no %s in the calculator", name)
		}
		code[i] = '_'
	}
	return code
}

// TestOlderCalculators: circom 2.0 has no getInputSignalSize and no
// getMinorVersion, and others may not say where the shared words are.
func TestOlderCalculators(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		ctx := context.Background()
		in := inputsOf(t, "vault.json")
		for _, hide := range [][]string{{"getInputSignalSize", "getMinorVersion", "getPatchVersion"}, {"getSharedRWMemoryStart"}, {"getMessageChar"}} {
			c := must[*Calculator](t)(NewCalculator(ctx, "old", older(t, load(t, id, "vault.wasm"), hide...), CalculatorOptions{}))
			defer c.Close()
			var b bytes.Buffer
			check(t, WriteWtns(ctx, &b, id, c.Witness(in)))
			if !bytes.Equal(b.Bytes(), load(t, id, "vault.wtns")) {
				t.Errorf("without %v: another witness", hide)
			}
		}
		// Without sizes the module itself has to find bad inputs.
		c := must[*Calculator](t)(NewCalculator(ctx, "old", older(t, load(t, id, "vault.wasm"), "getInputSignalSize"), CalculatorOptions{}))
		defer c.Close()
		dst := make([]curve.Scalar, c.Len())
		for name, e := range map[string]struct {
			change func(Inputs)
			text   string
		}{
			"unknown in place of another": {func(in Inputs) { in["totals"] = in["total"]; delete(in, "total") }, `"totals"`},
			"unknown, one missing": {func(in Inputs) {
				in["x"] = nil
				in["totals"] = in["total"]
				delete(in, "total")
				in["side"] = in["side"][:2]
			}, `"totals"`},
			"too many, too few": {func(in Inputs) { in["side"] = append(in["side"], in["side"][0]); in["siblings"] = in["siblings"][:2] }, `"side"`},
			"too many":          {func(in Inputs) { in["side"] = append(in["side"], in["side"]...) }, `values`},
			"missing":           {func(in Inputs) { delete(in, "side") }, "3 of the circuit's 11 values are missing"},
		} {
			in := inputsOf(t, "vault.json")
			e.change(in)
			if err := c.Witness(in).Fill(ctx, dst); err == nil || !strings.Contains(err.Error(), e.text) {
				t.Errorf("%s: error %v, want one that names %s", name, err, e.text)
			}
		}
	})
}

func TestBadInputsNameTheSignal(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		c := calculator(t, id, "vault", CalculatorOptions{})
		dst := make([]curve.Scalar, c.Len())
		for name, e := range map[string]struct {
			change       func(Inputs)
			signal, text string
		}{
			"unknown":    {func(in Inputs) { in["tally"] = in["total"] }, "tally", "no such input signal"},
			"too few":    {func(in Inputs) { in["coins"] = in["coins"][:3] }, "coins", "3 values are too few, the signal has 4"},
			"too many":   {func(in Inputs) { in["side"] = append(in["side"], new(big.Int)) }, "side", "4 values are too many, the signal has 3"},
			"none":       {func(in Inputs) { in["side"] = nil }, "side", "0 values are too few"},
			"missing":    {func(in Inputs) { delete(in, "siblings") }, "", "3 of the circuit's 11 values are missing (given: coins, side, total)"},
			"nothing":    {func(in Inputs) { clear(in) }, "", "11 of the circuit's 11 values are missing (given: none)"},
			"nil number": {func(in Inputs) { in["coins"][2] = nil }, "coins", "a value is missing"},
		} {
			in := inputsOf(t, "vault.json")
			e.change(in)
			err := c.Witness(in).Fill(context.Background(), dst)
			var bad *InputError
			if !errors.As(err, &bad) || bad.Signal != e.signal || !strings.Contains(err.Error(), e.text) {
				t.Errorf("%s: error %v, want one about %q that says %q", name, err, e.signal, e.text)
			}
		}
	})
}

// TestAssertions: what does not hold is told with the circuit's own words, and
// the calculator goes on working.
func TestAssertions(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		c := calculator(t, id, "vault", CalculatorOptions{})
		dst := make([]curve.Scalar, c.Len())
		for name, e := range map[string]struct {
			change func(Inputs)
			text   string
		}{
			"assert":     {func(in Inputs) { in["total"][0] = big.NewInt(301) }, "Vault"},
			"range":      {func(in Inputs) { in["total"][0] = big.NewInt(355); in["coins"][1] = big.NewInt(256) }, "Range"},
			"constraint": {func(in Inputs) { in["side"][1] = big.NewInt(2) }, "Vault"},
		} {
			in := inputsOf(t, "vault.json")
			e.change(in)
			err := c.Witness(in).Fill(context.Background(), dst)
			var bad *CircuitError
			if !errors.Is(err, ErrAssert) || !errors.As(err, &bad) {
				t.Errorf("%s: error %v", name, err)
				continue
			}
			if len(bad.Messages) == 0 || !strings.Contains(err.Error(), e.text) || !strings.Contains(err.Error(), "line") {
				t.Errorf("%s: messages %q", name, bad.Messages)
			}
		}
		check(t, c.Witness(inputsOf(t, "vault.json")).Fill(context.Background(), dst))
	})
}

// TestCalculatorInParallel runs one calculator in many goroutines, some of them
// with inputs that fail.
func TestCalculatorInParallel(t *testing.T) {
	defer goleak.VerifyNone(t)
	curves(t, func(t *testing.T, id curve.ID) {
		c := calculator(t, id, "vault", CalculatorOptions{})
		want := filled(t, must[*Wtns](t)(openWtns(load(t, id, "vault.wtns"))))
		var wg sync.WaitGroup
		for i := range 24 {
			wg.Go(func() {
				in := inputsOf(t, "vault.json")
				if i%3 == 0 {
					in["total"][0] = big.NewInt(int64(i))
				}
				dst := make([]curve.Scalar, c.Len())
				err := c.Witness(in).Fill(context.Background(), dst)
				switch {
				case i%3 == 0 && !errors.Is(err, ErrAssert):
					t.Errorf("calculation %d: %v", i, err)
				case i%3 != 0 && (err != nil || !slices.Equal(dst, want)):
					t.Errorf("calculation %d: %v, or another witness", i, err)
				}
			})
		}
		wg.Wait()
	})
}

func TestCalculatorMemoryLimit(t *testing.T) {
	ctx := context.Background()
	code := load(t, curve.BN254, "vault.wasm")
	_, err := NewCalculator(ctx, "vault.wasm", code, CalculatorOptions{MemoryLimit: 64 << 10})
	wantFormat(t, err, "", "limit")
	c := must[*Calculator](t)(NewCalculator(ctx, "vault.wasm", code, CalculatorOptions{MemoryLimit: 1 << 20}))
	defer c.Close()

	// The memory of a calculation is drawn from the scope, and a reservation
	// that is too small for it is an error.
	scratch := c.Scratch()[alloc.Host]
	budget := alloc.NewBudget(alloc.HostBytes(2 * scratch))
	dst := make([]curve.Scalar, c.Len())
	for _, e := range []struct {
		bytes int64
		ok    bool
	}{{scratch, true}, {scratch - 1, false}} {
		r := must[*alloc.Reservation](t)(budget.Reserve(ctx, alloc.HostBytes(e.bytes)))
		scope := alloc.NewScope(alloc.StageOf("test"), alloc.Host, r)
		err := c.Witness(inputsOf(t, "vault.json")).Fill(alloc.WithScope(ctx, scope), dst)
		var over *alloc.OverdrawError
		if e.ok != (err == nil) || !e.ok && !errors.As(err, &over) {
			t.Errorf("with a reservation of %d of %d bytes: %v", e.bytes, scratch, err)
		}
		r.Close()
	}
}

func TestCalculatorCancel(t *testing.T) {
	defer alloc.Marked().CheckLeaks(t)
	ctx, cancel := context.WithCancel(context.Background())
	c := calculator(t, curve.BN254, "vault", CalculatorOptions{})
	cancel()
	if err := c.Witness(inputsOf(t, "vault.json")).Fill(ctx, make([]curve.Scalar, c.Len())); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := c.Witness(inputsOf(t, "vault.json")).Fill(context.Background(), make([]curve.Scalar, 3)); err == nil {
		t.Error("a witness fills too few places")
	}
}

// TestCalculatorThatNeverEnds is cut off by its context while it runs.
func TestCalculatorThatNeverEnds(t *testing.T) {
	defer alloc.Marked().CheckLeaks(t)
	c := must[*Calculator](t)(NewCalculator(context.Background(), "endless", endless(), CalculatorOptions{}))
	defer c.Close()
	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		err := c.Witness(Inputs{"a": {new(big.Int)}}).Fill(ctx, make([]curve.Scalar, c.Len()))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after its deadline: %v", err)
		}
	}
}

func TestNotACalculator(t *testing.T) {
	ctx := context.Background()
	good := load(t, curve.BN254, "vault.wasm")
	for name, e := range map[string]struct {
		code []byte
		text string
	}{
		"empty":           {nil, "compile"},
		"zkey":            {load(t, curve.BN254, "silent.zkey"), "compile"},
		"cut":             {good[:len(good)/2], "compile"},
		"empty module":    {[]byte("\x00asm\x01\x00\x00\x00"), "it has no function"},
		"without a call":  {older(t, good, "getWitnessSize"), "no function getWitnessSize"},
		"unknown import":  {older(t, good, "exceptionHandler"), "imports runtime._xceptionHandler"},
		"without memory":  {bytes.Replace(good, []byte("memory\x02"), []byte("memorx\x02"), 1), "no memory"},
		"another runtime": {bytes.ReplaceAll(good, []byte("runtime"), []byte("runtimf")), "imports runtimf"},
	} {
		c, err := NewCalculator(ctx, "test.wasm", e.code, CalculatorOptions{})
		if err == nil {
			c.Close()
		}
		t.Run(name, func(t *testing.T) { wantFormat(t, err, "", e.text) })
	}
}

// TestCalculatorCircuit proves from inputs.
func TestCalculatorCircuit(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		o := must[*opened](t)(readZkey(load(t, id, "vault.zkey"), KeyOptions{}))
		defer o.close()
		c := calculator(t, id, "vault", CalculatorOptions{})
		circuit := must[groth16.Circuit](t)(c.Circuit(o.circuit))
		proof := prove(t, o.key, circuit, inputsOf(t, "vault.json"))
		public := must[[]curve.Scalar](t)(ReadPublic("", bytes.NewReader(load(t, id, "vault.public.json")), id))
		check(t, o.vk.Verify(proof, public))

		want := groth16.Want{Domain: o.key.Domain, C: true}
		if extra := circuit.Footprint(want)[alloc.Host] - o.circuit.Footprint(want)[alloc.Host]; extra != c.Scratch()[alloc.Host] || extra == 0 {
			t.Errorf("the calculation adds %d bytes to the footprint", extra)
		}
		if _, err := calculator(t, id, "silent", CalculatorOptions{}).Circuit(o.circuit); err == nil {
			t.Error("the calculator of another circuit is taken")
		}
		other := curve.BLS12381
		if id == other {
			other = curve.BN254
		}
		var mismatch *CurveError
		if _, err := calculator(t, other, "vault", CalculatorOptions{}).Circuit(o.circuit); !errors.As(err, &mismatch) {
			t.Errorf("the calculator of another curve: %v", err)
		}
	})
}
