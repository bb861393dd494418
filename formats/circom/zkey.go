package circom

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/snarkline/snarkline/curve"
)

// Sections of a Groth16 .zkey.
const (
	zkeyProtocol = 1
	zkeyHeader   = 2
	zkeyIC       = 3
	zkeyCoeffs   = 4
	zkeyA        = 5
	zkeyB1       = 6
	zkeyB2       = 7
	zkeyC        = 8
	zkeyH        = 9
)

// Protocol numbers in section 1.
const (
	protocolGroth16 = 1
	protocolPlonk   = 2
	protocolFflonk  = 10
)

// coefficient is the size of an entry of section 4: matrix, constraint,
// signal, value.
const coefficient = 12 + curve.ScalarBytes

// ZkeyHeader is what a .zkey says of its circuit.
type ZkeyHeader struct {
	Curve        curve.ID
	Wires        int // the leading 1 included
	Public       int // outputs and public inputs
	DomainLog    int
	Coefficients int // entries of the matrices A and B
}

// fixed are the points of the header section.
type fixed struct {
	alpha1, beta1, delta1 curve.Points
	beta2, gamma2, delta2 curve.Points
}

// Zkey is an open .zkey: its header and the length of each section have been
// checked. A proving key, a verifying key and a circuit can be taken of it.
// Close gives the mapping back, but for what the keys taken of it still use.
type Zkey struct {
	ZkeyHeader
	c      *Container
	header Section
	points fixed
}

// OpenZkey maps a .zkey and checks its header.
func OpenZkey(path string) (*Zkey, error) {
	c, err := Open(path)
	if err != nil {
		return nil, err
	}
	z, err := c.Zkey()
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return z, nil
}

// Zkey sees the container as a Groth16 .zkey and checks its header. The result
// owns the container.
func (c *Container) Zkey() (*Zkey, error) {
	if err := c.expect(KindZkey, 1); err != nil {
		return nil, err
	}
	p, err := c.need(zkeyProtocol)
	if err != nil {
		return nil, err
	}
	r := c.cursor(p)
	switch protocol := r.u32(); {
	case r.err != nil:
		return nil, r.err
	case protocol == protocolPlonk:
		return nil, r.fail(4, "%w: a PLONK key", ErrProtocol)
	case protocol == protocolFflonk:
		return nil, r.fail(4, "%w: a FFLONK key", ErrProtocol)
	case protocol != protocolGroth16:
		return nil, r.fail(4, "%w: protocol %d", ErrProtocol, protocol)
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	z := &Zkey{c: c}
	if err := z.readHeader(); err != nil {
		return nil, err
	}
	if err := z.checkLengths(); err != nil {
		return nil, err
	}
	return z, nil
}

func (z *Zkey) readHeader() (err error) {
	c := z.c
	if z.header, err = c.need(zkeyHeader); err != nil {
		return err
	}
	r := c.cursor(z.header)
	id, err := r.prime("base field", fieldModulus)
	if err != nil {
		return err
	}
	scalars, err := r.prime("scalar field", scalarModulus)
	if err != nil {
		return err
	}
	if scalars != id {
		return r.fail(curve.ScalarBytes, "the base field is of %v, the scalar field of %v", id, scalars)
	}
	wires, public, domain := r.u32(), r.u32(), r.u32()
	z.Curve, z.Wires, z.Public = id, int(wires), int(public)
	g1 := func() curve.Points {
		return curve.Points{Curve: id, Group: curve.InG1, Data: r.take(int64(id.G1Bytes()))}
	}
	g2 := func() curve.Points {
		return curve.Points{Curve: id, Group: curve.InG2, Data: r.take(int64(id.G2Bytes()))}
	}
	f := &z.points
	f.alpha1, f.beta1, f.beta2, f.gamma2, f.delta1, f.delta2 = g1(), g1(), g2(), g2(), g1(), g2()
	if err := r.end(); err != nil {
		return err
	}
	counts := z.header.Offset + int64(8+id.FieldBytes()+curve.ScalarBytes)
	if uint64(wires) < uint64(public)+1 {
		return c.in(z.header, counts, fmt.Errorf("%d wires cannot hold 1 and %d public ones", wires, public))
	}
	z.DomainLog = bits.Len32(domain) - 1
	if domain == 0 || domain != 1<<z.DomainLog {
		return c.in(z.header, counts+8, fmt.Errorf("a domain of %d points is not a power of two", domain))
	}
	if z.DomainLog >= id.TwoAdicity() {
		return c.in(z.header, counts+8, fmt.Errorf("a domain of 2^%d points with its odd coset does not exist on %v", z.DomainLog, id))
	}
	if uint64(domain) < uint64(public)+1 {
		return c.in(z.header, counts+4, fmt.Errorf("a domain of %d points cannot hold the rows of %d public wires", domain, public))
	}
	return nil
}

// checkLengths checks that each section is as long as the header's counts say.
func (z *Zkey) checkLengths() error {
	g1, g2 := int64(z.Curve.G1Bytes()), int64(z.Curve.G2Bytes())
	for _, e := range []struct {
		id    uint32
		count int
		size  int64
	}{
		{zkeyIC, z.Public + 1, g1},
		{zkeyA, z.Wires, g1},
		{zkeyB1, z.Wires, g1},
		{zkeyB2, z.Wires, g2},
		{zkeyC, z.Wires - z.Public - 1, g1},
		{zkeyH, 1 << z.DomainLog, g1},
	} {
		s, err := z.c.need(e.id)
		if err != nil {
			return err
		}
		if s.Length != int64(e.count)*e.size {
			return z.c.in(s, s.Offset, fmt.Errorf("%d bytes are not %d points of %d", s.Length, e.count, e.size))
		}
	}
	s, err := z.c.need(zkeyCoeffs)
	if err != nil {
		return err
	}
	r := z.c.cursor(s)
	n := r.u32()
	if r.err != nil {
		return r.err
	}
	if s.Length-4 != int64(n)*coefficient {
		return z.c.in(s, s.Offset, fmt.Errorf("%d bytes are not %d coefficients of %d", s.Length-4, n, coefficient))
	}
	z.Coefficients = int(n)
	return nil
}

// Close ends this handle's hold on the mapping.
func (z *Zkey) Close() error {
	return z.c.Close()
}
