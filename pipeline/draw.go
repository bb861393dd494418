package pipeline

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/snarkline/snarkline/alloc"
)

// DOT draws the graph in the language of Graphviz: stages with their workers,
// links with the capacity of the queue they end in, the budget below.
func (g *Graph) DOT() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n\trankdir=LR;\n\tnode [fontname=\"sans-serif\"];\n", strconv.Quote(g.name))
	if s := g.budgetLine(); s != "" {
		fmt.Fprintf(&b, "\tlabel=%s;\n", strconv.Quote(s))
	}
	shapes := map[kind]string{kindSource: "cds", kindStage: "box", kindJoin: "invtriangle"}
	for _, n := range g.nodes {
		shape := shapes[n.kind]
		if shape == "" {
			shape = "note"
		}
		fmt.Fprintf(&b, "\tn%d [shape=%s, label=%s];\n", n.id, shape, strconv.Quote(strings.Join(n.lines(), "\n")))
	}
	for _, n := range g.nodes {
		for _, l := range n.succs {
			fmt.Fprintf(&b, "\tn%d -> n%d [label=%s];\n", n.id, l.to.id, strconv.Quote(l.to.room()))
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// Mermaid draws the graph in the language of Mermaid, as in a Markdown file.
func (g *Graph) Mermaid() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var b strings.Builder
	if s := g.budgetLine(); s != "" {
		fmt.Fprintf(&b, "---\ntitle: %s\n---\n", strconv.Quote(g.name+", "+s))
	} else {
		fmt.Fprintf(&b, "---\ntitle: %s\n---\n", strconv.Quote(g.name))
	}
	b.WriteString("flowchart LR\n")
	for _, n := range g.nodes {
		open, shut := "[[", "]]"
		switch n.kind {
		case kindSource:
			open, shut = "([", "])"
		case kindStage:
			open, shut = "[", "]"
		case kindJoin:
			open, shut = "{", "}"
		}
		text := strings.ReplaceAll(strings.Join(n.lines(), "<br/>"), `"`, "#quot;")
		fmt.Fprintf(&b, "    n%d%s\"%s\"%s\n", n.id, open, text, shut)
	}
	for _, n := range g.nodes {
		for _, l := range n.succs {
			if room := l.to.room(); room != "" {
				fmt.Fprintf(&b, "    n%d -- \"%s\" --> n%d\n", n.id, room, l.to.id)
			} else {
				fmt.Fprintf(&b, "    n%d --> n%d\n", n.id, l.to.id)
			}
		}
	}
	return b.String()
}

// lines are what a drawing says of the node.
func (n *node) lines() []string {
	out := []string{n.name}
	if n.workers > 1 {
		out = append(out, fmt.Sprintf("%d workers", n.workers))
	}
	var more []string
	if n.ordered {
		more = append(more, "ordered")
	}
	if n.retries > 0 {
		more = append(more, fmt.Sprintf("retry %d", n.retries))
	}
	if n.restarts > 0 {
		more = append(more, fmt.Sprintf("restart %d", n.restarts))
	}
	if more != nil {
		out = append(out, strings.Join(more, ", "))
	}
	return out
}

// room is the capacity of the queue before the node; empty if it has none.
func (n *node) room() string {
	switch {
	case !n.hasQueue():
		return ""
	case n.capacity == Unbounded:
		return "unbounded"
	}
	return strconv.Itoa(n.capacity)
}

func (g *Graph) budgetLine() string {
	limit := g.limits()
	if g.shared != nil {
		limit = g.shared.Limit()
	}
	if limit.IsZero() {
		return ""
	}
	var parts []string
	for i, v := range limit {
		if v != 0 {
			parts = append(parts, alloc.Space(i).String()+" "+size(v))
		}
	}
	return "budget: " + strings.Join(parts, ", ")
}
