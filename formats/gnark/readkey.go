package gnark

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"

	"github.com/consensys/gnark/constraint"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark/internal/parts"
	"github.com/snarkline/snarkline/formats/internal/arith"
	"github.com/snarkline/snarkline/formats/internal/spill"
	"github.com/snarkline/snarkline/groth16"
)

// KeyOptions say how a proving key is read.
type KeyOptions struct {
	Options
	// Circuit is the key's circuit. A key with commitments needs it, for gnark's
	// files do not say which wires go where; for others it may be nil, and
	// NbConstraints of the key is then 0.
	Circuit constraint.ConstraintSystem
	// Progress hears of the points checked so far.
	Progress func(done, total int)
	// Temp says whether the key's points lie in a temporary file that is mapped,
	// or in buffers.
	Temp Temp
}

// OpenProvingKey reads the proving key in the file at path.
func OpenProvingKey(ctx context.Context, path string, o KeyOptions) (*groth16.ProvingKey, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open a proving key: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open a proving key: %w", err)
	}
	if o.Name == "" {
		o.Name = path
	}
	return ReadProvingKey(ctx, f, info.Size(), o)
}

// ReadProvingKey reads a proving key that gnark wrote, compressed, raw or as a
// dump, of size bytes. Points go straight from the file to buffers of the scope
// of ctx, or to a temporary file that is mapped (o.Temp), which the key's Close
// releases; gnark's own decoder of whole keys is not used. Every point is checked.
func ReadProvingKey(ctx context.Context, r io.ReaderAt, size int64, o KeyOptions) (*groth16.ProvingKey, error) {
	key, err := readAnyKey(ctx, r, size, o)
	if full := (*spill.Error)(nil); errors.As(err, &full) && ctx.Err() == nil {
		o.Temp.tell("", 0, full)
		o.Temp = Temp{}
		key, err = readAnyKey(ctx, r, size, o)
	}
	if err != nil {
		return nil, fmt.Errorf("read a gnark proving key: %w", err)
	}
	return key, nil
}

func readAnyKey(ctx context.Context, r io.ReaderAt, size int64, o KeyOptions) (*groth16.ProvingKey, error) {
	var first error
	for _, id := range o.curves() {
		key, err := readKeyOf(ctx, r, size, id, o)
		if err == nil {
			return key, nil
		}
		if first == nil || !errors.Is(err, ErrCurve) {
			first = err
		}
	}
	return nil, first
}

// keyReader reads one key on one curve.
type keyReader struct {
	*reader
	ctx   context.Context
	b     *builder
	k     *parts.Key
	wires int64
	infA  uint64
	infB  uint64
	where []span // of the vectors, in the order of check, which is that of both layouts
}

// span says where a vector's points lie in the file.
type span struct {
	section string
	start   int64
	size    int64 // of a point
}

const domainBytes = 8 + 5*curve.ScalarBytes + 1

func readKeyOf(ctx context.Context, r io.ReaderAt, size int64, id curve.ID, o KeyOptions) (*groth16.ProvingKey, error) {
	f, err := backendOf(id)
	if err != nil {
		return nil, err
	}
	k := &keyReader{reader: newReader(r, size, o.name(), f), ctx: ctx, b: newBuilder(ctx), k: &parts.Key{Curve: id}}
	key, err := k.read(o)
	k.b.ended() // what is mapped stays
	if err != nil {
		k.b.close()
		return nil, err
	}
	if f := k.b.file; f != nil && f.Bytes() > 0 {
		o.Temp.tell(f.Folder(), f.Bytes(), nil)
	}
	return key, nil
}

func (k *keyReader) read(o KeyOptions) (*groth16.ProvingKey, error) {
	mark := k.u64le("marker")
	dump := mark == 0xdeadbeef
	if !dump {
		k.at = 0
	}
	k.domain()
	if k.err != nil {
		return nil, k.err
	}
	first := k.at
	k.k.Alpha1, k.k.Beta1, k.k.Delta1 = k.g1("α₁"), k.g1("β₁"), k.g1("δ₁")
	if k.err == nil {
		// Points take as much in memory as raw ones in the file.
		raw := int64(3 * pointSize(k.k.Curve, curve.InG1, false))
		k.b.spill(&o.Temp, k.size*raw/(k.at-first))
	}
	if dump {
		k.k.Beta2, k.k.Delta2 = k.g2("β₂"), k.g2("δ₂")
		k.flags()
		n := k.u32("commitments")
		k.dumped("A", &k.k.A, curve.InG1, k.present(k.infA))
		k.dumped("B1", &k.k.B1, curve.InG1, k.present(k.infB))
		k.dumped("Z", &k.k.Z, curve.InG1, int64(k.k.Domain.Size()-1))
		k.dumped("K", &k.k.K, curve.InG1, -1)
		k.dumped("B2", &k.k.B2, curve.InG2, k.present(k.infB))
		k.commitments(n, func(section string, to *curve.Points, n int64) { k.dumped(section, to, curve.InG1, n) })
	} else {
		k.counted("A", &k.k.A, curve.InG1, -1)
		k.counted("B1", &k.k.B1, curve.InG1, -1)
		k.counted("Z", &k.k.Z, curve.InG1, int64(k.k.Domain.Size()-1))
		k.counted("K", &k.k.K, curve.InG1, -1)
		k.k.Beta2, k.k.Delta2 = k.g2("β₂"), k.g2("δ₂")
		k.counted("B2", &k.k.B2, curve.InG2, int64(k.k.B1.Len()))
		at := k.at
		k.flags()
		if k.err == nil && (int64(k.k.A.Len()) != k.present(k.infA) || int64(k.k.B1.Len()) != k.present(k.infB)) {
			k.fail("wires", at, fmt.Errorf("%d wires less %d and %d infinities do not make %d points of A and %d of B", k.wires, k.infA, k.infB, k.k.A.Len(), k.k.B1.Len()))
		}
		n := k.u32("commitments")
		k.commitments(n, func(section string, to *curve.Points, n int64) { k.counted(section, to, curve.InG1, n) })
	}
	k.end()
	if k.err != nil {
		return nil, k.err
	}
	if err := k.check(o); err != nil {
		return nil, err
	}
	key, err := k.b.build(k.k, o.Circuit)
	if err != nil {
		return nil, &FormatError{File: k.name, Offset: -1, Err: err}
	}
	return key, nil
}

// domain reads the domain. It is the same for no two curves, so it decides
// whether the file is of this one.
func (k *keyReader) domain() {
	const section = "domain"
	at := k.at
	if k.left() < domainBytes {
		k.fail(section, at, fmt.Errorf("%w: a domain takes %d bytes, %d are left", ErrTruncated, domainBytes, k.left()))
		return
	}
	n := k.u64(section)
	if n == 0 || n&(n-1) != 0 {
		k.fail(section, at, fmt.Errorf("the domain's size, %d, is no power of two: this is no gnark proving key", n))
		return
	}
	d := curve.Domain{Log: bits.TrailingZeros64(n)}
	sizeInv := k.scalar(section)
	d.Generator = k.scalar(section)
	genInv := k.scalar(section)
	d.Shift = k.scalar(section)
	shiftInv := k.scalar(section)
	flag := k.bytes(section, 1)
	if k.err != nil {
		// Scalars above the modulus: most likely those of a larger field.
		k.err = fmt.Errorf("%w (%v): %w", ErrCurve, k.k.Curve, k.err)
		return
	}
	if d.Log > k.k.Curve.TwoAdicity() {
		k.fail(section, at, fmt.Errorf("%w: the scalar field of %v has no domain of 2^%d", ErrCurve, k.k.Curve, d.Log))
		return
	}
	want, err := groth16.NewDomain(k.k.Curve, d.Size(), curve.Monomial)
	if err == nil && want.Generator != d.Generator {
		err = fmt.Errorf("%w: the domain's generator is not %v's", ErrCurve, k.k.Curve)
	}
	if err == nil {
		err = groth16.CheckDomain(k.k.Curve, d)
	}
	if err == nil {
		err = groth16.CheckInverses(k.k.Curve, d, sizeInv, genInv, shiftInv)
	}
	if err == nil && flag[0] > 1 {
		err = fmt.Errorf("the flag for precomputation is %d", flag[0])
	}
	if err != nil {
		k.fail(section, at, err)
	}
	k.k.Domain = d
}

// present is how many wires have a point.
func (k *keyReader) present(infinities uint64) int64 {
	if k.err != nil {
		return 0
	}
	return k.wires - int64(infinities)
}

// flags reads the number of wires and which of them have no point.
func (k *keyReader) flags() {
	const section = "wires"
	at := k.at
	n := k.u64(section)
	k.infA, k.infB = k.u64(section), k.u64(section)
	if k.err != nil {
		return
	}
	if n > uint64(k.left())/2 {
		k.fail(section, at, fmt.Errorf("%w: flags of %d wires, %d bytes are left", ErrTruncated, n, k.left()))
		return
	}
	k.wires = int64(n)
	k.k.InfinityA = k.bools(section, k.wires, k.infA)
	k.k.InfinityB = k.bools(section, k.wires, k.infB)
}

// bools reads n flags, count of them set.
func (k *keyReader) bools(section string, n int64, count uint64) []bool {
	at := k.at
	b := k.bytes(section, n)
	if b == nil {
		return nil
	}
	out, set := make([]bool, n), uint64(0)
	for i, v := range b {
		if v > 1 {
			k.fail(section, at+int64(i), fmt.Errorf("a flag is %d", v))
			return nil
		}
		if out[i] = v == 1; out[i] {
			set++
		}
	}
	if set != count {
		k.fail(section, at, fmt.Errorf("%d wires are flagged as at infinity, %d are announced", set, count))
	}
	return out
}

// counted reads a vector behind its u32 count, which must be want unless that
// is negative.
func (k *keyReader) counted(section string, to *curve.Points, g curve.Group, want int64) {
	at := k.at
	n := int64(k.u32(section))
	// Compressed points are the smallest there are.
	if !k.room(section, at, n, want, int64(pointSize(k.k.Curve, g, true))) {
		return
	}
	k.fill(section, to, g, n, k.vector)
}

// fill reads n points to a place of their own.
func (k *keyReader) fill(section string, to *curve.Points, g curve.Group, n int64, read func(context.Context, string, *place)) {
	start := k.at
	p, err := k.b.place(k.k.Curve, g, int(n))
	if err != nil {
		k.fail(section, start, err)
		return
	}
	if read(k.ctx, section, p); k.err != nil {
		return
	}
	if *to, err = k.b.settle(p); err != nil {
		k.fail(section, start, err)
		return
	}
	k.note(section, start, n)
}

// dumped reads a vector of raw memory behind its u64 length.
func (k *keyReader) dumped(section string, to *curve.Points, g curve.Group, want int64) {
	at := k.at
	n := k.u64le(section)
	size := int64(k.k.Curve.PointBytes(g))
	if n > uint64(k.size) {
		n = uint64(k.size) + 1
	}
	if !k.room(section, at, int64(n), want, size) {
		return
	}
	k.fill(section, to, g, int64(n), k.raw)
}

// room reports whether n points of at least size bytes fit what is left, and n
// is what it should be.
func (k *keyReader) room(section string, at, n, want, size int64) bool {
	switch {
	case k.err != nil:
	case n > k.left()/size:
		k.fail(section, at, fmt.Errorf("%w: %d points of at least %d bytes, %d bytes are left", ErrTruncated, n, size, k.left()))
	case want >= 0 && n != want:
		k.fail(section, at, fmt.Errorf("%d points, there should be %d", n, want))
	}
	return k.err == nil
}

func (k *keyReader) note(section string, start, n int64) {
	s := span{section: section, start: start}
	if n > 0 {
		s.size = (k.at - start) / n
	}
	k.where = append(k.where, s)
}

// commitments reads n Pedersen keys.
func (k *keyReader) commitments(n uint32, vector func(section string, to *curve.Points, want int64)) {
	if k.err == nil && int64(n) > k.left()/8 {
		k.fail("commitments", k.at-4, fmt.Errorf("%w: %d commitments, %d bytes are left", ErrTruncated, n, k.left()))
	}
	for i := 0; i < int(n) && k.err == nil; i++ {
		var c groth16.CommitmentKey
		vector(fmt.Sprintf("commitment %d", i), &c.Basis, -1)
		vector(fmt.Sprintf("commitment %d", i), &c.BasisExpSigma, int64(c.Basis.Len()))
		k.k.Commitments = append(k.k.Commitments, c)
	}
}

// check checks every point.
func (k *keyReader) check(o KeyOptions) error {
	vectors := []curve.Points{k.k.A, k.k.B1, k.k.Z, k.k.K, k.k.B2}
	for _, c := range k.k.Commitments {
		vectors = append(vectors, c.Basis, c.BasisExpSigma)
	}
	for _, s := range []struct {
		name string
		err  error
	}{
		{"α₁", arith.CheckG1(k.k.Curve, &k.k.Alpha1)}, {"β₁", arith.CheckG1(k.k.Curve, &k.k.Beta1)},
		{"δ₁", arith.CheckG1(k.k.Curve, &k.k.Delta1)}, {"β₂", arith.CheckG2(k.k.Curve, &k.k.Beta2)},
		{"δ₂", arith.CheckG2(k.k.Curve, &k.k.Delta2)},
	} {
		if s.err != nil {
			return &FormatError{File: k.name, Section: s.name, Offset: -1, Err: s.err}
		}
	}
	err := arith.Check(k.ctx, vectors, arith.CheckOptions{SkipSubgroup: o.SkipSubgroup, Progress: o.Progress, Done: k.b.rest})
	var bad *arith.PointError
	if !errors.As(err, &bad) {
		return err
	}
	s := k.where[bad.Vector]
	return &FormatError{File: k.name, Section: s.section, Offset: s.start + int64(bad.Index)*s.size, Err: err}
}
