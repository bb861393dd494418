package main

import (
	"context"
	"fmt"
	"io"
	"math/bits"

	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/circom"
	"github.com/snarkline/snarkline/groth16"
)

// domainLog is the log of the smallest domain that holds n constraints.
func domainLog(n int) int { return bits.Len(uint(max(n-1, 0))) }

func addDomain(f *facts, log, constraints int) {
	f.add("domain", "domain", 1<<log, fmt.Sprintf("2^%d, %s used", log, percent(constraints, 1<<log)))
}

// addMatrix says how dense a matrix of a constraint system is.
func addMatrix(f *facts, name, label string, m curve.Matrix, wires int) {
	if len(m.Rows) == 0 {
		return
	}
	rows := m.NumRows()
	used := make([]bool, wires)
	n := 0
	for _, t := range m.Terms {
		if !used[t.Wire] {
			used[t.Wire] = true
			n++
		}
	}
	type density struct {
		Terms        int     `json:"terms"`
		PerRow       float64 `json:"terms_per_row"`
		Wires        int     `json:"wires"`
		Coefficients int     `json:"coefficients"`
	}
	d := density{Terms: len(m.Terms), Wires: n, Coefficients: len(m.Coeffs)}
	if rows > 0 {
		d.PerRow = float64(len(m.Terms)) / float64(rows)
	}
	f.add(name, label, d, fmt.Sprintf("%s terms, %.2f a row; on %s of the wires", humanize.Comma(int64(d.Terms)), d.PerRow, percent(n, wires)))
}

// addKey says what a proving key holds.
func addKey(f *facts, k *groth16.ProvingKey) {
	f.add("curve", "curve", k.Curve.String())
	if k.NbConstraints > 0 {
		f.count("constraints", "constraints", k.NbConstraints)
		addDomain(f, k.Domain.Log, k.NbConstraints)
	} else {
		f.add("domain", "domain", k.Domain.Size(), fmt.Sprintf("2^%d", k.Domain.Log))
	}
	f.count("wires", "wires", k.NbWires)
	f.count("public", "public inputs", k.NbPublic)
	f.add("basis", "basis", k.Basis.String())
	f.add("folded", "folded", k.Folded, map[bool]string{true: "yes, 4 transforms a proof", false: "no, 7 transforms a proof"}[k.Folded])
	for _, q := range []struct {
		name, label string
		points      curve.Points
	}{
		{"a", "A", k.A.Points}, {"b1", "B in G1", k.B1.Points}, {"b2", "B in G2", k.B2.Points},
		{"l", "L", k.L.Points}, {"h", "H", k.H},
	} {
		type query struct {
			Points   int   `json:"points"`
			Infinity int   `json:"infinity"`
			Bytes    int64 `json:"bytes"`
		}
		v := query{q.points.Len(), infinities(q.points), int64(len(q.points.Data))}
		text := humanize.Comma(int64(v.Points)) + " points, " + sizeText(v.Bytes)
		if v.Infinity > 0 {
			text += ", " + percent(v.Infinity, v.Points) + " at infinity"
		}
		f.add(q.name, q.label, v, text)
	}
	if n := len(k.Commitments); n > 0 {
		f.count("commitments", "commitments", n)
	}
}

// infinities counts the points at infinity, which are all zero in memory.
func infinities(p curve.Points) int {
	size, n := p.Curve.PointBytes(p.Group), 0
	for i := range p.Len() {
		zero := true
		for _, b := range p.Data[i*size : (i+1)*size] {
			if b != 0 {
				zero = false
				break
			}
		}
		if zero {
			n++
		}
	}
	return n
}

func inspectVK(ctx context.Context, f *facts, path string) error {
	vk, err := readVerifyingKey(ctx, path)
	if err != nil {
		return err
	}
	if err := vk.Check(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f.add("curve", "curve", vk.Curve.String())
	f.count("public", "public inputs", vk.NbPublic())
	f.count("ic", "IC", len(vk.IC), " points")
	if n := len(vk.Committed); n > 0 {
		f.count("commitments", "commitments", n)
	}
	return nil
}

func inspectProof(ctx context.Context, f *facts, path string) error {
	p, _, err := readProof(ctx, path)
	if err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f.add("curve", "curve", p.Curve.String())
	f.count("commitments", "commitments", len(p.Commitments))
	f.add("well_formed", "points", true, "on the curve and in the subgroup")
	return nil
}

func inspectPublic(f *facts, path string) error {
	// The file does not say its curve: as read for the one of larger values.
	values, err := withFile(path, func(name string, r io.Reader) ([]curve.Scalar, error) {
		return circom.ReadPublic(name, r, curve.BLS12381)
	})
	if err != nil {
		return err
	}
	f.count("values", "values", len(values))
	return nil
}
