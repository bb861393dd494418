package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/BurntSushi/toml"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// TopologyOf is the graph of a description as pipeline.Load reads it, as data and
// so without the stages' code: enough to simulate it. Stages are taken to say
// which buffers they read, since costs do. Parameters of stages are not looked
// at, and unknown keys are left to pipeline.Load.
func TopologyOf(description string) (pipeline.Topology, error) {
	var d struct {
		Name    string                   `toml:"name"`
		OnError string                   `toml:"on-error"`
		Budget  map[string]pipeline.Size `toml:"budget"`
		Sources []graphNode              `toml:"source"`
		Stages  []graphNode              `toml:"stage"`
		Joins   []graphNode              `toml:"join"`
		Sinks   []graphNode              `toml:"sink"`
	}
	if _, err := toml.Decode(description, &d); err != nil {
		return pipeline.Topology{}, fmt.Errorf("read a pipeline: %w", err)
	}
	t := pipeline.Topology{Name: d.Name, Policy: pipeline.StopAll.String()}
	if d.OnError != "" {
		t.Policy = d.OnError
	}
	for name, n := range d.Budget {
		space, err := alloc.ParseSpace(name)
		if err != nil {
			return t, fmt.Errorf("read pipeline %s: budget: %w", d.Name, err)
		}
		t.Budget[space] = int64(n)
	}
	var left []graphNode
	for kind, list := range map[string][]graphNode{pipeline.KindSource: d.Sources, pipeline.KindStage: d.Stages, pipeline.KindJoin: d.Joins, pipeline.KindSink: d.Sinks} {
		for _, n := range list {
			n.kind = kind
			left = append(left, n)
		}
	}
	// The maps order is not to be seen: nodes come as in the file, sources first.
	rank := map[string]int{pipeline.KindSource: 0, pipeline.KindStage: 1, pipeline.KindJoin: 2, pipeline.KindSink: 3}
	slices.SortStableFunc(left, func(a, b graphNode) int { return rank[a.kind] - rank[b.kind] })
	for len(left) > 0 {
		i := slices.IndexFunc(left, func(n graphNode) bool { return n.ready(&t) })
		if i < 0 {
			return t, fmt.Errorf("read pipeline %s: %w", d.Name, left[0].lost(&t))
		}
		n, err := left[i].topology(&t)
		if err != nil {
			return t, fmt.Errorf("read pipeline %s: %w", d.Name, err)
		}
		t.Nodes = append(t.Nodes, n)
		left = slices.Delete(left, i, i+1)
	}
	return t, nil
}

// graphNode is a table of a description.
type graphNode struct {
	Name     string         `toml:"name"`
	From     any            `toml:"from"` // a name, or a list of names
	Workers  int            `toml:"workers"`
	Capacity pipeline.Count `toml:"capacity"`
	Ordered  bool           `toml:"ordered"`
	Retry    int            `toml:"retry"`
	kind     string
}

func (n *graphNode) from() (names []string) {
	switch from := n.From.(type) {
	case string:
		return []string{from}
	case []any:
		for _, v := range from {
			names = append(names, fmt.Sprint(v))
		}
	}
	return names
}

// ready reports whether all that the node reads is in the graph.
func (n *graphNode) ready(t *pipeline.Topology) bool {
	return !slices.ContainsFunc(n.from(), func(name string) bool { return t.Index(name) < 0 })
}

func (n *graphNode) lost(t *pipeline.Topology) error {
	for _, name := range n.from() {
		if t.Index(name) < 0 {
			return fmt.Errorf("%s %s reads from %q, which is not there or reads from it", n.kind, n.Name, name)
		}
	}
	return errors.New("it has no order")
}

func (n *graphNode) topology(t *pipeline.Topology) (pipeline.Node, error) {
	out := pipeline.Node{Name: n.Name, Kind: n.kind}
	switch {
	case n.Name == "" || t.Index(n.Name) >= 0:
		return out, fmt.Errorf("a %s has no name, or that of another node: %q", n.kind, n.Name)
	case (len(n.from()) == 0) != (n.kind == pipeline.KindSource):
		return out, fmt.Errorf("%s %s: it reads from %d nodes", n.kind, n.Name, len(n.from()))
	}
	for _, name := range n.from() {
		out.Preds = append(out.Preds, t.Index(name))
	}
	if n.kind == pipeline.KindStage || n.kind == pipeline.KindSink {
		out.Workers, out.Capacity = max(n.Workers, 1), int(n.Capacity)
		if out.Capacity == 0 {
			out.Capacity = 1
		}
		out.Ordered, out.Retries, out.Uses = n.Ordered, n.Retry, true
	}
	return out, nil
}
