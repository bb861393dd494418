package circom

import (
	"errors"
	"fmt"
	"io"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/arith"
	"github.com/snarkline/snarkline/groth16"
)

// ReadVerifyingKey reads a verification_key.json: protocol, curve, the number
// of public inputs against the length of IC, and points that are checked to be
// on the curve and in the subgroup. The file holds neither β₁ nor δ₁, which
// stay at infinity, and its pairing of α and β is not read but computed.
func ReadVerifyingKey(name string, r io.Reader) (*groth16.VerifyingKey, error) {
	var doc struct {
		head
		Public *int       `json:"nPublic"`
		Alpha1 []number   `json:"vk_alpha_1"`
		Beta2  [][]number `json:"vk_beta_2"`
		Gamma2 [][]number `json:"vk_gamma_2"`
		Delta2 [][]number `json:"vk_delta_2"`
		IC     [][]number `json:"IC"`
	}
	if err := readJSON(name, r, maxKeyJSON, &doc); err != nil {
		return nil, err
	}
	id, err := doc.check(name)
	if err != nil {
		return nil, err
	}
	if doc.Public == nil || *doc.Public < 0 || *doc.Public != len(doc.IC)-1 {
		said := "no nPublic"
		if doc.Public != nil {
			said = fmt.Sprintf("nPublic is %d", *doc.Public)
		}
		return nil, inField(name, "nPublic", fmt.Errorf("%s, IC has %d points: one more is needed", said, len(doc.IC)))
	}
	vk := &groth16.VerifyingKey{Curve: id, IC: make([]curve.G1, len(doc.IC))}
	if vk.Alpha1, err = point(id, doc.Alpha1); err == nil && vk.Alpha1.IsInfinity() {
		err = arith.ErrInfinity
	}
	if err != nil {
		return nil, inField(name, "vk_alpha_1", err)
	}
	for _, e := range []struct {
		name string
		from [][]number
		to   *curve.G2
	}{{"vk_beta_2", doc.Beta2, &vk.Beta2}, {"vk_gamma_2", doc.Gamma2, &vk.Gamma2}, {"vk_delta_2", doc.Delta2, &vk.Delta2}} {
		if *e.to, err = point2(id, e.from); err == nil && e.to.IsInfinity() {
			err = arith.ErrInfinity
		}
		if err != nil {
			return nil, inField(name, e.name, err)
		}
	}
	for i := range vk.IC {
		if vk.IC[i], err = point(id, doc.IC[i]); err != nil {
			return nil, inField(name, fmt.Sprintf("IC[%d]", i), err)
		}
	}
	return vk, nil
}

// WriteVerifyingKey writes a verification_key.json as snarkjs does.
func WriteVerifyingKey(w io.Writer, vk *groth16.VerifyingKey) error {
	if len(vk.Commitments) > 0 || len(vk.IC) == 0 {
		return errors.New("write verification_key.json: the key has commitments or no IC points, which snarkjs does not know")
	}
	pairing, err := arith.Pairing(vk.Curve, &vk.Alpha1, &vk.Beta2)
	if err != nil {
		return fmt.Errorf("write verification_key.json: %w", err)
	}
	ic := make([]any, len(vk.IC))
	for i := range vk.IC {
		ic[i] = pointJSON(vk.Curve, &vk.IC[i])
	}
	err = writeJSON(w, object{
		{"protocol", "groth16"},
		{"curve", vk.Curve.Circom()},
		{"nPublic", len(vk.IC) - 1},
		{"vk_alpha_1", pointJSON(vk.Curve, &vk.Alpha1)},
		{"vk_beta_2", pointJSON2(vk.Curve, &vk.Beta2)},
		{"vk_gamma_2", pointJSON2(vk.Curve, &vk.Gamma2)},
		{"vk_delta_2", pointJSON2(vk.Curve, &vk.Delta2)},
		{"vk_alphabeta_12", tower(pairing)},
		{"IC", ic},
	})
	if err != nil {
		return fmt.Errorf("write verification_key.json: %w", err)
	}
	return nil
}

// tower is an element of the target group: two of three of two coordinates.
func tower(e [2][3][2]string) []any {
	var out []any
	for _, six := range e {
		var half []any
		for _, two := range six {
			half = append(half, []any{two[0], two[1]})
		}
		out = append(out, half)
	}
	return out
}
