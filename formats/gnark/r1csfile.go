package gnark

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	gnark "github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/constraint"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// The layout of a constraint system's file: a length and the version of gnark;
// the lengths of four sections; the sections; the table of coefficients.
const (
	r1csOuter  = 4 * 8
	r1csHeader = 4 * 8
)

// ReadR1CS reads a constraint system that gnark v0.14 wrote with its r1cs
// builder, of size bytes, and checks that gnark's solver can follow it to the
// end: that every index is in range and every wire is solved once, before it is
// used. The result lies on Go's heap. An *os.File is mapped while it is read, and
// must not be changed meanwhile; anything else is copied outside Go's heap.
//
// A constraint system names the hint functions that its solver calls. Those that
// the program knows may not be prepared for every input: one that panics gives an
// error, but one may as well compute for very long, so a file from an untrusted
// hand should not be solved. Circuits that use gnark's GKR are refused.
func ReadR1CS(r io.ReaderAt, size int64, o Options) (ccs constraint.ConstraintSystem, err error) {
	const doing = "read a gnark constraint system: "
	in := newReader(r, size, o.name(), nil)
	if size < r1csOuter+r1csHeader {
		return nil, fmt.Errorf(doing+"%w", &FormatError{File: in.name, Offset: 0, Err: fmt.Errorf("%w: %d bytes", ErrTruncated, size)})
	}
	data, memory, err := in.whole()
	if err != nil {
		return nil, fmt.Errorf(doing+"%w", err)
	}
	defer memory.Release() // gnark keeps none of it
	counts, err := precheck(in, data)
	if err != nil {
		return nil, fmt.Errorf(doing+"%w", err)
	}
	id, err := sniff(in, data, o)
	if err != nil {
		return nil, fmt.Errorf(doing+"%w", err)
	}
	if ccs, err = decodeR1CS(id, data); err == nil {
		err = checkSystem(ccs, id, counts)
	}
	if err != nil {
		return nil, fmt.Errorf(doing+"%w", &FormatError{File: in.name, Offset: -1, Err: err})
	}
	return ccs, nil
}

// whole is all of the input, with the reference that keeps it there: a file is
// mapped, if it can be.
func (r *reader) whole() ([]byte, alloc.Ref, error) {
	sc := alloc.NewScope(alloc.StageOf("files"), alloc.Host, nil)
	if f, ok := r.r.(*os.File); ok {
		if m, err := alloc.Map(sc, f, 0, r.size); err == nil {
			return m.Data(), m, nil
		}
	}
	b, err := alloc.Make[byte](sc, int(r.size), alloc.Scratch, alloc.Dirty)
	if err != nil {
		return nil, nil, err
	}
	if err := readAt(r.r, b.Slice(), 0); err != nil {
		b.Release()
		return nil, nil, &FormatError{File: r.name, Offset: 0, Err: err}
	}
	return b.Slice(), b, nil
}

// WriteR1CS writes a constraint system in gnark's format.
func WriteR1CS(w io.Writer, ccs constraint.ConstraintSystem) (err error) {
	defer recovered(&err, "write a gnark constraint system")
	if _, err := ccs.WriteTo(w); err != nil {
		return fmt.Errorf("write a gnark constraint system: %w", err)
	}
	return nil
}

func decodeR1CS(id curve.ID, data []byte) (ccs constraint.ConstraintSystem, err error) {
	defer recovered(&err, "decode")
	ccs = gnark.NewCS(eccOf(id))
	if _, err := ccs.ReadFrom(bytes.NewReader(data)); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return ccs, nil
}

// sniff tells the curve by the modulus, which the body spells in hexadecimal.
func sniff(in *reader, data []byte, o Options) (curve.ID, error) {
	for _, id := range curve.All() {
		if bytes.Contains(data, []byte(id.ScalarModulus().Text(16))) {
			if o.Curve != 0 && o.Curve != id {
				return 0, &FormatError{File: in.name, Offset: -1, Err: fmt.Errorf("%w: it is of %v, not %v", ErrCurve, id, o.Curve)}
			}
			return id, nil
		}
	}
	return 0, &FormatError{File: in.name, Offset: -1, Err: fmt.Errorf("%w: neither bn254 nor bls12-381", ErrCurve)}
}

// r1csCounts are what the sections announce.
type r1csCounts struct{ instructions, words int64 }

// precheck checks the lengths of everything that gnark allocates or indexes by
// before it looks at the data.
func precheck(in *reader, data []byte) (c r1csCounts, err error) {
	size := uint64(len(data))
	u64 := func(at uint64) uint64 { return binary.LittleEndian.Uint64(data[at:]) }
	bad := func(section string, at uint64, err error) error {
		return &FormatError{File: in.name, Section: section, Offset: int64(at), Err: err}
	}
	if total := u64(0); total != size-r1csOuter {
		return c, bad("header", 0, fmt.Errorf("%d bytes are announced, %d follow", total, size-r1csOuter))
	}
	if u64(8) != 0 || u64(16) != 14 {
		return c, bad("header", 8, fmt.Errorf("written by gnark %d.%d.%d, only 0.14 is read", u64(8), u64(16), u64(24)))
	}
	names := []string{"levels", "instructions", "calldata", "body"}
	sections := make([][]byte, len(names))
	starts := make([]uint64, len(names)+1)
	at := uint64(r1csOuter + r1csHeader)
	for i, name := range names {
		n := u64(uint64(r1csOuter + 8*i))
		if n > size-at {
			return c, bad(name, uint64(r1csOuter+8*i), fmt.Errorf("%w: %d bytes, %d are left", ErrTruncated, n, size-at))
		}
		starts[i], sections[i] = at, data[at:at+n]
		at += n
	}
	if size-at < 8 || u64(at) != (size-at-8)/curve.ScalarBytes || (size-at-8)%curve.ScalarBytes != 0 {
		return c, bad("coefficients", at, fmt.Errorf("%d bytes do not hold the table that is announced", size-at))
	}
	levels, ins, call, body := sections[0], sections[1], sections[2], sections[3]

	// Four packed lists of the same length.
	var lists [4]int64
	off := int64(0)
	for i := range lists {
		f := packed32
		if i == 3 {
			f = packed64
		}
		n, used, err := f(ins[off:])
		if err != nil {
			return c, bad("instructions", starts[1]+uint64(off), err)
		}
		lists[i], off = n, off+used
		if n != lists[0] {
			return c, bad("instructions", starts[1], fmt.Errorf("lists of %d and %d instructions", lists[0], n))
		}
	}
	if c.instructions = lists[0]; off != int64(len(ins)) {
		return c, bad("instructions", starts[1]+uint64(off), errors.New("bytes follow the lists"))
	}

	if len(call) < 8 {
		return c, bad("calldata", starts[2], ErrTruncated)
	}
	words := binary.LittleEndian.Uint64(call)
	if words > uint64(len(call)-8) {
		return c, bad("calldata", starts[2], fmt.Errorf("%w: %d words, %d bytes are left", ErrTruncated, words, len(call)-8))
	}
	if c.words = int64(words); c.instructions > c.words {
		return c, bad("instructions", starts[1], fmt.Errorf("%d instructions of %d words in all", c.instructions, words))
	}

	if err := checkLevels(levels, c.instructions); err != nil {
		return c, bad("levels", starts[0], err)
	}
	// Anything but a map would set gnark's system to nil under its goroutines.
	if len(body) == 0 || body[0]>>5 != 5 {
		return c, bad("body", starts[3], errors.New("it is no CBOR map"))
	}
	return c, nil
}

// checkLevels walks over the packed lists of instructions by level, which hold
// every instruction once.
func checkLevels(b []byte, instructions int64) error {
	if len(b) < 8 {
		return ErrTruncated
	}
	n := binary.LittleEndian.Uint64(b)
	b = b[8:]
	if n > uint64(len(b))/8 {
		return fmt.Errorf("%w: %d levels, %d bytes are left", ErrTruncated, n, len(b))
	}
	var sum int64
	for i := range n {
		count, size, err := packed32(b)
		if err != nil {
			return fmt.Errorf("level %d: %w", i, err)
		}
		b = b[size:]
		if sum += count; sum > instructions {
			return fmt.Errorf("the levels hold more than the %d instructions", instructions)
		}
	}
	if len(b) != 0 || sum != instructions {
		return fmt.Errorf("the levels hold %d of %d instructions, %d bytes follow", sum, instructions, len(b))
	}
	return nil
}
