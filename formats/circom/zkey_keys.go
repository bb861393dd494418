package circom

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/arith"
	"github.com/snarkline/snarkline/groth16"
)

// KeyOptions says how the points of a key are checked.
type KeyOptions struct {
	// SkipSubgroup leaves out the check that the points are in the subgroup of
	// order r, for a key that was vetted before. That they are on the curve is
	// checked always.
	SkipSubgroup bool
	// Progress, if set, is told how many points of how many are checked. It may
	// be called from several goroutines at once.
	Progress func(done, total int)
}

// ProvingKey is the file's proving key. Its points are not copied: they are
// viewed in the mapped file, which stays mapped until the key is closed, even
// if z is closed before.
//
// The key is in the coset basis over snarkjs' roots of unity, and not folded.
// Memory is drawn from ctx's scope only for sections that do not lie at a
// multiple of 4 bytes, which snarkjs never writes.
func (z *Zkey) ProvingKey(ctx context.Context, o KeyOptions) (*groth16.ProvingKey, error) {
	rows, err := z.rows(ctx)
	if err != nil {
		return nil, err
	}
	domain, err := arith.SnarkjsDomain(z.Curve, z.DomainLog)
	if err != nil {
		return nil, z.c.in(z.header, -1, err)
	}
	key := &groth16.ProvingKey{
		Curve: z.Curve, Domain: domain, Basis: curve.Coset,
		NbConstraints: rows, NbWires: z.Wires, NbPublic: z.Public,
	}
	if z.c.mapping != nil {
		m := z.c.mapping
		m.Retain()
		key.OnClose(func() error { m.Release(); return nil })
		// A section that was copied is not of the mapping and stays; so does what
		// cannot be given back. Neither is a reason to fail.
		key.OnRest(func(p curve.Points) { _ = m.Rest(p.Data) })
	}
	if err := z.fill(ctx, key, o); err != nil {
		return nil, errors.Join(err, key.Close())
	}
	return key, nil
}

func (z *Zkey) fill(ctx context.Context, key *groth16.ProvingKey, o KeyOptions) error {
	var all group
	z.addFixed(&all)
	var err error
	view := func(id uint32, g curve.Group) (p curve.Points) {
		if err != nil {
			return p
		}
		var s Section
		if p, s, err = z.section(ctx, id, g, key.OnClose); err == nil {
			all.add(p, s)
		}
		return p
	}
	key.A.Points = view(zkeyA, curve.InG1)
	key.B1.Points = view(zkeyB1, curve.InG1)
	key.B2.Points = view(zkeyB2, curve.InG2)
	key.L.Points = view(zkeyC, curve.InG1)
	key.L.First = uint32(z.Public + 1)
	key.H = view(zkeyH, curve.InG1)
	if err != nil {
		return err
	}
	if err := z.check(ctx, &all, o, key.Rest); err != nil {
		return err
	}
	f := &z.points
	key.Alpha1, key.Beta1, key.Delta1 = arith.Load1(f.alpha1, 0), arith.Load1(f.beta1, 0), arith.Load1(f.delta1, 0)
	key.Beta2, key.Delta2 = arith.Load2(f.beta2, 0), arith.Load2(f.delta2, 0)
	return nil
}

// VerifyingKey is the file's verifying key, with its points checked. It does
// not depend on z staying open.
func (z *Zkey) VerifyingKey(ctx context.Context, o KeyOptions) (*groth16.VerifyingKey, error) {
	var all group
	z.addFixed(&all)
	var free []func() error
	defer func() {
		for _, f := range free {
			_ = f() // only buffers are freed here, and that cannot fail
		}
	}()
	ic, s, err := z.section(ctx, zkeyIC, curve.InG1, func(f func() error) { free = append(free, f) })
	if err != nil {
		return nil, err
	}
	all.add(ic, s)
	if err := z.check(ctx, &all, o, nil); err != nil {
		return nil, err
	}
	f := &z.points
	vk := &groth16.VerifyingKey{
		Curve:  z.Curve,
		Alpha1: arith.Load1(f.alpha1, 0), Beta1: arith.Load1(f.beta1, 0), Delta1: arith.Load1(f.delta1, 0),
		Beta2: arith.Load2(f.beta2, 0), Gamma2: arith.Load2(f.gamma2, 0), Delta2: arith.Load2(f.delta2, 0),
		IC: make([]curve.G1, ic.Len()),
	}
	for i := range vk.IC {
		vk.IC[i] = arith.Load1(ic, i)
	}
	return vk, nil
}

// section is a section of points, in place where its address allows that and
// copied otherwise; release gets what frees the copy.
func (z *Zkey) section(ctx context.Context, id uint32, g curve.Group, release func(func() error)) (curve.Points, Section, error) {
	s, err := z.c.need(id)
	if err != nil {
		return curve.Points{}, s, err
	}
	b := z.c.bytes(s)
	if len(b) > 0 && uintptr(unsafe.Pointer(unsafe.SliceData(b)))%4 != 0 {
		buf, err := alloc.Make[byte](alloc.ScopeOf(ctx), len(b), alloc.Key, alloc.Dirty)
		if err != nil {
			return curve.Points{}, s, fmt.Errorf("copy an unaligned section: %w", err)
		}
		copy(buf.Slice(), b)
		release(func() error { buf.Release(); return nil })
		b = buf.Slice()
	}
	return curve.Points{Curve: z.Curve, Group: g, Data: b}, s, nil
}

// group is vectors of points to check together, with where they come from.
type group struct {
	vectors  []curve.Points
	sections []Section // Offset is that of the vector's first point
}

func (g *group) add(p curve.Points, s Section) {
	g.vectors = append(g.vectors, p)
	g.sections = append(g.sections, s)
}

// addFixed adds the header's points.
func (z *Zkey) addFixed(g *group) {
	f := &z.points
	at := z.header.Offset + int64(20+z.Curve.FieldBytes()+curve.ScalarBytes)
	for _, p := range []curve.Points{f.alpha1, f.beta1, f.beta2, f.gamma2, f.delta1, f.delta2} {
		g.add(p, Section{ID: zkeyHeader, Offset: at, Length: int64(len(p.Data))})
		at += int64(len(p.Data))
	}
}

// fixedPoints is how many vectors addFixed adds; none of them may be at infinity.
const fixedPoints = 6

func (z *Zkey) check(ctx context.Context, g *group, o KeyOptions, done func(curve.Points)) error {
	// The views of the header's points may be unaligned in an odd file.
	for i := range fixedPoints {
		g.vectors[i].Data = append([]byte(nil), g.vectors[i].Data...)
		if isZero(g.vectors[i].Data) {
			s := g.sections[i]
			return z.c.in(s, s.Offset, arith.ErrInfinity)
		}
	}
	err := arith.Check(ctx, g.vectors, arith.CheckOptions{SkipSubgroup: o.SkipSubgroup, Progress: o.Progress, Done: done})
	if bad := (*arith.PointError)(nil); errors.As(err, &bad) {
		s, v := g.sections[bad.Vector], g.vectors[bad.Vector]
		return z.c.in(s, s.Offset+int64(bad.Index)*int64(z.Curve.PointBytes(v.Group)), bad)
	}
	return err
}

func isZero(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}
