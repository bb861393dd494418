package circom

import (
	"context"
	"encoding/binary"
	"errors"
	"math/big"
	"slices"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// handmade is a module with the interface of a witness calculator of one input
// and one wire, written down byte by byte: its shared words are always the
// prime of BN254. set is the code of setInputSignal, get that of getWitness.
func handmade(pages byte, set, get []byte) []byte {
	section := func(id byte, items ...[]byte) []byte {
		body := slices.Concat(items...)
		return append(binary.AppendUvarint([]byte{id}, uint64(len(body))), body...)
	}
	const i32, function = 0x7f, 0x60
	types := []byte{6,
		function, 0, 1, i32, // 0: () → i32
		function, 1, i32, 0, // 1: (i32)
		function, 3, i32, i32, i32, 0, // 2: (i32, i32, i32)
		function, 0, 0, // 3: ()
		function, 1, i32, 1, i32, // 4: (i32) → i32
		function, 2, i32, i32, 0, // 5: (i32, i32)
	}
	constant := func(v byte) []byte { return []byte{0x41, v} }
	functions := []struct {
		name string
		kind byte
		code []byte
	}{
		{"getVersion", 0, constant(2)},
		{"init", 1, nil},
		{"setInputSignal", 2, set},
		{"getFieldNumLen32", 0, constant(8)},
		{"getRawPrime", 3, nil},
		{"getWitnessSize", 0, constant(1)},
		{"getInputSize", 0, constant(1)},
		{"getWitness", 1, get},
		// local.get 0; i32.const 2; i32.shl; i32.load
		{"readSharedRWMemory", 4, []byte{0x20, 0, 0x41, 2, 0x74, 0x28, 2, 0}},
		{"writeSharedRWMemory", 5, nil},
	}
	kinds := []byte{byte(len(functions))}
	exports := []byte{byte(len(functions) + 1), 6, 'm', 'e', 'm', 'o', 'r', 'y', 2, 0}
	code := []byte{byte(len(functions))}
	for i, f := range functions {
		kinds = append(kinds, f.kind)
		exports = append(append(append(exports, byte(len(f.name))), f.name...), 0, byte(i))
		body := append(append([]byte{0}, f.code...), 0x0b)
		code = append(binary.AppendUvarint(code, uint64(len(body))), body...)
	}
	data := append([]byte{1, 0, 0x41, 0, 0x0b, 32}, scalarModulus(curve.BN254)...)
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, types), section(3, kinds), section(5, []byte{1, 0, pages}), section(7, exports), section(10, code), section(11, data))
}

// endless never comes back from setInputSignal: loop; br 0; end.
func endless() []byte { return handmade(1, []byte{0x03, 0x40, 0x0c, 0, 0x0b}, nil) }

func TestHandmadeModules(t *testing.T) {
	defer alloc.Marked().CheckLeaks(t)
	ctx := context.Background()
	in := Inputs{"a": {big.NewInt(1)}}
	run := func(code []byte, o CalculatorOptions) error {
		c, err := NewCalculator(ctx, "handmade", code, o)
		if err != nil {
			return err
		}
		defer c.Close()
		return c.Witness(in).Fill(ctx, make([]curve.Scalar, c.Len()))
	}
	for _, interpret := range []bool{false, true} {
		o := CalculatorOptions{Interpret: interpret}
		// Its one wire is r itself.
		if err := run(handmade(1, nil, nil), o); !errors.Is(err, ErrValue) {
			t.Errorf("a wire of r: %v", err)
		}
		unreachable := []byte{0x00}
		wantFormat(t, run(handmade(1, unreachable, nil), o), "", "unreachable")
		wantFormat(t, run(handmade(1, nil, unreachable), o), "", "unreachable")
		// Calls itself without end: call 2 with three arguments.
		deep := []byte{0x41, 0, 0x41, 0, 0x41, 0, 0x10, 2}
		wantFormat(t, run(handmade(1, deep, nil), o), "", "stack overflow")
		// Too little memory for the table of one wire.
		wantFormat(t, run(handmade(0, nil, nil), o), "", "")
		// memory.grow within a limit, then a load from what it got: i32.const 3;
		// memory.grow; drop; i32.const 131072; i32.load; drop.
		grow := []byte{0x41, 3, 0x40, 0, 0x1a, 0x41, 0x80, 0x80, 0x08, 0x28, 2, 0, 0x1a}
		if err := run(handmade(1, grow, nil), o); !errors.Is(err, ErrValue) {
			t.Errorf("after growing: %v", err)
		}
		o.MemoryLimit = 2 * pageBytes
		wantFormat(t, run(handmade(1, grow, nil), o), "", "out of bounds")
	}
}
