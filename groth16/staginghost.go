package groth16

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// purposePick are the indices of the points that are left to tail-msm.
var purposePick = alloc.PurposeOf("pick")

// stagedOnHost is where a CPU has a, b and c.
const stagedOnHost = "passed through: a, b, c stay in host memory"

// hostStaging is a Staging over the slices of host buffers.
type hostStaging struct{ Arithmetic }

// hostVectors are a, b and c, or h alone in the place of a.
type hostVectors struct {
	a, b, c *alloc.Buffer[curve.Scalar]
	domain  curve.Domain
	basis   curve.Basis
}

func (v *hostVectors) Buffers() []alloc.Ref { return bufferRefs(v.a, v.b, v.c) }
func (v *hostVectors) String() string       { return stagedOnHost }

// hostWires is a witness and the classes of its scalars.
type hostWires struct {
	w       *alloc.Buffer[curve.Scalar]
	classes *alloc.Buffer[curve.Class]
}

func (v *hostWires) Buffers() []alloc.Ref {
	return append(bufferRefs(v.w), bufferRefs(v.classes)...)
}
func (v *hostWires) String() string { return "witness and classes in host memory" }

// hostOthers is a witness and, unless it is taken whole, the picks of each
// query.
type hostOthers struct {
	w     *alloc.Buffer[curve.Scalar]
	whole bool
	of    []queryID
	picks []*alloc.Buffer[uint32]
}

func (v *hostOthers) Buffers() []alloc.Ref {
	return append(bufferRefs(v.w), bufferRefs(v.picks...)...)
}
func (v *hostOthers) String() string { return "witness and picks in host memory" }

// queryID is what tells which points of a query are picked.
type queryID struct {
	wires  *uint32
	first  uint32
	points int
}

func idOf(q curve.Query) queryID {
	return queryID{wires: unsafe.SliceData(q.Wires), first: q.First, points: q.Len()}
}

// bufferRefs are the buffers of b that are there.
func bufferRefs[T any](b ...*alloc.Buffer[T]) []alloc.Ref {
	out := make([]alloc.Ref, 0, len(b))
	for _, x := range b {
		if x != nil {
			out = append(out, x)
		}
	}
	return out
}

func releaseHeld(v Held) {
	for _, r := range v.Buffers() {
		r.Release()
	}
}

// notOurs is the error for a Held of another processor's making.
func (s hostStaging) notOurs(v Held) error {
	return fmt.Errorf("%s is given a %T that it did not make", s.Name(), v)
}

// Needs states the scratch of the arithmetic. batch-add has the classes of all
// wires, the picks of one query before they are cut to length, and what a sum of
// ones takes; the picks that it hands on are at most all points. The sums over
// the wires run one after another, and MSMScratch of all points bounds the sums
// of fewer, of which there may be any number: a witness decides how many are
// picked.
func (s hostStaging) Needs(l Load) Needs {
	var sums alloc.Amount
	for _, n := range []int{l.L, l.A, l.B1} {
		sums = sums.Max(s.MSMScratch(curve.InG1, n))
	}
	longest := max(l.L, l.A, l.B1)
	return Needs{
		NTT:      s.QuotientScratch(l.Domain.Size(), l.Basis, l.Folded),
		HMSM:     s.MSMScratch(curve.InG1, l.H),
		BatchAdd: alloc.HostBytes(int64(l.Wires) + 4*int64(longest)).Add(sums),
		TailMSM:  sums,
		BG2MSM:   s.MSMScratch(curve.InG2, l.B2),
		Wires:    alloc.HostBytes(4 * int64(l.L+l.A+l.B1)),
	}
}

// Prestage passes the vectors on.
func (s hostStaging) Prestage(ctx context.Context, _ *alloc.Scope, d curve.Domain, basis curve.Basis, a, b, c *alloc.Buffer[curve.Scalar]) (Held, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v := &hostVectors{a: a, b: b, c: c, domain: d, basis: basis}
	for _, r := range v.Buffers() {
		r.Retain()
	}
	return v, nil
}

// QuotientOf works in place.
func (s hostStaging) QuotientOf(ctx context.Context, sc *alloc.Scope, v Held) (Held, error) {
	e, ok := v.(*hostVectors)
	if !ok || e.b == nil {
		return nil, s.notOurs(v)
	}
	var c []curve.Scalar
	if e.c != nil {
		c = e.c.Slice()
	}
	if err := s.Quotient(ctx, sc, e.domain, e.basis, e.a.Slice(), e.b.Slice(), c); err != nil {
		return nil, err
	}
	e.a.Retain()
	return &hostVectors{a: e.a, domain: e.domain, basis: e.basis}, nil
}

// SumH takes the points that there are.
func (s hostStaging) SumH(ctx context.Context, sc *alloc.Scope, points curve.Points, v Held) (curve.G1, error) {
	h, ok := v.(*hostVectors)
	if !ok || h.b != nil {
		return curve.G1{}, s.notOurs(v)
	}
	if h.a.Len() < points.Len() {
		return curve.G1{}, fmt.Errorf("%d places of h do not cover %d points", h.a.Len(), points.Len())
	}
	return s.MSMG1(ctx, sc, curve.Query{Points: points}, h.a.Slice(), nil)
}

// Split makes the classes.
func (s hostStaging) Split(ctx context.Context, sc *alloc.Scope, w *alloc.Buffer[curve.Scalar]) (Held, curve.Counts, error) {
	classes, err := alloc.Make[curve.Class](sc, w.Len(), alloc.Scratch, alloc.Secret|alloc.Dirty)
	if err != nil {
		return nil, curve.Counts{}, fmt.Errorf("classes of %d scalars: %w", w.Len(), err)
	}
	counts, err := s.Classify(ctx, w.Slice(), classes.Slice())
	if err != nil {
		classes.Release()
		return nil, curve.Counts{}, fmt.Errorf("classify %d scalars: %w", w.Len(), err)
	}
	w.Retain()
	return &hostWires{w: w, classes: classes}, counts, nil
}

// SumOnes is SumG1.
func (s hostStaging) SumOnes(ctx context.Context, sc *alloc.Scope, q curve.Query, v Held) (curve.G1, error) {
	x, ok := v.(*hostWires)
	if !ok {
		return curve.G1{}, s.notOurs(v)
	}
	return s.SumG1(ctx, sc, q, x.classes.Slice())
}

// Others makes the picks, each in room for all and then cut to length.
func (s hostStaging) Others(ctx context.Context, sc *alloc.Scope, v Held, whole bool, qs ...curve.Query) (Held, error) {
	x, ok := v.(*hostWires)
	if !ok {
		return nil, s.notOurs(v)
	}
	out := &hostOthers{w: x.w, whole: whole}
	out.w.Retain()
	if whole {
		return out, nil
	}
	if err := s.pick(ctx, sc, x.classes.Slice(), out, qs); err != nil {
		releaseHeld(out)
		return nil, err
	}
	return out, nil
}

// pick fills the picks of out. On an error out holds what was made.
func (s hostStaging) pick(ctx context.Context, sc *alloc.Scope, classes []curve.Class, out *hostOthers, qs []curve.Query) error {
	longest := 0
	for _, q := range qs {
		longest = max(longest, q.Len())
	}
	room, err := alloc.Make[uint32](sc, longest, alloc.Scratch, alloc.Secret|alloc.Dirty)
	if err != nil {
		return fmt.Errorf("room for picks: %w", err)
	}
	defer room.Release()
	for i, q := range qs {
		n, err := s.Tail(ctx, q, classes, room.Slice())
		if err != nil {
			return fmt.Errorf("pick the tail of query %d: %w", i, err)
		}
		picks, err := alloc.Make[uint32](sc, n, purposePick, alloc.Secret|alloc.Dirty)
		if err != nil {
			return fmt.Errorf("%d picks of query %d: %w", n, i, err)
		}
		copy(picks.Slice(), room.Slice()[:n])
		out.of, out.picks = append(out.of, idOf(q)), append(out.picks, picks)
	}
	return nil
}

var errNoPicks = errors.New("the query is none of those that picks were made for")

// SumOthers is MSMG1 over the picks.
func (s hostStaging) SumOthers(ctx context.Context, sc *alloc.Scope, q curve.Query, v Held) (curve.G1, error) {
	x, ok := v.(*hostOthers)
	if !ok {
		return curve.G1{}, s.notOurs(v)
	}
	if x.whole {
		return s.MSMG1(ctx, sc, q, x.w.Slice(), nil)
	}
	for i, id := range x.of {
		if id != idOf(q) {
			continue
		}
		if x.picks[i].Len() == 0 {
			return curve.G1{}, nil
		}
		return s.MSMG1(ctx, sc, q, x.w.Slice(), x.picks[i].Slice())
	}
	return curve.G1{}, errNoPicks
}

// SumB2 is MSMG2.
func (s hostStaging) SumB2(ctx context.Context, sc *alloc.Scope, q curve.Query, w *alloc.Buffer[curve.Scalar]) (curve.G2, error) {
	return s.MSMG2(ctx, sc, q, w.Slice(), nil)
}
