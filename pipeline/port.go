package pipeline

import (
	"context"
	"fmt"
	"reflect"

	"github.com/snarkline/snarkline/alloc"
)

// Key identifies an item: a job and a part of it.
type Key struct {
	Job  string `json:"job"`
	Part int    `json:"part"`
}

// String is "job/part", or the part alone if the job has no name.
func (k Key) String() string {
	if k.Job == "" {
		return fmt.Sprint(k.Part)
	}
	return fmt.Sprintf("%s/%d", k.Job, k.Part)
}

// Stage turns one value into another. Run may be called by several goroutines
// at once. Its context carries the item's key ([KeyOf]), the scope to allocate
// in (alloc.ScopeOf) and is cancelled when the run stops or the item fails.
// Who owns which buffers is told in the package's documentation.
//
// A stage may also have any of
//
//	Uses(in In) []alloc.Ref // the buffers of the input that it reads
//	Needs(job any) Need     // what an item makes it allocate; see Need
//	NeedsIn(ctx context.Context, job any) Need // the same, in place of Needs
//
// The context of NeedsIn carries the item's key, its past attempts and its values
// (KeyOf, PastOf, ItemValue). It is called each time before the item enters.
// Uses is called when the input is queued; the stage gets references to these
// buffers alone, so that an item that waits here keeps no others alive.
type Stage[In, Out any] interface {
	Name() string
	Run(ctx context.Context, in In) (Out, error)
}

// Holder is a value that carries buffers. Nil ones are ignored. The slice that
// Buffers returns is not written to afterwards, by the engine or by the value.
type Holder interface{ Buffers() []alloc.Ref }

type user[In any] interface{ Uses(in In) []alloc.Ref }
type needer interface{ Needs(job any) Need }
type neederIn interface {
	NeedsIn(ctx context.Context, job any) Need
}

// NewStage makes a stage of a function.
func NewStage[In, Out any](name string, fn func(context.Context, In) (Out, error)) Stage[In, Out] {
	return funcStage[In, Out]{name, fn}
}

type funcStage[In, Out any] struct {
	name string
	fn   func(context.Context, In) (Out, error)
}

func (s funcStage[In, Out]) Name() string { return s.name }
func (s funcStage[In, Out]) Run(ctx context.Context, in In) (Out, error) {
	return s.fn(ctx, in)
}

// WithNeeds is the stage s with a statement of what it needs, in place of its
// own if it has one.
func WithNeeds[In, Out any](s Stage[In, Out], needs func(job any) Need) Stage[In, Out] {
	return needStage[In, Out]{s, needs}
}

type needStage[In, Out any] struct {
	Stage[In, Out]
	needs func(job any) Need
}

func (s needStage[In, Out]) Needs(job any) Need { return s.needs(job) }
func (s needStage[In, Out]) Unwrap() any        { return s.Stage }

// needsOf is what states the needs of s or of one that it wraps: the outermost
// that does, and there NeedsIn before Needs.
func needsOf(s any) (needs func(any) Need, in func(context.Context, any) Need) {
	for s != nil {
		switch d := s.(type) {
		case neederIn:
			return nil, d.NeedsIn
		case needer:
			return d.Needs, nil
		case interface{ Unwrap() any }:
			s = d.Unwrap()
		default:
			return nil, nil
		}
	}
	return nil, nil
}

// WithUses is the stage s with a statement of which buffers it reads, in place
// of its own if it has one.
func WithUses[In, Out any](s Stage[In, Out], uses func(in In) []alloc.Ref) Stage[In, Out] {
	return useStage[In, Out]{s, uses}
}

type useStage[In, Out any] struct {
	Stage[In, Out]
	uses func(in In) []alloc.Ref
}

func (s useStage[In, Out]) Uses(in In) []alloc.Ref { return s.uses(in) }
func (s useStage[In, Out]) Unwrap() any            { return s.Stage }

// facet finds what a stage or one that it wraps can do besides Run.
func facet[F any](s any) (f F, ok bool) {
	for s != nil {
		if f, ok = s.(F); ok {
			return f, true
		}
		w, wraps := s.(interface{ Unwrap() any })
		if !wraps {
			break
		}
		s = w.Unwrap()
	}
	return f, false
}

// Port is a stream of values of type T that consumers can be put on.
type Port[T any] struct {
	g *Graph
	n *node
}

// Name is the name of the node that the values come from.
func (p *Port[T]) Name() string {
	if p == nil || p.n == nil {
		return ""
	}
	return p.n.name
}

// Graph is the graph that the port belongs to.
func (p *Port[T]) Graph() *Graph {
	if p == nil {
		return nil
	}
	return p.g
}

func (p *Port[T]) node() *node {
	if p == nil {
		return nil
	}
	return p.n
}

// Via runs stage s on the values of p and yields what it returns. Each call
// adds a consumer to p. Options: Workers (1), Capacity of the queue that the
// stage reads from (1), Ordered, Retry, Name (the stage's own).
func Via[In, Out any](p *Port[In], s Stage[In, Out], opts ...NodeOption) *Port[Out] {
	g := p.Graph()
	if g == nil {
		return &Port[Out]{}
	}
	if s == nil {
		g.fault(fmt.Errorf("nil stage after %s", p.Name()))
		return &Port[Out]{g: g}
	}
	n := stageNode(s)
	g.attach(n, []*node{p.node()}, opts)
	return &Port[Out]{g, n}
}

// stageNode is the type-erased form of a stage.
func stageNode[In, Out any](s Stage[In, Out]) *node {
	n := &node{name: s.Name(), kind: kindStage, in: typeOf[In](), out: typeOf[Out]()}
	n.call = func(ctx context.Context, in any) (any, error) { return s.Run(ctx, as[In](in)) }
	if u, ok := facet[user[In]](s); ok {
		n.uses = func(in any) []alloc.Ref { return u.Uses(as[In](in)) }
	}
	n.needs, n.needsIn = needsOf(s)
	return n
}

// typeInfo is a type of values, with what it takes to make tuples of it.
type typeInfo struct {
	t     reflect.Type
	parts []typeInfo
	build func([]any) any
}

func typeOf[T any]() typeInfo {
	ti := typeInfo{t: reflect.TypeFor[T]()}
	var zero T
	if tp, ok := any(zero).(tuple); ok {
		ti.parts, ti.build = tp.parts(), tp.build
	}
	return ti
}

// takes reports whether a value of type o can be used as one of type ti.
func (ti typeInfo) takes(o typeInfo) bool {
	return ti.t == o.t || ti.t.Kind() == reflect.Interface && o.t.Implements(ti.t)
}

// as is v as a T. The types were checked when the graph was built; what is left
// is nil as an interface, whose T is the zero value.
func as[T any](v any) T {
	t, _ := v.(T)
	return t
}
