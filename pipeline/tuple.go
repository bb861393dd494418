package pipeline

import (
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/internal/rules"
)

// Tuple2 is what Join2 yields. Like all tuples it carries the buffers of its
// fields.
type Tuple2[A, B any] struct {
	A A
	B B
}

// Pair is another name for Tuple2.
type Pair[A, B any] = Tuple2[A, B]

// Tuple3 is what Join3 yields.
type Tuple3[A, B, C any] struct {
	A A
	B B
	C C
}

// Tuple4 is what Join4 yields.
type Tuple4[A, B, C, D any] struct {
	A A
	B B
	C C
	D D
}

// Tuple5 is what Join5 yields.
type Tuple5[A, B, C, D, E any] struct {
	A A
	B B
	C C
	D D
	E E
}

// Buffers are those of the fields.
func (t Tuple2[A, B]) Buffers() []alloc.Ref { return gather(t.A, t.B) }

// Buffers are those of the fields.
func (t Tuple3[A, B, C]) Buffers() []alloc.Ref { return gather(t.A, t.B, t.C) }

// Buffers are those of the fields.
func (t Tuple4[A, B, C, D]) Buffers() []alloc.Ref { return gather(t.A, t.B, t.C, t.D) }

// Buffers are those of the fields.
func (t Tuple5[A, B, C, D, E]) Buffers() []alloc.Ref { return gather(t.A, t.B, t.C, t.D, t.E) }

func gather(vs ...any) (refs []alloc.Ref) {
	for _, v := range vs {
		h := holdOf(v)
		for i := range h.len() {
			refs = append(refs, h.at(i))
		}
	}
	return refs
}

// Join2 pairs the values of two ports by key. It never stops reading an input:
// values wait in the join, which the item's reservation counts, until their
// partners come. A key that came twice or that an input ended without is a
// *JoinError. The only option is Name.
func Join2[A, B any](a *Port[A], b *Port[B], opts ...NodeOption) *Port[Tuple2[A, B]] {
	return join[Tuple2[A, B]](opts, end(a), end(b))
}

// Join3 is Join2 for three ports.
func Join3[A, B, C any](a *Port[A], b *Port[B], c *Port[C], opts ...NodeOption) *Port[Tuple3[A, B, C]] {
	return join[Tuple3[A, B, C]](opts, end(a), end(b), end(c))
}

// Join4 is Join2 for four ports.
func Join4[A, B, C, D any](a *Port[A], b *Port[B], c *Port[C], d *Port[D], opts ...NodeOption) *Port[Tuple4[A, B, C, D]] {
	return join[Tuple4[A, B, C, D]](opts, end(a), end(b), end(c), end(d))
}

// Join5 is Join2 for five ports.
func Join5[A, B, C, D, E any](a *Port[A], b *Port[B], c *Port[C], d *Port[D], e *Port[E], opts ...NodeOption) *Port[Tuple5[A, B, C, D, E]] {
	return join[Tuple5[A, B, C, D, E]](opts, end(a), end(b), end(c), end(d), end(e))
}

// maxJoin is the number of inputs that a join can have.
const maxJoin = rules.MaxJoin

// portEnd is a port without its type.
type portEnd struct {
	g *Graph
	n *node
}

func end[T any](p *Port[T]) portEnd { return portEnd{p.Graph(), p.node()} }

func join[T tuple](opts []NodeOption, ends ...portEnd) *Port[T] {
	var g *Graph
	preds := make([]*node, len(ends))
	for i, e := range ends {
		if g == nil {
			g = e.g
		}
		preds[i] = e.n
	}
	if g == nil {
		return &Port[T]{}
	}
	for _, e := range ends {
		if e.g == nil {
			g.fault(fmt.Errorf("a join after %s takes a nil port", nodeNames(preds)))
			return &Port[T]{g: g}
		}
		if e.g != g {
			err := fmt.Errorf("a join takes ports of two graphs, %s and %s", g.name, e.g.name)
			g.fault(err)
			e.g.fault(err)
			return &Port[T]{g: g}
		}
	}
	n := &node{kind: kindJoin, out: typeOf[T]()}
	g.attach(n, preds, opts)
	return &Port[T]{g, n}
}

func nodeNames(nodes []*node) string {
	s := ""
	for _, n := range nodes {
		if n != nil {
			if s != "" {
				s += ", "
			}
			s += n.name
		}
	}
	return s
}

// tuple is what makes a join's value out of its parts without knowing the types.
type tuple interface {
	parts() []typeInfo
	build([]any) any
}

func (Tuple2[A, B]) parts() []typeInfo { return []typeInfo{typeOf[A](), typeOf[B]()} }
func (Tuple2[A, B]) build(v []any) any { return Tuple2[A, B]{as[A](v[0]), as[B](v[1])} }

func (Tuple3[A, B, C]) parts() []typeInfo {
	return []typeInfo{typeOf[A](), typeOf[B](), typeOf[C]()}
}
func (Tuple3[A, B, C]) build(v []any) any {
	return Tuple3[A, B, C]{as[A](v[0]), as[B](v[1]), as[C](v[2])}
}

func (Tuple4[A, B, C, D]) parts() []typeInfo {
	return []typeInfo{typeOf[A](), typeOf[B](), typeOf[C](), typeOf[D]()}
}
func (Tuple4[A, B, C, D]) build(v []any) any {
	return Tuple4[A, B, C, D]{as[A](v[0]), as[B](v[1]), as[C](v[2]), as[D](v[3])}
}

func (Tuple5[A, B, C, D, E]) parts() []typeInfo {
	return []typeInfo{typeOf[A](), typeOf[B](), typeOf[C](), typeOf[D](), typeOf[E]()}
}
func (Tuple5[A, B, C, D, E]) build(v []any) any {
	return Tuple5[A, B, C, D, E]{as[A](v[0]), as[B](v[1]), as[C](v[2]), as[D](v[3]), as[E](v[4])}
}
