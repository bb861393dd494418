package native

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// Content is what a file holds.
type Content struct {
	Key     *groth16.ProvingKey
	VK      *groth16.VerifyingKey // may be nil
	Circuit *groth16.R1CS         // may be nil
}

// section is one section to write.
type section struct {
	kind   kind
	index  uint32
	first  uint32
	data   []byte
	offset uint64
}

// WriteFile writes a file at path, all or nothing: to a temporary file beside it
// that takes its place when it is complete and on the disk.
func WriteFile(ctx context.Context, path string, c Content) error {
	if err := writeFile(ctx, path, c); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func writeFile(ctx context.Context, path string, c Content) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignore(f.Close(), os.ErrClosed), os.Remove(f.Name()))
		}
	}()
	if err := Write(ctx, f, c); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

// Write writes a file to w, front to back.
func Write(ctx context.Context, w io.Writer, c Content) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	sections := c.sections()
	if len(sections) > maxSections {
		return fmt.Errorf("%d sections, at most %d", len(sections), maxSections)
	}
	at := align(headerSize + entrySize*uint64(len(sections)))
	for i := range sections {
		// A vector that two sections share is written once.
		if j := slices.IndexFunc(sections[:i], func(o section) bool { return same(o.data, sections[i].data) }); j >= 0 {
			sections[i].offset = sections[j].offset
			continue
		}
		sections[i].offset = at
		at = align(at + uint64(len(sections[i].data)))
	}

	head := c.header(sections, at)
	out := bufio.NewWriterSize(w, 1<<20)
	if _, err := out.Write(head); err != nil {
		return err
	}
	pos := uint64(len(head))
	for _, s := range sections {
		if s.offset < pos {
			continue // shared
		}
		if _, err := out.Write(make([]byte, s.offset-pos)); err != nil {
			return err
		}
		for rest := s.data; len(rest) > 0; {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := min(len(rest), 1<<24)
			if _, err := out.Write(rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		pos = s.offset + uint64(len(s.data))
	}
	if _, err := out.Write(make([]byte, at-pos)); err != nil {
		return err
	}
	return out.Flush()
}

func align(n uint64) uint64 { return (n + alignment - 1) / alignment * alignment }

func same(a, b []byte) bool {
	return len(a) > 0 && len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

func (c Content) check(ctx context.Context) error {
	if c.Key == nil {
		return errors.New("no proving key")
	}
	if err := c.Key.Validate(ctx, groth16.CheckSizes); err != nil {
		return err
	}
	if c.VK != nil && (c.VK.Curve != c.Key.Curve || c.VK.NbPublic() != c.Key.NbPublic || len(c.VK.Commitments) != len(c.Key.Commitments)) {
		return errors.New("the verifying key is not the proving key's")
	}
	if r := c.Circuit; r != nil {
		if r.ID != c.Key.Curve || r.Wires != c.Key.NbWires || r.Public != c.Key.NbPublic || r.NbConstraints() > c.Key.Domain.Size() {
			return errors.New("the circuit is not the proving key's")
		}
		return r.Validate()
	}
	return nil
}

// header is the header with the table of sections.
func (c Content) header(sections []section, size uint64) []byte {
	k, le := c.Key, binary.LittleEndian
	b := make([]byte, headerSize, headerSize+entrySize*len(sections))
	copy(b, magic)
	flags := uint32(0)
	if k.Folded {
		flags |= flagFolded
	}
	if c.Circuit != nil {
		flags |= flagCircuit
		if c.Circuit.InputRows {
			flags |= flagInputRows
		}
	}
	for i, v := range []uint32{version, uint32(k.Curve), uint32(k.Basis), flags, uint32(k.Domain.Log), uint32(len(sections))} {
		le.PutUint32(b[8+4*i:], v)
	}
	for i, v := range []uint64{uint64(k.NbConstraints), uint64(k.NbWires), uint64(k.NbPublic), size} {
		le.PutUint64(b[32+8*i:], v)
	}
	for i := range 4 {
		le.PutUint64(b[64+8*i:], k.Domain.Generator[i])
		le.PutUint64(b[96+8*i:], k.Domain.Shift[i])
	}
	for _, s := range sections {
		b = le.AppendUint32(b, uint32(s.kind))
		b = le.AppendUint32(b, s.index)
		b = le.AppendUint64(b, s.offset)
		b = le.AppendUint64(b, uint64(len(s.data)))
		b = le.AppendUint32(b, s.first)
		b = le.AppendUint32(b, 0)
	}
	sum := checksum(b[:hashed], b[headerSize:])
	copy(b[hashed:], sum[:])
	return b
}

func checksum(head, table []byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write(head)
	h.Write(table)
	return [sha256.Size]byte(h.Sum(nil))
}

// sections lists what there is to write.
func (c Content) sections() []section {
	k := c.Key
	g1, g2 := k.Curve.G1Bytes(), k.Curve.G2Bytes()
	one := func(out []byte, words []uint64, size int) []byte { return append(out, curve.Bytes(words)[:size]...) }
	var singles []byte
	for _, p := range []curve.G1{k.Alpha1, k.Beta1, k.Delta1} {
		singles = one(singles, p[:], g1)
	}
	for _, p := range []curve.G2{k.Beta2, k.Delta2} {
		singles = one(singles, p[:], g2)
	}
	out := []section{{kind: kindSingles, data: singles}}
	for _, e := range []struct {
		points, wires kind
		q             curve.Query
	}{{kindA, kindAWires, k.A}, {kindB1, kindB1Wires, k.B1}, {kindB2, kindB2Wires, k.B2}, {kindL, kindLWires, k.L}} {
		out = append(out, section{kind: e.points, first: e.q.First, data: e.q.Points.Data})
		if e.q.Wires != nil {
			wires := e.q.Wires
			if e.points == kindB2 && slices.Equal(wires, k.B1.Wires) {
				wires = k.B1.Wires
			}
			out = append(out, section{kind: e.wires, data: curve.Bytes(wires)})
		}
	}
	out = append(out, section{kind: kindH, data: k.H.Data})
	for i, com := range k.Commitments {
		at := uint32(i)
		out = append(out, section{kind: kindBasis, index: at, first: com.Wire, data: com.Basis.Data},
			section{kind: kindSigma, index: at, data: com.BasisExpSigma.Data},
			section{kind: kindComWires, index: at, data: curve.Bytes(com.Wires)})
	}
	if vk := c.VK; vk != nil {
		var points, ic []byte
		for _, p := range []curve.G1{vk.Alpha1, vk.Beta1, vk.Delta1} {
			points = one(points, p[:], g1)
		}
		for _, p := range []curve.G2{vk.Beta2, vk.Gamma2, vk.Delta2} {
			points = one(points, p[:], g2)
		}
		for i := range vk.IC {
			ic = one(ic, vk.IC[i][:], g1)
		}
		out = append(out, section{kind: kindVK, data: points}, section{kind: kindIC, data: ic})
		for i, com := range vk.Commitments {
			out = append(out, section{kind: kindComVK, index: uint32(i), data: one(one(nil, com.G[:], g2), com.GSigmaNeg[:], g2)},
				section{kind: kindCovered, index: uint32(i), data: covered(vk.Committed[i])})
		}
	}
	if r := c.Circuit; r != nil {
		for i, m := range []curve.Matrix{r.A, r.B, r.C} {
			at := uint32(i)
			out = append(out, section{kind: kindRows, index: at, data: curve.Bytes(m.Rows)},
				section{kind: kindTerms, index: at, data: curve.Bytes(m.Terms)},
				section{kind: kindCoeffs, index: at, data: curve.Bytes(m.Coeffs)})
		}
		for i, com := range r.Commitments {
			out = append(out, section{kind: kindCommitted, index: uint32(i), first: com.Wire, data: curve.Bytes(com.Private)},
				section{kind: kindCircCover, index: uint32(i), data: covered(com.Covered)})
		}
	}
	return out
}

func covered(v []int) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	return b
}
