package gnark

import (
	"context"
	"errors"
	"fmt"

	gnark "github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/constraint"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark/internal/parts"
	"github.com/snarkline/snarkline/formats/internal/spill"
	"github.com/snarkline/snarkline/groth16"
)

// FromGnarkProvingKey copies a key of gnark's into buffers of the scope of ctx,
// which the key's Close releases. ccs is the key's circuit; it may be nil if the
// circuit makes no commitments.
func FromGnarkProvingKey(ctx context.Context, pk gnark.ProvingKey, ccs constraint.ConstraintSystem) (*groth16.ProvingKey, error) {
	const doing = "convert a gnark proving key"
	for _, id := range curve.All() {
		f, err := backendOf(id)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", doing, err)
		}
		view, ok := f.FromGnark(pk)
		if !ok {
			continue
		}
		b := newBuilder(ctx)
		for _, v := range view.Vectors() {
			to, err := b.points(id, v.Group, v.Len())
			if err != nil {
				b.close()
				return nil, fmt.Errorf("%s: %w", doing, err)
			}
			copy(to.Data, v.Data)
			*v = to
		}
		key, err := b.build(view, ccs)
		if err != nil {
			b.close()
			return nil, fmt.Errorf("%s: %w", doing, err)
		}
		return key, nil
	}
	return nil, fmt.Errorf("%s: %w: %T", doing, ErrCurve, pk)
}

// builder gathers the buffers and mappings of a key in the making.
type builder struct {
	sc    *alloc.Scope
	refs  []alloc.Ref
	file  *spill.File // for the vectors; nil: they go to buffers
	least int64       // bytes of a vector that is worth a mapping
	maps  []*alloc.Mapping
}

func newBuilder(ctx context.Context) *builder { return &builder{sc: alloc.ScopeOf(ctx)} }

func (b *builder) close() {
	for _, r := range b.refs {
		r.Release()
	}
	b.refs, b.maps = nil, nil
}

func (b *builder) points(id curve.ID, g curve.Group, n int) (curve.Points, error) {
	buf, err := alloc.Make[byte](b.sc, n*id.PointBytes(g), alloc.Key, alloc.Dirty)
	if err != nil {
		return curve.Points{}, err
	}
	b.refs = append(b.refs, buf)
	return curve.Points{Curve: id, Group: g, Data: buf.Slice()}, nil
}

// wires lists, in a buffer of the key's, the wires of [0, n) that skip leaves
// in; nil when they follow one another, with the first.
func (b *builder) wires(n int, skip func(int) bool) ([]uint32, uint32, error) {
	count, first, last := 0, 0, 0
	for i := range n {
		if !skip(i) {
			if count == 0 {
				first = i
			}
			last = i
			count++
		}
	}
	if count == 0 || last-first == count-1 {
		return nil, uint32(first), nil
	}
	buf, err := alloc.Make[uint32](b.sc, count, alloc.Key, alloc.Dirty)
	if err != nil {
		return nil, 0, err
	}
	b.refs = append(b.refs, buf)
	out := buf.Slice()[:0]
	for i := range n {
		if !skip(i) {
			out = append(out, uint32(i))
		}
	}
	return out, 0, nil
}

// build makes the key of parts whose vectors lie in the builder's buffers.
func (b *builder) build(k *parts.Key, ccs constraint.ConstraintSystem) (*groth16.ProvingKey, error) {
	if len(k.InfinityA) != len(k.InfinityB) {
		return nil, fmt.Errorf("infinity flags of %d and %d wires", len(k.InfinityA), len(k.InfinityB))
	}
	out := &groth16.ProvingKey{
		Curve: k.Curve, Domain: k.Domain, Basis: curve.Monomial, NbWires: len(k.InfinityA),
		Alpha1: k.Alpha1, Beta1: k.Beta1, Delta1: k.Delta1, Beta2: k.Beta2, Delta2: k.Delta2,
		H: k.Z, Commitments: k.Commitments,
	}
	out.A.Points, out.B1.Points, out.B2.Points, out.L.Points = k.A, k.B1, k.B2, k.K

	// What is not in K is public, or goes to a commitment.
	elsewhere := make(map[int]bool)
	switch {
	case ccs != nil:
		sys, err := systemOf(ccs)
		if err != nil {
			return nil, err
		}
		if sys.curve != k.Curve || sys.wires() != out.NbWires {
			return nil, fmt.Errorf("the key is for %d wires on %v, the circuit has %d on %v", out.NbWires, k.Curve, sys.wires(), sys.curve)
		}
		out.NbConstraints, out.NbPublic = sys.NbConstraints, sys.GetNbPublicVariables()-1
		commitments := sys.commitments()
		if len(commitments) != len(k.Commitments) {
			return nil, fmt.Errorf("the key has %d commitments, the circuit %d", len(k.Commitments), len(commitments))
		}
		for i, c := range commitments {
			if len(c.Private) != k.Commitments[i].Basis.Len() {
				return nil, fmt.Errorf("commitment %d is to %d wires in the key, %d in the circuit", i, k.Commitments[i].Basis.Len(), len(c.Private))
			}
			k.Commitments[i].Wire, k.Commitments[i].Wires = c.Wire, c.Private
			elsewhere[int(c.Wire)] = true
			for _, w := range c.Private {
				elsewhere[int(w)] = true
			}
		}
	case len(k.Commitments) > 0:
		return nil, errors.New("the key makes commitments: its circuit is needed to tell which wires they take")
	default:
		out.NbPublic = out.NbWires - k.K.Len() - 1
	}
	var err error
	if out.A.Wires, out.A.First, err = b.wires(out.NbWires, func(i int) bool { return k.InfinityA[i] }); err != nil {
		return nil, err
	}
	if out.B1.Wires, out.B1.First, err = b.wires(out.NbWires, func(i int) bool { return k.InfinityB[i] }); err != nil {
		return nil, err
	}
	out.B2.Wires, out.B2.First = out.B1.Wires, out.B1.First
	if out.L.Wires, out.L.First, err = b.wires(out.NbWires, func(i int) bool { return i <= out.NbPublic || elsewhere[i] }); err != nil {
		return nil, err
	}
	if err := out.Validate(context.Background(), groth16.CheckSizes); err != nil {
		return nil, err
	}
	refs := b.refs
	if len(b.maps) > 0 {
		out.OnRest(b.rest)
	}
	b.refs = nil
	out.OnClose(func() error {
		for _, r := range refs {
			r.Release()
		}
		return nil
	})
	return out, nil
}

// ToGnarkProvingKey copies an unfolded key of the monomial basis to gnark's
// type, on Go's heap: gnark's prover takes it with the same circuit. Keys of the
// coset basis (snarkjs's and folded ones) have no counterpart there.
func ToGnarkProvingKey(key *groth16.ProvingKey) (gnark.ProvingKey, error) {
	pk, err := viewKey(key)
	if err != nil {
		return nil, fmt.Errorf("convert to a gnark proving key: %w", err)
	}
	f, err := backendOf(key.Curve)
	if err != nil {
		return nil, fmt.Errorf("convert to a gnark proving key: %w", err)
	}
	f.CopyKey(pk)
	return pk, nil
}

// viewKey is the key in gnark's type, with its vectors in place but for K, which
// in gnark's has a point for every wire.
func viewKey(key *groth16.ProvingKey) (gnark.ProvingKey, error) {
	f, err := backendOf(key.Curve)
	if err != nil {
		return nil, err
	}
	if key.Basis != curve.Monomial || key.Folded {
		return nil, fmt.Errorf("the key is of the %v basis (folded: %v), gnark's are monomial and not folded", key.Basis, key.Folded)
	}
	if err := key.Validate(context.Background(), groth16.CheckSizes); err != nil {
		return nil, err
	}
	domain, err := groth16.NewDomain(key.Curve, key.Domain.Size(), curve.Monomial)
	if err != nil {
		return nil, err
	}
	if key.Domain.Generator != domain.Generator {
		return nil, errors.New("the key's domain is not gnark's: it takes another root of unity")
	}
	n := key.Domain.Size()
	k := &parts.Key{
		Curve: key.Curve, Domain: key.Domain,
		Alpha1: key.Alpha1, Beta1: key.Beta1, Delta1: key.Delta1, Beta2: key.Beta2, Delta2: key.Delta2,
		A: key.A.Points, B1: key.B1.Points, B2: key.B2.Points, Z: key.H.Slice(0, n-1),
		Commitments: key.Commitments,
	}
	if key.B1.Len() != key.B2.Len() {
		return nil, fmt.Errorf("the key has %d points of B in G1 and %d in G2", key.B1.Len(), key.B2.Len())
	}
	for j := range key.B1.Len() {
		if key.B1.Wire(j) != key.B2.Wire(j) {
			return nil, errors.New("the key's points of B are of different wires in G1 and G2")
		}
	}
	k.InfinityA, k.InfinityB = absent(key.A, key.NbWires), absent(key.B1, key.NbWires)
	if k.K, err = expandK(key); err != nil {
		return nil, err
	}
	return f.ToGnark(k), nil
}

// absent flags the wires that q has no point for.
func absent(q curve.Query, wires int) []bool {
	out := make([]bool, wires)
	for i := range out {
		out[i] = true
	}
	for j := range q.Len() {
		out[q.Wire(j)] = false
	}
	return out
}

// expandK is L as gnark's K: a point, infinity if need be, for each private wire
// that is neither a commitment's nor committed to.
func expandK(key *groth16.ProvingKey) (curve.Points, error) {
	size := key.Curve.G1Bytes()
	skip := make(map[uint32]bool)
	for _, c := range key.Commitments {
		skip[c.Wire] = true
		for _, w := range c.Wires {
			skip[w] = true
		}
	}
	n := key.NbWires - key.NbPublic - 1 - len(skip)
	if n < 0 {
		return curve.Points{}, fmt.Errorf("%d wires in commitments, the key has %d private ones", len(skip), key.NbWires-key.NbPublic-1)
	}
	if n == key.L.Len() {
		return key.L.Points, nil
	}
	out := curve.Points{Curve: key.Curve, Group: curve.InG1, Data: make([]byte, n*size)}
	at, j := 0, 0
	for wire := uint32(key.NbPublic + 1); int(wire) < key.NbWires; wire++ {
		if skip[wire] {
			continue
		}
		if j < key.L.Len() && key.L.Wire(j) == wire {
			copy(out.Data[at*size:(at+1)*size], key.L.Points.Data[j*size:])
			j++
		}
		at++
	}
	if j != key.L.Len() {
		return curve.Points{}, errors.New("the key's L has points for public or committed wires")
	}
	return out, nil
}
