package pipeline

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/snarkline/snarkline/alloc"
)

// description is a graph as a file:
//
//	name = "squares"
//	on-error = "fail-key"        # or "stop-all"
//
//	[budget]
//	host = "4GiB"
//
//	[[source]]
//	name = "numbers"             # bound in code
//
//	[[stage]]
//	name = "square"
//	use = "power"                # its name in the registry; that of the stage if it is not given
//	from = "numbers"             # a source, a stage or a join
//	workers = 4
//	capacity = 8                 # of the queue it reads; or "unbounded"
//	ordered = true
//	retry = 2
//	backoff = "10ms"
//	[stage.params]
//	exponent = 2
//
//	[[join]]
//	name = "both"
//	from = ["square", "half"]
//
//	[[sink]]
//	name = "out"                 # bound in code
//	from = "both"
type description struct {
	Name    string          `toml:"name"`
	OnError string          `toml:"on-error,omitempty"`
	Budget  map[string]Size `toml:"budget,omitempty"`
	Sources []sourceDesc    `toml:"source"`
	Stages  []stageDesc     `toml:"stage"`
	Joins   []joinDesc      `toml:"join,omitempty"`
	Sinks   []sinkDesc      `toml:"sink"`
}

type sourceDesc struct {
	Name string `toml:"name"`
}

type stageDesc struct {
	Name     string         `toml:"name"`
	Use      string         `toml:"use,omitempty"`
	From     string         `toml:"from"`
	Workers  int            `toml:"workers,omitzero"`
	Capacity Count          `toml:"capacity,omitzero"`
	Ordered  bool           `toml:"ordered,omitempty"`
	Retry    int            `toml:"retry,omitzero"`
	Backoff  span64         `toml:"backoff,omitzero"`
	Params   map[string]any `toml:"params,omitempty"`
}

type joinDesc struct {
	Name string   `toml:"name"`
	From []string `toml:"from"`
}

type sinkDesc struct {
	Name     string `toml:"name"`
	From     string `toml:"from"`
	Workers  int    `toml:"workers,omitzero"`
	Capacity Count  `toml:"capacity,omitzero"`
}

// span64 is a duration that is written as "10ms".
type span64 time.Duration

func (d *span64) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err == nil && v < 0 {
		err = fmt.Errorf("duration %v is negative", v)
	}
	*d = span64(v)
	return err
}

func (d span64) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Load builds a graph from its description in TOML: stages from reg, sources and
// sinks from b. The options come after what the description says. What is wrong
// is returned with its line: unknown keys, stages and links, and a *TypeError
// for a link whose ends have different types.
//
// The tables of a description are source (name), stage (name, use, from,
// workers, capacity, ordered, retry, backoff, params), join (name, from: a list
// of 2 to 5), sink (name, from, workers, capacity) and budget (space = size),
// and the keys name and on-error ("stop-all" or "fail-key"). Stages may stand
// in any order. A join takes its type from what reads it.
func Load(reg *Registry, text string, b *Bindings, opts ...Option) (*Graph, error) {
	l := &loader{reg: reg, text: text, b: b, nodes: make(map[string]*node)}
	if err := l.read(); err != nil {
		return nil, fmt.Errorf("read a pipeline: %w", err)
	}
	g, err := l.build(opts)
	if err != nil {
		return nil, fmt.Errorf("read pipeline %s: %w", l.d.Name, err)
	}
	return g, nil
}

type loader struct {
	reg   *Registry
	text  string
	b     *Bindings
	d     description
	g     *Graph
	nodes map[string]*node
	errs  []error
}

// fault notes an error about a key of the nth table of an array.
func (l *loader) fault(table string, nth int, key string, err error) {
	path := []string{table}
	if key != "" {
		path = append(path, key)
	}
	var ke *keyError
	if errors.As(err, &ke) {
		path = append(path, ke.key...)
	}
	l.errs = append(l.errs, fmt.Errorf("line %d: %w", lineOf(l.text, nth, path...), err))
}

// read takes the text apart, table by table, so that errors know their table.
func (l *loader) read() error {
	raw := make(map[string]any)
	if _, err := toml.Decode(l.text, &raw); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		v := raw[key]
		switch key {
		case "name":
			l.top(key, v, &l.d.Name)
		case "on-error":
			l.top(key, v, &l.d.OnError)
		case "budget":
			l.top(key, v, &l.d.Budget)
		case "source":
			l.d.Sources = tables[sourceDesc](l, key, v)
		case "stage":
			l.d.Stages = tables[stageDesc](l, key, v)
		case "join":
			l.d.Joins = tables[joinDesc](l, key, v)
		case "sink":
			l.d.Sinks = tables[sinkDesc](l, key, v)
		default:
			l.fault(key, -1, "", fmt.Errorf("unknown key %s", key))
		}
	}
	return errors.Join(l.errs...)
}

// top decodes one value of the top level.
func (l *loader) top(key string, v, into any) {
	var err error
	switch into := into.(type) {
	case *string:
		s, ok := v.(string)
		if !ok {
			err = fmt.Errorf("key %s: %v is not a string", key, v)
		}
		*into = s
	case *map[string]Size:
		t, ok := v.(map[string]any)
		if !ok {
			err = fmt.Errorf("key %s: %v is not a table", key, v)
			break
		}
		*into = make(map[string]Size)
		for _, k := range slices.Sorted(maps.Keys(t)) {
			var n Size
			e := n.UnmarshalTOML(t[k])
			if e == nil {
				_, e = alloc.ParseSpace(k)
			}
			if e != nil {
				l.fault(key, -1, k, e)
				continue
			}
			(*into)[k] = n
		}
	}
	if err != nil {
		l.fault(key, -1, "", err)
	}
}

// tables decodes an array of tables.
func tables[D any](l *loader, key string, v any) (out []D) {
	list, ok := v.([]map[string]any)
	if inline, is := v.([]any); is {
		// source = [{name = "a"}]
		ok = true
		for _, e := range inline {
			t, is := e.(map[string]any)
			ok = ok && is
			list = append(list, t)
		}
	}
	if !ok {
		l.fault(key, -1, "", fmt.Errorf("%s is an array of tables: write [[%s]]", key, key))
		return nil
	}
	for i, t := range list {
		var d D
		if err := strict(t, &d); err != nil {
			l.fault(key, i, "", err)
		}
		out = append(out, d)
	}
	return out
}

func (l *loader) build(opts []Option) (*Graph, error) {
	head := []Option{}
	switch l.d.OnError {
	case "", StopAll.String():
	case FailKey.String():
		head = append(head, OnError(FailKey))
	default:
		l.fault("on-error", -1, "", fmt.Errorf("on-error is %q, not %q or %q", l.d.OnError, StopAll, FailKey))
	}
	for k, n := range l.d.Budget {
		if space, err := alloc.ParseSpace(k); err == nil {
			head = append(head, Budget(space, int64(n)))
		}
	}
	l.g = New(l.d.Name, append(head, opts...)...)
	l.sources()
	l.links()
	if err := errors.Join(l.errs...); err != nil {
		return nil, err
	}
	return l.g, nil
}

func (l *loader) sources() {
	for i, s := range l.d.Sources {
		open := l.b.source(s.Name)
		if open == nil {
			l.fault("source", i, "name", fmt.Errorf("source %q is bound to nothing (%s)", s.Name, known(l.b.names(true))))
			continue
		}
		n := open(l.g, Name(s.Name))
		if n == nil {
			l.fault("source", i, "name", fmt.Errorf("the binding of source %q yields no port of the graph", s.Name))
			continue
		}
		n.use = s.Name
		l.nodes[s.Name] = n
	}
}

// pendingLink is a table that waits for what it reads.
type pendingLink struct {
	table string
	nth   int
	from  []string
	add   func(preds []*node)
}

// links adds the stages, joins and sinks, each when all that it reads is there.
func (l *loader) links() {
	var open []pendingLink
	names := make(map[string]bool)
	for _, s := range l.d.Sources {
		names[s.Name] = true
	}
	for i := range l.d.Stages {
		names[l.d.Stages[i].Name] = true
		open = append(open, pendingLink{"stage", i, []string{l.d.Stages[i].From}, func(p []*node) { l.stage(i, p[0]) }})
	}
	for i := range l.d.Joins {
		names[l.d.Joins[i].Name] = true
		open = append(open, pendingLink{"join", i, l.d.Joins[i].From, func(p []*node) { l.join(i, p) }})
	}
	for i := range l.d.Sinks {
		open = append(open, pendingLink{"sink", i, []string{l.d.Sinks[i].From}, func(p []*node) { l.sink(i, p[0]) }})
	}
	for progress := true; progress; {
		progress = false
		rest := open[:0:0]
		for _, p := range open {
			preds, ready := make([]*node, len(p.from)), true
			for i, f := range p.from {
				preds[i] = l.nodes[f]
				ready = ready && preds[i] != nil
			}
			if !ready {
				rest = append(rest, p)
				continue
			}
			p.add(preds)
			progress = true
		}
		open = rest
	}
	explained := len(l.errs) > 0
	for _, p := range open {
		for _, f := range p.from {
			if !names[f] {
				l.fault(p.table, p.nth, "from", fmt.Errorf("from = %q is no source, stage or join", f))
				explained = true
			}
		}
	}
	if len(open) > 0 && !explained {
		l.fault(open[0].table, open[0].nth, "from", errors.New("the links form a circle"))
	}
}

func (l *loader) stage(i int, pred *node) {
	d := &l.d.Stages[i]
	use := d.Use
	if use == "" {
		use = d.Name
	}
	f, ok := l.reg.find(use)
	if !ok {
		key := "use"
		if d.Use == "" {
			key = "name"
		}
		l.fault("stage", i, key, fmt.Errorf("stage %q is not in the registry (%s)", use, known(l.reg.Names())))
		return
	}
	n, err := f.make(d.Params)
	if err != nil {
		l.fault("stage", i, "params", fmt.Errorf("stage %s: %w", d.Name, err))
		return
	}
	n.use, n.params = use, d.Params
	opts := []NodeOption{}
	if d.Name != "" {
		opts = append(opts, Name(d.Name))
	}
	if d.Workers != 0 {
		opts = append(opts, Workers(d.Workers))
	}
	if d.Capacity != 0 {
		opts = append(opts, Capacity(int(d.Capacity)))
	}
	if d.Ordered {
		opts = append(opts, Ordered())
	}
	if d.Retry != 0 {
		opts = append(opts, Retry(d.Retry, time.Duration(d.Backoff)))
	}
	if err := fit(pred, d.Name, f.in); err != nil {
		l.fault("stage", i, "from", err)
	}
	l.add("stage", i, n, []*node{pred}, opts)
}

// add attaches a node, and tells with the line what is wrong with it.
func (l *loader) add(table string, i int, n *node, preds []*node, opts []NodeOption) {
	before := len(l.g.errs)
	l.g.attach(n, preds, opts)
	for _, err := range l.g.errs[before:] {
		l.fault(table, i, "", err)
	}
	if l.nodes[n.name] == nil {
		l.nodes[n.name] = n
	}
}

func (l *loader) join(i int, preds []*node) {
	d := &l.d.Joins[i]
	if len(preds) < 2 || len(preds) > maxJoin {
		l.fault("join", i, "from", fmt.Errorf("join %s has %d inputs; it can have 2 to %d", d.Name, len(preds), maxJoin))
		return
	}
	l.add("join", i, &node{name: d.Name, named: true, kind: kindJoin}, preds, nil)
}

func (l *loader) sink(i int, pred *node) {
	d := &l.d.Sinks[i]
	if l.b == nil || l.b.sinks[d.Name].put == nil {
		l.fault("sink", i, "name", fmt.Errorf("sink %q is bound to nothing (%s)", d.Name, known(l.b.names(false))))
		return
	}
	sink := l.b.sinks[d.Name]
	if err := fit(pred, d.Name, sink.in); err != nil {
		l.fault("sink", i, "from", err)
		return
	}
	opts := []NodeOption{Name(d.Name)}
	if d.Workers != 0 {
		opts = append(opts, Workers(d.Workers))
	}
	if d.Capacity != 0 {
		opts = append(opts, Capacity(int(d.Capacity)))
	}
	before := len(l.g.errs)
	sink.put(l.g, pred, opts...)
	for _, err := range l.g.errs[before:] {
		l.fault("sink", i, "", err)
	}
}

// fit checks that what n yields is what a place takes. A join that nothing has
// read yet gets its type here.
func fit(n *node, to string, want typeInfo) error {
	if n.kind != kindJoin || n.out.t != nil {
		if want.takes(n.out) {
			return nil
		}
		return &TypeError{From: n.name, To: to, Got: n.out.t.String(), Want: want.t.String()}
	}
	if want.build == nil || len(want.parts) != len(n.preds) {
		return &TypeError{From: n.name, To: to, Got: fmt.Sprintf("a tuple of %d", len(n.preds)), Want: want.t.String()}
	}
	for i, p := range n.preds {
		if err := fit(p, to, want.parts[i]); err != nil {
			return err
		}
	}
	n.out = want
	return nil
}

func (b *Bindings) source(name string) func(*Graph, ...NodeOption) *node {
	if b == nil {
		return nil
	}
	return b.sources[name]
}

func (b *Bindings) names(sources bool) []string {
	switch {
	case b == nil:
		return nil
	case sources:
		return slices.Sorted(maps.Keys(b.sources))
	}
	return slices.Sorted(maps.Keys(b.sinks))
}

// WriteTOML writes the graph as Load reads it. Stages that did not come from a
// registry are written under their names, without parameters.
func (g *Graph) WriteTOML(w io.Writer) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := description{Name: g.name, OnError: g.policy.String(), Budget: make(map[string]Size)}
	for i, n := range g.limits() {
		if n != 0 {
			d.Budget[alloc.Space(i).String()] = Size(n)
		}
	}
	for _, n := range g.nodes {
		from := make([]string, len(n.preds))
		for i, p := range n.preds {
			from[i] = p.name
		}
		if len(from) == 0 && n.kind != kindSource {
			return fmt.Errorf("write graph %s: %v %s reads nothing", g.name, n.kind, n.name)
		}
		switch n.kind {
		case kindSource:
			d.Sources = append(d.Sources, sourceDesc{n.name})
		case kindJoin:
			d.Joins = append(d.Joins, joinDesc{n.name, from})
		case kindStage:
			s := stageDesc{Name: n.name, From: from[0], Workers: n.workers, Capacity: Count(n.capacity),
				Ordered: n.ordered, Retry: n.retries, Backoff: span64(n.backoff)}
			if n.use != n.name {
				s.Use = n.use
			}
			s.Params, _ = n.params.(map[string]any)
			d.Stages = append(d.Stages, s)
		default:
			s := sinkDesc{Name: n.name, From: from[0], Capacity: Count(n.capacity)}
			if n.kind == kindSink {
				s.Workers = n.workers
			}
			d.Sinks = append(d.Sinks, s)
		}
	}
	e := toml.NewEncoder(w)
	e.Indent = ""
	if err := e.Encode(d); err != nil {
		return fmt.Errorf("write graph %s: %w", g.name, err)
	}
	return nil
}
