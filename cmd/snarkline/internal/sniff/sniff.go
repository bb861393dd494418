// Package sniff tells what a file is from what is in it, never from its name.
// Files of gnark have no magic number; they are told by a structure that
// accounts for every byte.
package sniff

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/snarkline/snarkline/curve"
)

// Kind is a kind of file.
type Kind string

// The kinds that are known.
const (
	R1CS       Kind = "circom r1cs"
	Wtns       Kind = "circom witness"
	Zkey       Kind = "snarkjs proving key"
	Wasm       Kind = "circom witness calculator"
	VKeyJSON   Kind = "snarkjs verification key"
	ProofJSON  Kind = "snarkjs proof"
	PublicJSON Kind = "snarkjs public signals"
	InputJSON  Kind = "circuit input"
	Native     Kind = "snarkline key"

	GnarkPK      Kind = "gnark proving key"
	GnarkVK      Kind = "gnark verifying key"
	GnarkProof   Kind = "gnark proof"
	GnarkWitness Kind = "gnark witness"
	GnarkR1CS    Kind = "gnark r1cs"

	Unknown Kind = "unknown"
)

// Gnark reports whether it is one of gnark's own formats.
func (k Kind) Gnark() bool {
	switch k {
	case GnarkPK, GnarkVK, GnarkProof, GnarkWitness, GnarkR1CS:
		return true
	}
	return false
}

// Result is what a file is. Curve is 0 where the file's structure does not say:
// JSON and circom files state it inside, and gnark's witness nowhere.
type Result struct {
	Kind  Kind
	Size  int64
	Curve curve.ID // of gnark's files
	Raw   bool     // gnark: points are not compressed
}

// magic numbers, at the start of a file.
var magics = []struct {
	magic string
	kind  Kind
}{
	{"r1cs", R1CS},
	{"wtns", Wtns},
	{"zkey", Zkey},
	{"\x00asm", Wasm},
	{NativeMagic, Native},
}

// headBytes is how much of a file is looked at for a magic number.
const headBytes = 4096

// maxJSON bounds the JSON that is looked into.
const maxJSON = 1 << 30

// File says what the file at path is. A file of no known kind is not an error.
func File(path string) (Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return Result{}, err
	}
	if st.IsDir() {
		return Result{}, fmt.Errorf("%s: is a folder", path)
	}
	r, err := Reader(f, st.Size())
	if err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Reader is File for anything that can be read at random.
func Reader(f io.ReaderAt, size int64) (Result, error) {
	res := Result{Kind: Unknown, Size: size}
	head := make([]byte, min(size, headBytes))
	if n, err := f.ReadAt(head, 0); err != nil && (n < len(head) || !errors.Is(err, io.EOF)) {
		return res, fmt.Errorf("read: %w", err)
	}
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			res.Kind = m.kind
			return res, nil
		}
	}
	if text := bytes.TrimLeft(head, " \t\r\n\ufeff"); len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		if size > maxJSON {
			return res, fmt.Errorf("JSON of %d bytes is not looked into", size)
		}
		kind, err := jsonKind(io.NewSectionReader(f, 0, size), size)
		if err == nil {
			res.Kind = kind
			return res, nil
		}
		// The length that a constraint system of gnark begins with may look
		// like a bracket, but no text has zeros in it.
		if gnark(f, &res); res.Kind == Unknown && !bytes.Contains(head, []byte{0}) {
			return res, err
		}
		return res, nil
	}
	gnark(f, &res)
	return res, nil
}

// reader walks a file and remembers whether it ran out.
type reader struct {
	f   io.ReaderAt
	at  int64
	end int64
	bad bool
}

func (r *reader) bytes(n int64) []byte {
	if r.bad || n < 0 || n > r.end-r.at || n > headBytes {
		r.bad = true
		return make([]byte, min(max(n, 8), headBytes))
	}
	b := make([]byte, n)
	if _, err := r.f.ReadAt(b, r.at); err != nil && !errors.Is(err, io.EOF) {
		r.bad = true
	}
	r.at += n
	return b
}

func (r *reader) skip(n int64) {
	if r.bad || n < 0 || n > r.end-r.at {
		r.bad = true
		return
	}
	r.at += n
}

func (r *reader) u32() int64 { return int64(binary.BigEndian.Uint32(r.bytes(4))) }

// count is a number of things of which each takes at least size bytes.
func (r *reader) count(size int64) int64 {
	n := r.u32()
	if n*size > r.end-r.at {
		r.bad = true
		return 0
	}
	return n
}

// u64 is a number that counts something in this file; anything larger than the
// file is no such number.
func (r *reader) u64() int64 {
	v := binary.BigEndian.Uint64(r.bytes(8))
	if v > uint64(r.end) {
		r.bad = true
		return 0
	}
	return int64(v)
}

// whole reports whether the walk ended at the end of the file.
func (r *reader) whole() bool { return !r.bad && r.at == r.end }
