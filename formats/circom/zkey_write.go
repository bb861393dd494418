package circom

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/arith"
	"github.com/snarkline/snarkline/groth16"
)

// WriteZkey writes a proving key, its verifying key and its circuit as a .zkey
// that snarkjs proves with. The key must be in the coset basis, with the odd
// powers of a root of unity for its coset (as groth16.UnsafeSetup makes it), not
// folded, and have no commitments.
//
// If its roots of unity are not those of snarkjs, which happens on BLS12-381,
// the rows and the points of H are renumbered: both roots generate the same
// domain, in different orders. The rows of the public wires then no longer
// come last.
//
// The section of contributions is left out, so that the key cannot be taken for
// one of a ceremony: snarkjs proves with it and exports its verification key,
// but refuses to verify it or to contribute to it.
func WriteZkey(w io.Writer, key *groth16.ProvingKey, vk *groth16.VerifyingKey, r *groth16.R1CS) error {
	if err := writeZkey(w, key, vk, r); err != nil {
		return fmt.Errorf("write .zkey: %w", err)
	}
	return nil
}

func writeZkey(w io.Writer, key *groth16.ProvingKey, vk *groth16.VerifyingKey, r *groth16.R1CS) error {
	if err := exportable(key, vk, r); err != nil {
		return err
	}
	field, err := arith.FieldOf(key.Curve)
	if err != nil {
		return err
	}
	order, err := orderOf(field, key.Domain)
	if err != nil {
		return err
	}
	id := key.Curve
	g1, g2 := uint64(id.G1Bytes()), uint64(id.G2Bytes())
	c := newContainerWriter(w, KindZkey, 1, 9)
	c.section(zkeyProtocol, 4)
	c.u32(protocolGroth16)
	c.section(zkeyHeader, uint64(20+id.FieldBytes()+curve.ScalarBytes)+3*g1+3*g2)
	c.prime(fieldModulus(id))
	c.prime(scalarModulus(id))
	c.u32(uint32(key.NbWires))
	c.u32(uint32(key.NbPublic))
	c.u32(uint32(key.Domain.Size()))
	c.bytes(curve.Bytes(key.Alpha1[:])[:g1])
	c.bytes(curve.Bytes(key.Beta1[:])[:g1])
	c.bytes(curve.Bytes(key.Beta2[:])[:g2])
	c.bytes(curve.Bytes(vk.Gamma2[:])[:g2])
	c.bytes(curve.Bytes(key.Delta1[:])[:g1])
	c.bytes(curve.Bytes(key.Delta2[:])[:g2])
	c.section(zkeyIC, uint64(len(vk.IC))*g1)
	for i := range vk.IC {
		c.bytes(curve.Bytes(vk.IC[i][:])[:g1])
	}
	if err := writeCoefficients(c, field, order, r); err != nil {
		return err
	}
	for _, e := range []struct {
		id    uint32
		q     curve.Query
		first int
	}{{zkeyA, key.A, 0}, {zkeyB1, key.B1, 0}, {zkeyB2, key.B2, 0}, {zkeyC, key.L, key.NbPublic + 1}} {
		c.query(e.id, e.q, e.first, key.NbWires)
	}
	c.section(zkeyH, uint64(key.Domain.Size())*g1)
	for j := range key.Domain.Size() {
		i := order.point(j)
		c.bytes(key.H.Data[g1*uint64(i) : g1*uint64(i+1)])
	}
	return c.close()
}

// order renumbers a domain from the powers of the root ω' = ω^k to those of ω,
// where ω is snarkjs' root of order 2n.
type order struct {
	n          uint64
	k, inverse uint64 // odd, modulo 2n
}

func orderOf(f *arith.Field, d curve.Domain) (order, error) {
	shift := f.ToBig(d.Shift)
	if f.FromBig(shift.Mul(shift, shift)) != d.Generator {
		return order{}, errors.New("the domain's generator is not the square of its shift")
	}
	k, err := arith.RootLog(f.Curve(), d.Log, d.Shift)
	if err != nil {
		return order{}, fmt.Errorf("the domain's shift is %w", err)
	}
	// Newton's iteration for the inverse modulo 2^64: each step doubles the
	// bits that are right, from the 3 that any odd number starts with.
	inverse := k
	for range 5 {
		inverse *= 2 - k*inverse
	}
	return order{n: uint64(d.Size()), k: k, inverse: inverse}, nil
}

// row is where row i, at ω'^(2i) = ω^(2ki), lies for snarkjs.
func (o order) row(i int) int { return int(o.k * uint64(i) % o.n) }

// point is which point of H, the one at ω'^(2i+1) = ω^(2j+1), is snarkjs' j-th.
func (o order) point(j int) int { return int(o.inverse * uint64(2*j+1) % (2 * o.n) / 2) }

// query writes the points of the wires from first to the last, at infinity
// those that q leaves out.
func (c *containerWriter) query(id uint32, q curve.Query, first, wires int) {
	size := q.Points.Curve.PointBytes(q.Points.Group)
	c.section(id, uint64(wires-first)*uint64(size))
	infinity := make([]byte, size)
	at := first
	for j := range q.Len() {
		wire := int(q.Wire(j))
		if wire < at || wire >= wires {
			if c.err == nil {
				c.err = fmt.Errorf("point %d is of wire %d, out of order or of range", j, wire)
			}
			return
		}
		for ; at < wire; at++ {
			c.bytes(infinity)
		}
		c.bytes(q.Points.Data[size*j : size*(j+1)])
		at++
	}
	for ; at < wires; at++ {
		c.bytes(infinity)
	}
}

// writeCoefficients writes A and B, each coefficient as v·R², row by row.
func writeCoefficients(c *containerWriter, field *arith.Field, o order, r *groth16.R1CS) error {
	rows := max(r.A.NumRows(), r.B.NumRows(), r.C.NumRows())
	n := uint64(len(r.A.Terms)) + uint64(len(r.B.Terms))
	if r.InputRows {
		n += uint64(r.Public) + 1
	}
	if n > math.MaxUint32 {
		return fmt.Errorf("%d coefficients do not fit its counts", n)
	}
	c.section(zkeyCoeffs, 4+n*coefficient)
	c.u32(uint32(n))
	put := func(matrix, row int, wire uint32, v curve.Scalar) {
		c.u32(uint32(matrix))
		c.u32(uint32(o.row(row)))
		c.u32(wire)
		twice := [1]curve.Scalar{v}
		field.ToMontgomery(twice[:])
		c.bytes(curve.Bytes(twice[0][:]))
	}
	for row := range rows {
		for i, m := range []curve.Matrix{r.A, r.B} {
			for _, t := range rowOf(m, row) {
				put(i, row, t.Wire, m.Coeffs[t.Coeff])
			}
		}
	}
	if r.InputRows {
		for wire := range r.Public + 1 {
			put(0, rows+wire, uint32(wire), field.One())
		}
	}
	return nil
}

// exportable checks that a .zkey can hold the key and that the three belong together.
func exportable(key *groth16.ProvingKey, vk *groth16.VerifyingKey, r *groth16.R1CS) error {
	if key == nil || vk == nil || r == nil {
		return errors.New("a proving key, a verifying key and a circuit are needed")
	}
	if err := r.Validate(); err != nil {
		return err
	}
	switch {
	case key.Basis != curve.Coset:
		return fmt.Errorf("the key is in the %v basis, a .zkey is in the coset basis", key.Basis)
	case key.Folded:
		return errors.New("the key is folded, which snarkjs does not know")
	case len(key.Commitments) > 0 || len(vk.Commitments) > 0:
		return errors.New("the key has commitments, which snarkjs does not know")
	case vk.Curve != key.Curve || r.ID != key.Curve:
		return &CurveError{Got: vk.Curve, Want: key.Curve}
	case len(vk.IC) != key.NbPublic+1 || r.Public != key.NbPublic || r.Wires != key.NbWires || r.NbConstraints() != key.NbConstraints:
		return fmt.Errorf("the key is of %d constraints, %d wires, %d public, the circuit of %d, %d, %d, the verifying key has %d points",
			key.NbConstraints, key.NbWires, key.NbPublic, r.NbConstraints(), r.Wires, r.Public, len(vk.IC))
	case int64(key.NbWires) > math.MaxUint32:
		return fmt.Errorf("%d wires do not fit its counts", key.NbWires)
	case key.H.Len() != key.Domain.Size() || key.NbConstraints > key.Domain.Size():
		return fmt.Errorf("%d points of H and %d constraints for a domain of %d", key.H.Len(), key.NbConstraints, key.Domain.Size())
	}
	return nil
}

// SnarkjsDomain is the domain of 2^log points, with its coset, that snarkjs'
// keys are over. A set-up that is given it makes keys that WriteZkey need not
// renumber.
func SnarkjsDomain(id curve.ID, log int) (curve.Domain, error) { return arith.SnarkjsDomain(id, log) }
