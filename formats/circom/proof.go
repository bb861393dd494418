package circom

import (
	"fmt"
	"io"
	"math/big"
	"strings"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/arith"
	"github.com/snarkline/snarkline/groth16"
)

// ReadProof reads a proof.json: protocol, curve, and points that are checked
// to be on the curve and in the subgroup. The name is for messages.
func ReadProof(name string, r io.Reader) (*groth16.Proof, error) {
	var doc struct {
		head
		A []number   `json:"pi_a"`
		B [][]number `json:"pi_b"`
		C []number   `json:"pi_c"`
	}
	if err := readJSON(name, r, maxProofJSON, &doc); err != nil {
		return nil, err
	}
	id, err := doc.check(name)
	if err != nil {
		return nil, err
	}
	p := &groth16.Proof{Curve: id}
	if p.A, err = point(id, doc.A); err != nil {
		return nil, inField(name, "pi_a", err)
	}
	if p.B, err = point2(id, doc.B); err != nil {
		return nil, inField(name, "pi_b", err)
	}
	if p.C, err = point(id, doc.C); err != nil {
		return nil, inField(name, "pi_c", err)
	}
	return p, nil
}

// WriteProof writes a proof.json as snarkjs does. A proof with commitments
// cannot be written: snarkjs knows none.
func WriteProof(w io.Writer, p *groth16.Proof) error {
	if err := plainProof(p); err != nil {
		return fmt.Errorf("write proof.json: %w", err)
	}
	err := writeJSON(w, object{
		{"pi_a", pointJSON(p.Curve, &p.A)},
		{"pi_b", pointJSON2(p.Curve, &p.B)},
		{"pi_c", pointJSON(p.Curve, &p.C)},
		{"protocol", "groth16"},
		{"curve", p.Curve.Circom()},
	})
	if err != nil {
		return fmt.Errorf("write proof.json: %w", err)
	}
	return nil
}

func plainProof(p *groth16.Proof) error {
	switch {
	case !p.Curve.Valid():
		return fmt.Errorf("a proof on %v", p.Curve)
	case len(p.Commitments) > 0:
		return fmt.Errorf("the proof has %d commitments, which snarkjs does not know", len(p.Commitments))
	}
	return nil
}

// ReadPublic reads a public.json of the given curve: values, each below r. How
// many a key takes is for its Verify to say.
func ReadPublic(name string, r io.Reader, id curve.ID) ([]curve.Scalar, error) {
	f, err := arith.FieldOf(id)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	var values []number
	if err := readJSON(name, r, maxPublicJSON, &values); err != nil {
		return nil, err
	}
	if values == nil {
		return nil, &FormatError{File: name, Offset: -1, Err: fmt.Errorf("not an array")}
	}
	modulus := id.ScalarModulus()
	out := make([]curve.Scalar, len(values))
	for i := range values {
		err := values[i].err
		if err == nil && values[i].v.Cmp(modulus) >= 0 {
			err = ErrValue
		}
		if err != nil {
			return nil, inField(name, fmt.Sprintf("[%d]", i), err)
		}
		out[i] = f.FromBig(&values[i].v)
	}
	return out, nil
}

// WritePublic writes a public.json as snarkjs does.
func WritePublic(w io.Writer, id curve.ID, public []curve.Scalar) error {
	f, err := arith.FieldOf(id)
	if err != nil {
		return fmt.Errorf("write public.json: %w", err)
	}
	values := make([]any, len(public))
	for i := range public {
		values[i] = f.ToBig(public[i]).String()
	}
	if err := writeJSON(w, values); err != nil {
		return fmt.Errorf("write public.json: %w", err)
	}
	return nil
}

// SolidityCalldata is the arguments of the verifier contract that snarkjs
// generates, as `snarkjs zkey export soliditycalldata` prints them (it adds a
// newline). The contract exists for BN254 only; for BLS12-381 the same text is
// made, as snarkjs makes it.
func SolidityCalldata(p *groth16.Proof, public []curve.Scalar) (string, error) {
	if err := plainProof(p); err != nil {
		return "", fmt.Errorf("solidity calldata: %w", err)
	}
	f, err := arith.FieldOf(p.Curve)
	if err != nil {
		return "", fmt.Errorf("solidity calldata: %w", err)
	}
	hex := func(v *big.Int) string { return fmt.Sprintf(`"0x%064x"`, v) }
	// snarkjs takes a point at infinity apart as the projective 0, 1, 0.
	a, c := arith.Coordinates(p.Curve, &p.A), arith.Coordinates(p.Curve, &p.C)
	if p.A.IsInfinity() {
		a[1].SetInt64(1)
	}
	if p.C.IsInfinity() {
		c[1].SetInt64(1)
	}
	b := arith.Coordinates2(p.Curve, &p.B)
	if p.B.IsInfinity() {
		b[2].SetInt64(1)
	}
	inputs := make([]string, len(public))
	for i := range public {
		inputs[i] = hex(f.ToBig(public[i]))
	}
	return fmt.Sprintf("[%s, %s],[[%s, %s],[%s, %s]],[%s, %s],[%s]",
		hex(a[0]), hex(a[1]), hex(b[1]), hex(b[0]), hex(b[3]), hex(b[2]), hex(c[0]), hex(c[1]), strings.Join(inputs, ",")), nil
}
