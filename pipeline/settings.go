package pipeline

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/snarkline/snarkline/alloc"
)

// Settings are the numbers of a graph that one tries and tunes: workers and
// capacities by stage, budgets by space. A Settings can be read from TOML
//
//	[budget]
//	host = "4GiB"
//	[stages.synthesize]
//	workers = 4
//	capacity = "unbounded"
//
// or from strings like "synthesize.workers=4" and "budget.host=4GiB", and is
// applied to a graph by WithSettings or Graph.Apply. The zero value sets nothing.
type Settings struct {
	Budget map[string]Size         `toml:"budget,omitempty" json:"budget,omitempty"`
	Stages map[string]StageSetting `toml:"stages,omitempty" json:"stages,omitempty"`
}

// StageSetting is what can be set of a stage; 0 leaves a number as it is.
type StageSetting struct {
	Workers  int   `toml:"workers,omitzero" json:"workers,omitempty"`
	Capacity Count `toml:"capacity,omitzero" json:"capacity,omitempty"`
}

// Size is a number of bytes that is written as "4GiB" or as a number.
type Size int64

// UnmarshalTOML reads a string or a number.
func (s *Size) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case int64:
		*s = Size(v)
	case string:
		n, err := alloc.ParseBytes(v)
		if err != nil {
			return err
		}
		*s = Size(n)
	default:
		return fmt.Errorf("%v is not a size", v)
	}
	if *s < 0 {
		return fmt.Errorf("size %d is negative", *s)
	}
	return nil
}

// MarshalText writes whole units where there are any: "4GiB".
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *Size) UnmarshalText(b []byte) error { return s.UnmarshalTOML(string(b)) }

// String is exact: "4GiB", "1536MiB", "1000".
func (s Size) String() string {
	for _, u := range []struct {
		n    int64
		name string
	}{{alloc.GiB, "GiB"}, {alloc.MiB, "MiB"}, {alloc.KiB, "KiB"}} {
		if s != 0 && int64(s)%u.n == 0 {
			return strconv.FormatInt(int64(s)/u.n, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// Count is a capacity that is written as a number or as "unbounded".
type Count int

// UnmarshalTOML reads a string or a number.
func (c *Count) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case int64:
		if v < 0 && v != Unbounded {
			return fmt.Errorf("capacity %d is negative", v)
		}
		*c = Count(v)
	case string:
		if v == "unbounded" {
			*c = Unbounded
			return nil
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return fmt.Errorf("capacity %q is neither a number nor \"unbounded\"", v)
		}
		*c = Count(n)
	default:
		return fmt.Errorf("capacity %v is neither a number nor \"unbounded\"", v)
	}
	return nil
}

// MarshalTOML is the number, or "unbounded" in quotes.
func (c Count) MarshalTOML() ([]byte, error) {
	if c == Unbounded {
		return []byte(`"unbounded"`), nil
	}
	return []byte(c.String()), nil
}

// MarshalText is the number or "unbounded".
func (c Count) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (c *Count) UnmarshalText(b []byte) error { return c.UnmarshalTOML(string(b)) }

// String is the number or "unbounded".
func (c Count) String() string {
	if c == Unbounded {
		return "unbounded"
	}
	return strconv.Itoa(int(c))
}

// ReadSettings reads settings from TOML. Unknown keys are errors with their line.
func ReadSettings(r io.Reader) (Settings, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return Settings{}, fmt.Errorf("read settings: %w", err)
	}
	var s Settings
	md, err := toml.Decode(string(data), &s)
	if err != nil {
		return Settings{}, fmt.Errorf("read settings: %w", err)
	}
	if unknown := md.Undecoded(); len(unknown) > 0 {
		return Settings{}, fmt.Errorf("read settings: line %d: unknown key %s", lineOf(string(data), -1, unknown[0]...), unknown[0])
	}
	return s, s.check()
}

// ParseSettings reads settings such as "synthesize.workers=4",
// "ntt.capacity=unbounded" and "budget.host=4GiB"; later ones win.
func ParseSettings(list ...string) (Settings, error) {
	var s Settings
	for _, item := range list {
		if err := s.Set(item); err != nil {
			return Settings{}, err
		}
	}
	return s, nil
}

// Set changes one setting, written as in ParseSettings.
func (s *Settings) Set(item string) error {
	bad := func(why string, args ...any) error {
		return fmt.Errorf("setting %q: %s", item, fmt.Sprintf(why, args...))
	}
	name, value, ok := strings.Cut(item, "=")
	dot := max(strings.LastIndexByte(name, '.'), 0)
	who, what := strings.TrimSpace(name[:dot]), strings.TrimSpace(strings.TrimPrefix(name[dot:], "."))
	if !ok || who == "" {
		return bad("want STAGE.workers=N, STAGE.capacity=N or budget.SPACE=BYTES")
	}
	value = strings.TrimSpace(value)
	next := Settings{Budget: maps.Clone(s.Budget), Stages: maps.Clone(s.Stages)}
	if who == "budget" {
		var size Size
		if err := size.UnmarshalTOML(value); err != nil {
			return bad("%v", err)
		}
		if next.Budget == nil {
			next.Budget = make(map[string]Size)
		}
		next.Budget[what] = size
	} else {
		st := next.Stages[who]
		switch what {
		case "workers":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 {
				return bad("workers must be a number of at least 1")
			}
			st.Workers = n
		case "capacity":
			var c Count
			if err := c.UnmarshalTOML(value); err != nil {
				return bad("%v", err)
			}
			if c == 0 {
				c = 1
			}
			st.Capacity = c
		default:
			return bad("a stage has workers and capacity, not %q", what)
		}
		if next.Stages == nil {
			next.Stages = make(map[string]StageSetting)
		}
		next.Stages[who] = st
	}
	if err := next.check(); err != nil {
		return bad("%v", err)
	}
	*s = next
	return nil
}

// Merge is s with what o sets in place of its own.
func (s Settings) Merge(o Settings) Settings {
	m := Settings{Budget: maps.Clone(s.Budget), Stages: maps.Clone(s.Stages)}
	for k, v := range o.Budget {
		if m.Budget == nil {
			m.Budget = make(map[string]Size)
		}
		m.Budget[k] = v
	}
	for k, v := range o.Stages {
		if m.Stages == nil {
			m.Stages = make(map[string]StageSetting)
		}
		st := m.Stages[k]
		if v.Workers != 0 {
			st.Workers = v.Workers
		}
		if v.Capacity != 0 {
			st.Capacity = v.Capacity
		}
		m.Stages[k] = st
	}
	return m
}

// WriteTOML writes the settings as ReadSettings reads them.
func (s Settings) WriteTOML(w io.Writer) error { return toml.NewEncoder(w).Encode(s) }

// List is the settings as ParseSettings reads them, sorted.
func (s Settings) List() []string {
	var out []string
	for k, v := range s.Budget {
		out = append(out, "budget."+k+"="+v.String())
	}
	for k, v := range s.Stages {
		if v.Workers != 0 {
			out = append(out, fmt.Sprintf("%s.workers=%d", k, v.Workers))
		}
		if v.Capacity != 0 {
			out = append(out, fmt.Sprintf("%s.capacity=%v", k, v.Capacity))
		}
	}
	slices.Sort(out)
	return out
}

func (s Settings) check() error {
	for k := range s.Budget {
		if _, err := alloc.ParseSpace(k); err != nil {
			return fmt.Errorf("budget: %w", err)
		}
	}
	for k, v := range s.Stages {
		if v.Workers < 0 {
			return fmt.Errorf("stage %s: %d workers are less than 1", k, v.Workers)
		}
	}
	return nil
}

// WithSettings applies settings to a graph. They win over the options in code.
// A setting for a stage that the graph has not is an error of Run.
func WithSettings(s Settings) Option {
	return graphOption(func(g *Graph) { g.apply(s) })
}

// Apply is WithSettings for a graph that exists. It has no effect on a run that
// has begun; SetWorkers and SetCapacity have.
func (g *Graph) Apply(s Settings) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("apply settings to graph %s: %w", g.name, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.run != nil {
		return fmt.Errorf("apply settings: graph %s was run already", g.name)
	}
	g.apply(s)
	return nil
}

func (g *Graph) apply(s Settings) {
	if err := s.check(); err != nil {
		g.faultLocked(err)
		return
	}
	g.settings = g.settings.Merge(s)
	for _, n := range g.nodes {
		g.settings.applyTo(n)
	}
}

// applyTo sets what there is for the node.
func (s Settings) applyTo(n *node) {
	st, ok := s.Stages[n.name]
	if !ok || !n.hasQueue() {
		return
	}
	if st.Workers > 0 && (n.kind == kindStage || n.kind == kindSink) {
		n.workers = st.Workers
	}
	if st.Capacity != 0 {
		n.capacity = int(st.Capacity)
	}
}

// unused are errors for settings that no node takes.
func (s Settings) unused(names map[string]*node) (errs []error) {
	for _, k := range slices.Sorted(maps.Keys(s.Stages)) {
		n := names[k]
		switch {
		case n == nil:
			errs = append(errs, fmt.Errorf("a setting is for stage %q, which it has not", k))
		case !n.hasQueue():
			errs = append(errs, fmt.Errorf("a setting is for %v %q, which has neither workers nor a queue", n.kind, k))
		case s.Stages[k].Workers > 0 && n.kind != kindStage && n.kind != kindSink:
			errs = append(errs, fmt.Errorf("a setting is for the workers of sink %q, which has none", k))
		}
	}
	return errs
}

// Settings are the workers, capacities and budgets that the graph has.
func (g *Graph) Settings() Settings {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.settingsLocked()
}

func (g *Graph) settingsLocked() Settings {
	s := Settings{Budget: make(map[string]Size), Stages: make(map[string]StageSetting)}
	for i, n := range g.limits() {
		if n != 0 {
			s.Budget[alloc.Space(i).String()] = Size(n)
		}
	}
	for _, n := range g.nodes {
		if n.kind == kindStage {
			s.Stages[n.name] = StageSetting{Workers: n.workers, Capacity: Count(n.capacity)}
		}
	}
	return s
}
