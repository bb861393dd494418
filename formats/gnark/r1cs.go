package gnark

import (
	"fmt"
	"math"

	"github.com/consensys/gnark/constraint"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// R1CSFromGnark reads the matrices out of a compiled circuit, for set-up and
// for folding keys. They lie on Go's heap. Only the circuit itself can compute
// wires from inputs: see NewCircuit.
func R1CSFromGnark(ccs constraint.ConstraintSystem) (r *groth16.R1CS, err error) {
	defer recovered(&err, "matrices of a gnark circuit")
	sys, err := systemOf(ccs)
	if err != nil {
		return nil, fmt.Errorf("matrices of a gnark circuit: %w", err)
	}
	generic, ok := ccs.(constraint.R1CS[constraint.U64])
	if !ok {
		return nil, fmt.Errorf("matrices of a gnark circuit: a %T is no R1CS", ccs)
	}
	r = &groth16.R1CS{
		ID: sys.curve, Public: sys.GetNbPublicVariables() - 1, Wires: sys.wires(),
		Commitments: sys.commitments(),
	}
	ms := []*curve.Matrix{&r.A, &r.B, &r.C}
	for _, m := range ms {
		m.Coeffs = sys.coeffs
		m.Rows = make([]uint32, 1, sys.NbConstraints+1)
	}
	it := generic.GetR1CIterator()
	for c := it.Next(); c != nil; c = it.Next() {
		for k, l := range []constraint.LinearExpression{c.L, c.R, c.O} {
			m := ms[k]
			for _, t := range l {
				if t.CoeffID() == constraint.CoeffIdZero {
					continue
				}
				wire := t.VID
				if t.IsConstant() {
					wire = 0
				}
				m.Terms = append(m.Terms, curve.Term{Wire: wire, Coeff: t.CID})
			}
			if len(m.Terms) > math.MaxUint32 {
				return nil, fmt.Errorf("matrices of a gnark circuit: more than 2^32 terms")
			}
			m.Rows = append(m.Rows, uint32(len(m.Terms)))
		}
	}
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("matrices of a gnark circuit: %w", err)
	}
	return r, nil
}
