package groth16

import (
	"fmt"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16/internal/model"
)

// Proof is a Groth16 proof. Commitments and CommitmentPok are those of a gnark
// circuit that commits, and empty otherwise.
type Proof struct {
	Curve         curve.ID
	A             curve.G1
	B             curve.G2
	C             curve.G1
	Commitments   []curve.G1
	CommitmentPok curve.G1
}

// Check reports the first point of the proof that has unreduced coordinates,
// is not on its curve, or not in the subgroup.
func (p *Proof) Check() error {
	f, err := backendOf(p.Curve)
	if err != nil {
		return fmt.Errorf("proof: %w", err)
	}
	if err := f.CheckG1(&p.A); err != nil {
		return fmt.Errorf("proof: A: %w", err)
	}
	if err := f.CheckG2(&p.B); err != nil {
		return fmt.Errorf("proof: B: %w", err)
	}
	if err := f.CheckG1(&p.C); err != nil {
		return fmt.Errorf("proof: C: %w", err)
	}
	for i := range p.Commitments {
		if err := f.CheckG1(&p.Commitments[i]); err != nil {
			return fmt.Errorf("proof: commitment %d: %w", i, err)
		}
	}
	if err := f.CheckG1(&p.CommitmentPok); err != nil {
		return fmt.Errorf("proof: proof of knowledge of the commitments: %w", err)
	}
	return nil
}

// Sums are the five multi-scalar sums that a proof is made of, before blinding:
// over the wires Σ w·A, Σ w·B₁, Σ w·B₂, Σ w·L, and over the quotient Σ h·H.
type Sums struct {
	A, B1, L, H curve.G1
	B2          curve.G2
}

func (p *Proof) model() *model.Proof {
	m := model.Proof(*p)
	return &m
}
