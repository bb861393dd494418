package groth16

import (
	"fmt"
	"math/bits"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// wires computes what L takes of every wire, and hands the rest where it
// belongs: public inputs and commitments to the verifying key's IC, wires
// committed to to the Pedersen keys.
func (s *setup) wires(a, b, c []curve.Scalar) ([]curve.Scalar, error) {
	f, w := s.f, s.w
	k, err := s.temp(s.r.Wires)
	if err != nil {
		return nil, err
	}
	for i := range k {
		k[i] = f.Add(f.Add(f.Mul(w.beta, a[i]), f.Mul(w.alpha, b[i])), c[i])
	}
	if err := s.verifying(k); err != nil {
		return nil, err
	}
	if err := s.pedersen(k); err != nil {
		return nil, err
	}
	for i := range k {
		k[i] = f.Mul(k[i], w.deltaInv)
	}
	if s.opts.Folded {
		w.z = f.Mul(f.Mul(s.zTau(), w.deltaInv), f.Inverse(s.zShift()))
		for i := range k {
			k[i] = f.Sub(k[i], f.Mul(c[i], w.z))
		}
	}
	return k, s.ctx.Err()
}

// zTau is Z(τ).
func (s *setup) zTau() curve.Scalar {
	return s.f.Sub(pow(s.f, s.w.tau, uint64(s.n)), s.f.One())
}

// zShift is gⁿ − 1, the value of Z on the coset.
func (s *setup) zShift() curve.Scalar {
	return s.f.Sub(pow(s.f, s.d.Shift, uint64(s.n)), s.f.One())
}

// verifying makes IC of k and takes its wires out of k.
func (s *setup) verifying(k []curve.Scalar) error {
	r := s.r
	scalars, err := s.temp(r.Public + 1 + len(r.Commitments))
	if err != nil {
		return err
	}
	take := func(at int, wire uint32) {
		scalars[at] = s.f.Mul(k[wire], s.w.gammaInv)
		k[wire] = curve.Scalar{}
	}
	for i := range r.Public + 1 {
		take(i, uint32(i))
	}
	for i, c := range r.Commitments {
		take(r.Public+1+i, c.Wire)
		s.vk.Committed = append(s.vk.Committed, append([]int{}, c.Covered...))
	}
	points, err := s.points(scalars, curve.InG1, alloc.Point)
	if err != nil {
		return fmt.Errorf("IC: %w", err)
	}
	defer points.buf.Release()
	size := r.ID.G1Bytes()
	s.vk.IC = make([]curve.G1, len(scalars))
	for i := range s.vk.IC {
		copy(curve.Bytes(s.vk.IC[i:i+1]), points.Data[i*size:(i+1)*size])
	}
	return nil
}

// pedersen makes the keys of the commitments and takes their wires out of k.
func (s *setup) pedersen(k []curve.Scalar) error {
	if len(s.r.Commitments) == 0 {
		return nil
	}
	_, g2 := s.f.Generators()
	var err error
	if s.w.base, err = s.f.Random(s.opts.Rand); err != nil {
		return err
	}
	g := s.f.TimesG2(g2, s.w.base) // of which nobody knows the logarithm
	for i, c := range s.r.Commitments {
		if s.w.sigma, err = s.f.Random(s.opts.Rand); err != nil {
			return err
		}
		n := len(c.Private)
		scalars, err := s.temp(2 * n)
		if err != nil {
			return err
		}
		for j, wire := range c.Private {
			scalars[j] = s.f.Mul(k[wire], s.w.gammaInv)
			scalars[n+j] = s.f.Mul(scalars[j], s.w.sigma)
			k[wire] = curve.Scalar{}
		}
		points, err := s.points(scalars, curve.InG1, alloc.Key)
		if err != nil {
			return fmt.Errorf("key of commitment %d: %w", i, err)
		}
		s.key.own(points.buf)
		s.key.Commitments = append(s.key.Commitments, CommitmentKey{
			Wire: c.Wire, Wires: append([]uint32{}, c.Private...),
			Basis: points.Slice(0, n), BasisExpSigma: points.Slice(n, 2*n),
		})
		s.vk.Commitments = append(s.vk.Commitments, CommitmentVerifyingKey{
			G: g, GSigmaNeg: s.f.TimesG2(g, s.f.Sub(curve.Scalar{}, s.w.sigma)),
		})
	}
	return nil
}

// ownedPoints are points with the buffer that holds them.
type ownedPoints struct {
	curve.Points
	buf *alloc.Buffer[byte]
}

// points computes multiples of the generator of g in a buffer of their own.
func (s *setup) points(scalars []curve.Scalar, g curve.Group, p alloc.Purpose) (ownedPoints, error) {
	out, err := newPoints(s.sc, s.r.ID, g, len(scalars), p)
	if err != nil {
		return ownedPoints{}, err
	}
	base := s.base1
	if g == curve.InG2 {
		base = s.base2
	}
	if err := base.Mul(s.ctx, scalars, out.Points, s.step); err != nil {
		out.buf.Release()
		return ownedPoints{}, err
	}
	return out, nil
}

// newPoints makes room for n points.
func newPoints(sc *alloc.Scope, id curve.ID, g curve.Group, n int, p alloc.Purpose) (ownedPoints, error) {
	buf, err := alloc.Make[byte](sc, n*id.PointBytes(g), p, alloc.Dirty)
	if err != nil {
		return ownedPoints{}, err
	}
	return ownedPoints{curve.Points{Curve: id, Group: g, Data: buf.Slice()}, buf}, nil
}

// step reports progress. Points that are not counted in the total (IC, Pedersen
// keys, made before it is known) are not reported.
func (s *setup) step(n int) {
	if s.opts.Progress != nil && s.total > 0 {
		s.opts.Progress(int(s.done.Add(int64(n))), s.total)
	}
}

// query computes the points of the wires whose scalar is not zero; the others
// would be at infinity.
func (s *setup) query(v []curve.Scalar, g curve.Group) (curve.Query, error) {
	n := count(v)
	picked, err := alloc.Make[curve.Scalar](s.sc, n, alloc.Scratch, alloc.Secret|alloc.Dirty)
	if err != nil {
		return curve.Query{}, err
	}
	defer picked.Release()
	wires, err := alloc.Make[uint32](s.sc, n, alloc.Key, alloc.Dirty)
	if err != nil {
		return curve.Query{}, err
	}
	p, ws := picked.Slice(), wires.Slice()
	j := 0
	for i := range v {
		if !v[i].IsZero() {
			p[j], ws[j] = v[i], uint32(i)
			j++
		}
	}
	points, err := s.points(p, g, alloc.Key)
	if err != nil {
		wires.Release()
		return curve.Query{}, err
	}
	s.key.own(points.buf)
	return s.key.query(points.Points, wires), nil
}

// quotient computes H.
func (s *setup) quotient() error {
	f, w := s.f, s.w
	scalars, err := s.temp(s.n)
	if err != nil {
		return err
	}
	if s.opts.Basis == curve.Coset {
		// ℓ'_j(τ) on g⟨ω⟩ is ℓ_j(τ/g) on ⟨ω⟩.
		w.factor = f.Mul(f.Mul(s.zTau(), w.deltaInv), f.Inverse(s.zShift()))
		w.x = f.Mul(w.tau, f.Inverse(s.d.Shift))
		if pow(f, w.x, uint64(s.n)) == f.One() {
			return fmt.Errorf("the random source gave a point of the coset for τ")
		}
		if err := s.lagrangeAt(scalars); err != nil {
			return err
		}
	} else {
		w.power = f.Mul(s.zTau(), w.deltaInv)
		for k := range scalars {
			scalars[bits.Reverse64(uint64(k))>>(64-s.d.Log)] = w.power
			w.power = f.Mul(w.power, w.tau)
		}
		if !s.opts.Folded {
			// deg h ≤ n − 2, so gnark leaves the last one out. In a folded key
			// it counts: a·b alone reaches degree n − 1 on the coset.
			scalars = scalars[:s.n-1]
		}
	}
	points, err := s.points(scalars, curve.InG1, alloc.Key)
	if err != nil {
		return err
	}
	s.key.own(points.buf)
	s.key.H = points.Points
	return nil
}
