package gnark

import (
	"errors"
	"fmt"
	"io"

	"github.com/consensys/gnark/backend/witness"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark/internal/bls12381"
	"github.com/snarkline/snarkline/formats/gnark/internal/bn254"
	"github.com/snarkline/snarkline/groth16"
)

// onCurves runs fn for each curve that the file may be of and returns the error
// of the one that came furthest.
func (o Options) onCurves(r io.ReaderAt, size int64, doing string, fn func(*reader) error) error {
	var best error
	var furthest int64 = -1
	for _, id := range o.curves() {
		f, err := backendOf(id)
		if err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		in := newReader(r, size, o.name(), f)
		if err = fn(in); err == nil {
			return nil
		}
		if in.at > furthest {
			best, furthest = err, in.at
		}
	}
	return fmt.Errorf("%s: %w", doing, best)
}

// ReadProof reads a proof that gnark wrote, compressed or raw. Its points are
// checked; SkipSubgroup has no effect.
func ReadProof(r io.ReaderAt, size int64, o Options) (*groth16.Proof, error) {
	var p *groth16.Proof
	err := o.onCurves(r, size, "read a gnark proof", func(in *reader) error {
		p = &groth16.Proof{Curve: in.f.ID(), A: in.g1("A"), B: in.g2("B"), C: in.g1("C")}
		p.Commitments = in.points("commitments")
		p.CommitmentPok = in.g1("proof of knowledge")
		in.end()
		if in.err != nil {
			return in.err
		}
		if err := p.Check(); err != nil {
			return &FormatError{File: in.name, Offset: -1, Err: err}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// points reads a vector of G1 points behind its u32 count to Go's heap: for
// those of proofs and verifying keys, which are few.
func (r *reader) points(section string) []curve.G1 {
	at := r.at
	n := int64(r.u32(section))
	if size := int64(pointSize(r.f.ID(), curve.InG1, true)); r.err == nil && n > r.left()/size {
		r.fail(section, at, fmt.Errorf("%w: %d points of at least %d bytes, %d bytes are left", ErrTruncated, n, size, r.left()))
	}
	var out []curve.G1
	for i := int64(0); i < n && r.err == nil; i++ {
		out = append(out, r.g1(section))
	}
	return out
}

// WriteProof writes a proof as gnark does, compressed or raw.
func WriteProof(w io.Writer, p *groth16.Proof, raw bool) error {
	g, err := groth16.ToGnarkProof(p)
	if err != nil {
		return fmt.Errorf("write a gnark proof: %w", err)
	}
	if raw {
		_, err = g.WriteRawTo(w)
	} else {
		_, err = g.WriteTo(w)
	}
	if err != nil {
		return fmt.Errorf("write a gnark proof: %w", err)
	}
	return nil
}

// ReadVerifyingKey reads a verifying key that gnark wrote, compressed or raw.
// Its points are checked; SkipSubgroup has no effect.
func ReadVerifyingKey(r io.ReaderAt, size int64, o Options) (*groth16.VerifyingKey, error) {
	var vk *groth16.VerifyingKey
	err := o.onCurves(r, size, "read a gnark verifying key", func(in *reader) error {
		vk = &groth16.VerifyingKey{Curve: in.f.ID()}
		vk.Alpha1, vk.Beta1 = in.g1("α₁"), in.g1("β₁")
		vk.Beta2, vk.Gamma2 = in.g2("β₂"), in.g2("γ₂")
		vk.Delta1, vk.Delta2 = in.g1("δ₁"), in.g2("δ₂")
		vk.IC = in.points("K")
		in.committed(vk)
		in.end()
		if in.err != nil {
			return in.err
		}
		if err := vk.Check(); err != nil {
			return &FormatError{File: in.name, Offset: -1, Err: err}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return vk, nil
}

// committed reads what a verifying key says of commitments.
func (r *reader) committed(vk *groth16.VerifyingKey) {
	const section = "commitments"
	at := r.at
	n := int64(r.u32(section))
	if r.err == nil && n > r.left()/4 {
		r.fail(section, at, fmt.Errorf("%w: %d lists, %d bytes are left", ErrTruncated, n, r.left()))
	}
	for i := int64(0); i < n && r.err == nil; i++ {
		at := r.at
		m := int64(r.u32(section))
		if r.err == nil && m > r.left()/8 {
			r.fail(section, at, fmt.Errorf("%w: %d inputs, %d bytes are left", ErrTruncated, m, r.left()))
		}
		list := []int{}
		for j := int64(0); j < m && r.err == nil; j++ {
			at := r.at
			v := r.u64(section)
			if v > uint64(len(vk.IC)) {
				r.fail(section, at, fmt.Errorf("input %d of %d", v, len(vk.IC)))
			}
			list = append(list, int(v))
		}
		vk.Committed = append(vk.Committed, list)
	}
	if keys := int64(r.u32(section)); r.err == nil && keys != n {
		r.fail(section, r.at-4, fmt.Errorf("%d keys for %d commitments", keys, n))
	}
	for i := int64(0); i < n && r.err == nil; i++ {
		vk.Commitments = append(vk.Commitments, groth16.CommitmentVerifyingKey{G: r.g2(section), GSigmaNeg: r.g2(section)})
	}
}

// WriteVerifyingKey writes a verifying key as gnark does, compressed or raw.
func WriteVerifyingKey(w io.Writer, vk *groth16.VerifyingKey, raw bool) error {
	g, err := groth16.ToGnarkVerifyingKey(vk)
	if err != nil {
		return fmt.Errorf("write a gnark verifying key: %w", err)
	}
	if raw {
		_, err = g.WriteRawTo(w)
	} else {
		_, err = g.WriteTo(w)
	}
	if err != nil {
		return fmt.Errorf("write a gnark verifying key: %w", err)
	}
	return nil
}

// ReadWitness reads a witness that gnark wrote, full or public. It does not say
// which curve it is of: Options must.
func ReadWitness(r io.ReaderAt, size int64, o Options) (witness.Witness, error) {
	const doing = "read a gnark witness: "
	if o.Curve == 0 {
		return nil, errors.New(doing + "the curve must be given, the file does not say it")
	}
	f, err := backendOf(o.Curve)
	if err != nil {
		return nil, fmt.Errorf(doing+"%w", err)
	}
	in := newReader(r, size, o.name(), f)
	public, secret, n := in.u32("header"), in.u32("header"), in.u32("header")
	if in.err == nil && uint64(public)+uint64(secret) != uint64(n) {
		in.fail("header", 8, fmt.Errorf("%d public and %d secret values do not make %d", public, secret, n))
	}
	if in.err == nil && (int64(n) != in.left()/curve.ScalarBytes || in.left()%curve.ScalarBytes != 0) {
		in.fail("values", in.at, fmt.Errorf("%w: %d values of %d bytes are announced, %d bytes are left", ErrTruncated, n, curve.ScalarBytes, in.left()))
	}
	const chunk = 1 << 16
	for in.err == nil && in.left() > 0 {
		at := in.at
		b := in.bytes("values", min(chunk, in.left()))
		for i := 0; i < len(b); i += curve.ScalarBytes {
			if _, err := f.Element((*[curve.ScalarBytes]byte)(b[i:])); err != nil {
				in.fail("values", at+int64(i), err)
			}
		}
		clear(b)
	}
	if in.err != nil {
		return nil, fmt.Errorf(doing+"%w", in.err)
	}
	w, err := witness.New(o.Curve.ScalarModulus())
	if err != nil {
		return nil, fmt.Errorf(doing+"%w", err)
	}
	if _, err := w.ReadFrom(io.NewSectionReader(r, 0, size)); err != nil {
		return nil, fmt.Errorf(doing+"%w", &FormatError{File: in.name, Offset: -1, Err: err})
	}
	return w, nil
}

// WriteWitness writes a witness in gnark's format.
func WriteWitness(w io.Writer, v witness.Witness) error {
	if _, err := v.WriteTo(w); err != nil {
		return fmt.Errorf("write a gnark witness: %w", err)
	}
	return nil
}

// Wipe clears the values of a gnark witness, which lie on Go's heap until they
// are collected. It is for callers that are done with one: the witness keeps
// its shape and is of no more use. Witnesses of other curves, and nil, are left
// as they are.
func Wipe(w witness.Witness) {
	if w == nil {
		return
	}
	bn254.Backend{}.Wipe(w)
	bls12381.Backend{}.Wipe(w)
}

// PublicInputs are the public values of a gnark witness, as Verify takes them.
func PublicInputs(w witness.Witness, id curve.ID) ([]curve.Scalar, error) {
	f, err := backendOf(id)
	if err != nil {
		return nil, fmt.Errorf("public inputs of a gnark witness: %w", err)
	}
	if !f.IsWitness(w) {
		return nil, fmt.Errorf("public inputs of a gnark witness: %w: %v", ErrCurve, id)
	}
	p, err := w.Public()
	if err != nil {
		return nil, fmt.Errorf("public inputs of a gnark witness: %w", err)
	}
	return f.Values(p), nil
}
