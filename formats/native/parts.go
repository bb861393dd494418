package native

import (
	"encoding/binary"
	"fmt"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// key reads the proving key.
func (p *parser) key() *groth16.ProvingKey {
	k := &groth16.ProvingKey{
		Curve: p.id, Basis: curve.Basis(p.head.basis), Folded: p.flags&flagFolded != 0,
		NbConstraints: int(p.count[0]), NbWires: int(p.count[1]), NbPublic: int(p.count[2]),
	}
	k.Domain.Log = int(p.head.log)
	for i := range 4 {
		k.Domain.Generator[i] = binary.LittleEndian.Uint64(p.data[64+8*i:])
		k.Domain.Shift[i] = binary.LittleEndian.Uint64(p.data[96+8*i:])
	}
	g1, g2 := p.singles(kindSingles, 0, 3, 2)
	k.Alpha1, k.Beta1, k.Delta1, k.Beta2, k.Delta2 = g1[0], g1[1], g1[2], g2[0], g2[1]
	k.A = p.query(kindA, kindAWires, curve.InG1)
	k.B1 = p.query(kindB1, kindB1Wires, curve.InG1)
	k.B2 = p.query(kindB2, kindB2Wires, curve.InG2)
	k.L = p.query(kindL, kindLWires, curve.InG1)
	_, k.H = p.vector(kindH, 0, curve.InG1)
	for i := 0; p.has(kindBasis, i); i++ {
		var c groth16.CommitmentKey
		var e entry
		e, c.Basis = p.vector(kindBasis, i, curve.InG1)
		c.Wire = e.first
		_, c.BasisExpSigma = p.vector(kindSigma, i, curve.InG1)
		we, b := p.need(kindComWires, i)
		c.Wires = view[uint32](p, we, b)
		k.Commitments = append(k.Commitments, c)
	}
	return k
}

func (p *parser) has(k kind, index int) bool {
	_, ok := p.table[entryID{k, uint32(index)}]
	return ok
}

// verifyingKey reads the verifying key if there is one.
func (p *parser) verifyingKey() *groth16.VerifyingKey {
	if !p.has(kindVK, 0) {
		return nil
	}
	vk := &groth16.VerifyingKey{Curve: p.id}
	g1, g2 := p.singles(kindVK, 0, 3, 3)
	vk.Alpha1, vk.Beta1, vk.Delta1 = g1[0], g1[1], g1[2]
	vk.Beta2, vk.Gamma2, vk.Delta2 = g2[0], g2[1], g2[2]
	e, b := p.need(kindIC, 0)
	size := p.id.G1Bytes()
	if len(b)%size != 0 {
		p.fail(e.section(), int64(e.offset), fmt.Errorf("%d bytes are no whole number of points", len(b)))
	}
	vk.IC = make([]curve.G1, len(b)/size)
	for i := range vk.IC {
		copy(curve.Bytes(vk.IC[i][:]), b[i*size:(i+1)*size])
	}
	for i := 0; p.has(kindComVK, i); i++ {
		_, g2 := p.singles(kindComVK, i, 0, 2)
		vk.Commitments = append(vk.Commitments, groth16.CommitmentVerifyingKey{G: g2[0], GSigmaNeg: g2[1]})
		vk.Committed = append(vk.Committed, p.covered(kindCovered, i))
	}
	return vk
}

// covered reads a list of inputs.
func (p *parser) covered(k kind, index int) []int {
	e, b := p.need(k, index)
	v := view[uint64](p, e, b)
	out := make([]int, len(v))
	for i, x := range v {
		if x > p.count[1] {
			p.fail(e.section(), int64(e.offset)+8*int64(i), fmt.Errorf("input %d of %d wires", x, p.count[1]))
			break
		}
		out[i] = int(x)
	}
	return out
}

// circuit reads the circuit's matrices if there are any.
func (p *parser) circuit() *groth16.R1CS {
	if p.flags&flagCircuit == 0 {
		return nil
	}
	r := &groth16.R1CS{ID: p.id, Public: int(p.count[2]), Wires: int(p.count[1]), InputRows: p.flags&flagInputRows != 0}
	for i, m := range []*curve.Matrix{&r.A, &r.B, &r.C} {
		e, b := p.need(kindRows, i)
		m.Rows = view[uint32](p, e, b)
		e, b = p.need(kindTerms, i)
		m.Terms = view[curve.Term](p, e, b)
		e, b = p.need(kindCoeffs, i)
		m.Coeffs = view[curve.Scalar](p, e, b)
	}
	for i := 0; p.has(kindCommitted, i); i++ {
		e, b := p.need(kindCommitted, i)
		r.Commitments = append(r.Commitments, groth16.Commitment{
			Wire: e.first, Private: view[uint32](p, e, b), Covered: p.covered(kindCircCover, i),
		})
	}
	return r
}
