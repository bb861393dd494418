package pipeline

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Registry knows stages by name, so that a graph can be described in a file. It
// is a value that one makes and passes on; there is no global one. Safe for
// concurrent use.
type Registry struct {
	mu        sync.Mutex
	factories map[string]Factory
}

// NewRegistry makes an empty registry.
func NewRegistry() *Registry { return &Registry{factories: make(map[string]Factory)} }

// Factory makes a stage from parameters that a description gives.
type Factory struct {
	in, out typeInfo
	make    func(params map[string]any) (*node, error)
}

// NewFactory makes a factory of a function from parameters to a stage. P is a
// struct whose fields are read from the stage's params in TOML, or struct{}
// for a stage that has none. Parameters that it has no field for are errors.
func NewFactory[P, In, Out any](fn func(P) (Stage[In, Out], error)) Factory {
	f := Factory{in: typeOf[In](), out: typeOf[Out]()}
	f.make = func(params map[string]any) (*node, error) {
		var p P
		if err := strict(params, &p); err != nil {
			return nil, err
		}
		var s Stage[In, Out]
		var err error
		if perr := guard(func() { s, err = fn(p) }); perr != nil {
			return nil, perr
		}
		if err != nil {
			return nil, err
		}
		if s == nil {
			return nil, errors.New("the factory yields a nil stage")
		}
		return stageNode(s), nil
	}
	return f
}

// FactoryOf is a factory of a stage that has no parameters.
func FactoryOf[In, Out any](s Stage[In, Out]) Factory {
	return NewFactory(func(struct{}) (Stage[In, Out], error) { return s, nil })
}

// Add makes a stage known by a name. A name that is taken is an error.
func (r *Registry) Add(name string, f Factory) error {
	if name == "" || f.make == nil {
		return fmt.Errorf("add stage %q to the registry: a name and a factory are needed", name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.factories[name]; taken {
		return fmt.Errorf("add stage %q to the registry: the name is taken", name)
	}
	r.factories[name] = f
	return nil
}

// Names are the names that are known, sorted.
func (r *Registry) Names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.factories))
}

// Signature says what a stage takes and yields: "int → string"; empty if the
// name is not known.
func (r *Registry) Signature(name string) string {
	f, ok := r.find(name)
	if !ok {
		return ""
	}
	return f.in.t.String() + " → " + f.out.t.String()
}

func (r *Registry) find(name string) (Factory, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, ok := r.factories[name]
	return f, ok
}

// Bindings say what the sources and sinks of a description are in code.
type Bindings struct {
	sources map[string]func(g *Graph, opts ...NodeOption) *node
	sinks   map[string]sinkBinding
}

type sinkBinding struct {
	in  typeInfo
	put func(g *Graph, n *node, opts ...NodeOption)
}

// NewBindings makes empty bindings.
func NewBindings() *Bindings {
	return &Bindings{
		sources: make(map[string]func(*Graph, ...NodeOption) *node),
		sinks:   make(map[string]sinkBinding),
	}
}

// BindSource binds the source name to what open adds to the graph, with one of
// From, FromSlice and so on. It passes the options on.
func BindSource[T any](b *Bindings, name string, open func(g *Graph, opts ...NodeOption) *Port[T]) {
	b.sources[name] = func(g *Graph, opts ...NodeOption) *node { return open(g, opts...).node() }
}

// BindSink binds the sink name to what end does with the port, with one of To,
// ToFunc and Collect. It passes the options on.
func BindSink[T any](b *Bindings, name string, end func(p *Port[T], opts ...NodeOption)) {
	b.sinks[name] = sinkBinding{typeOf[T](), func(g *Graph, n *node, opts ...NodeOption) { end(&Port[T]{g, n}, opts...) }}
}

func known(names []string) string {
	if len(names) == 0 {
		return "none is known"
	}
	return "known: " + strings.Join(names, ", ")
}
