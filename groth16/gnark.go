package groth16

import (
	"fmt"

	gnark "github.com/consensys/gnark/backend/groth16"

	"github.com/snarkline/snarkline/curve"
)

// ToGnarkProof is the proof as gnark's verifier takes it.
func ToGnarkProof(p *Proof) (gnark.Proof, error) {
	f, err := backendOf(p.Curve)
	if err != nil {
		return nil, fmt.Errorf("convert a proof: %w", err)
	}
	return f.ToGnarkProof(p.model()), nil
}

// FromGnarkProof reads a proof of gnark's, on either curve.
func FromGnarkProof(g gnark.Proof) (*Proof, error) {
	for _, id := range curve.All() {
		f, err := backendOf(id)
		if err != nil {
			return nil, err
		}
		if m, ok := f.FromGnarkProof(g); ok {
			p := Proof(*m)
			return &p, nil
		}
	}
	return nil, fmt.Errorf("convert a proof: %T is on no curve that is known here", g)
}

// ToGnarkVerifyingKey is the key as gnark's verifier takes it.
func ToGnarkVerifyingKey(vk *VerifyingKey) (gnark.VerifyingKey, error) {
	f, err := backendOf(vk.Curve)
	if err != nil {
		return nil, fmt.Errorf("convert a verifying key: %w", err)
	}
	prepared, err := f.Prepare(vk.model())
	if err != nil {
		return nil, fmt.Errorf("convert a verifying key: %w", err)
	}
	out, ok := prepared.(gnark.VerifyingKey)
	if !ok {
		return nil, fmt.Errorf("convert a verifying key: %T is no verifying key of gnark", prepared)
	}
	return out, nil
}

// FromGnarkVerifyingKey reads a verifying key of gnark's, on either curve.
func FromGnarkVerifyingKey(g gnark.VerifyingKey) (*VerifyingKey, error) {
	for _, id := range curve.All() {
		f, err := backendOf(id)
		if err != nil {
			return nil, err
		}
		m, ok := f.FromGnarkVerifyingKey(g)
		if !ok {
			continue
		}
		vk := &VerifyingKey{
			Curve:  m.Curve,
			Alpha1: m.Alpha1, Beta1: m.Beta1, Delta1: m.Delta1,
			Beta2: m.Beta2, Gamma2: m.Gamma2, Delta2: m.Delta2,
			IC: m.IC, Committed: m.Committed,
		}
		for _, c := range m.Commitments {
			vk.Commitments = append(vk.Commitments, CommitmentVerifyingKey(c))
		}
		return vk, nil
	}
	return nil, fmt.Errorf("convert a verifying key: %T is on no curve that is known here", g)
}
