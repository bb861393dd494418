package groth16

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/curve"
)

// Level says how closely Validate looks at a key. Each level includes those
// before it.
type Level uint8

// The levels of Validate.
const (
	CheckSizes    Level = iota // counts, domain, wires in range; reads no point
	CheckCurve                 // every point on the curve: a few products a point
	CheckSubgroup              // every point in the subgroup: some 32 additions a point
)

// Validate reports what is wrong with the key in itself. It cannot know whether
// a well-formed key belongs to a circuit. Points are checked on all processors;
// ctx cancels.
func (k *ProvingKey) Validate(ctx context.Context, level Level) error {
	f, err := backendOf(k.Curve)
	if err != nil {
		return fmt.Errorf("proving key: %w", err)
	}
	if err := k.checkSizes(); err != nil {
		return fmt.Errorf("proving key: %w", err)
	}
	if level < CheckCurve {
		return nil
	}
	for _, e := range []struct {
		name string
		p    *curve.G1
	}{{"α₁", &k.Alpha1}, {"β₁", &k.Beta1}, {"δ₁", &k.Delta1}} {
		if err := f.CheckG1(e.p); err != nil {
			return fmt.Errorf("proving key: %s: %w", e.name, err)
		}
	}
	for _, e := range []struct {
		name string
		p    *curve.G2
	}{{"β₂", &k.Beta2}, {"δ₂", &k.Delta2}} {
		if err := f.CheckG2(e.p); err != nil {
			return fmt.Errorf("proving key: %s: %w", e.name, err)
		}
	}
	for _, v := range k.vectors() {
		if err := f.CheckPoints(ctx, v.points, level >= CheckSubgroup); err != nil {
			return fmt.Errorf("proving key: %s: %w", v.name, err)
		}
	}
	return nil
}

// vector is one of the key's vectors of points.
type vector struct {
	name   string
	points curve.Points
}

func (k *ProvingKey) vectors() []vector {
	v := []vector{{"A", k.A.Points}, {"B1", k.B1.Points}, {"B2", k.B2.Points}, {"L", k.L.Points}, {"H", k.H}}
	for i, c := range k.Commitments {
		v = append(v, vector{fmt.Sprintf("basis of commitment %d", i), c.Basis},
			vector{fmt.Sprintf("σ·basis of commitment %d", i), c.BasisExpSigma})
	}
	return v
}

func (k *ProvingKey) checkSizes() error {
	if err := CheckDomain(k.Curve, k.Domain); err != nil {
		return err
	}
	n := k.Domain.Size()
	switch {
	case k.Basis != curve.Monomial && k.Basis != curve.Coset:
		return fmt.Errorf("%v", k.Basis)
	case k.NbPublic < 0 || k.NbWires < k.NbPublic+1:
		return fmt.Errorf("%d wires cannot hold 1 and %d public inputs", k.NbWires, k.NbPublic)
	case k.NbConstraints < 0 || k.NbConstraints > n:
		return fmt.Errorf("%d constraints on a domain of %d", k.NbConstraints, n)
	case k.H.Len() != n && (k.Basis != curve.Monomial || k.H.Len() != n-1):
		return fmt.Errorf("query H has %d points for a domain of %d", k.H.Len(), n)
	case k.Folded && k.H.Len() != n:
		return fmt.Errorf("query H has %d points, a folded key on a domain of %d needs as many", k.H.Len(), n)
	}
	for _, v := range k.vectors() {
		g := curve.InG1
		if v.name == "B2" {
			g = curve.InG2
		}
		size := k.Curve.PointBytes(g)
		if v.points.Curve != k.Curve || v.points.Group != g || len(v.points.Data)%size != 0 {
			return fmt.Errorf("%s is not a vector of points of %v in %v", v.name, k.Curve, g)
		}
	}
	for _, e := range []struct {
		name string
		q    curve.Query
	}{{"A", k.A}, {"B1", k.B1}, {"B2", k.B2}, {"L", k.L}} {
		if err := checkQuery(e.q, k.NbWires); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	for i, c := range k.Commitments {
		if c.Basis.Len() != c.BasisExpSigma.Len() {
			return fmt.Errorf("commitment %d has %d and %d points", i, c.Basis.Len(), c.BasisExpSigma.Len())
		}
		if int64(c.Wire) >= int64(k.NbWires) {
			return fmt.Errorf("commitment %d is on wire %d of %d", i, c.Wire, k.NbWires)
		}
		if err := checkQuery(curve.Query{Points: c.Basis, Wires: append([]uint32{}, c.Wires...)}, k.NbWires); err != nil {
			return fmt.Errorf("commitment %d: %w", i, err)
		}
	}
	return nil
}

func checkQuery(q curve.Query, wires int) error {
	n := q.Len()
	if q.Wires == nil {
		if int64(q.First)+int64(n) > int64(wires) {
			return fmt.Errorf("points for wires %d to %d of %d", q.First, int64(q.First)+int64(n)-1, wires)
		}
		return nil
	}
	if len(q.Wires) != n {
		return fmt.Errorf("%d wires for %d points", len(q.Wires), n)
	}
	for j, w := range q.Wires {
		if int64(w) >= int64(wires) {
			return fmt.Errorf("point %d is for wire %d of %d", j, w, wires)
		}
		if j > 0 && w <= q.Wires[j-1] {
			return fmt.Errorf("the wires of points %d and %d do not ascend", j-1, j)
		}
	}
	return nil
}
