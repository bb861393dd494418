package alloc

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteTable writes the counters for people: the spaces, then the stages with
// their purposes.
func (t *Tracker) WriteTable(w io.Writer) error { return t.Snapshot().WriteTable(w) }

// WriteTable writes the snapshot for people.
func (s Snapshot) WriteTable(w io.Writer) error {
	var out bytes.Buffer
	tw := tabwriter.NewWriter(&out, 0, 8, 2, ' ', tabwriter.AlignRight)
	row := func(cells ...string) {
		for _, c := range cells {
			_, _ = fmt.Fprintf(tw, "%s\t", c) // into memory: cannot fail
		}
		_, _ = fmt.Fprintln(tw)
	}
	row("space", "live", "peak", "allocated", "freed", "pooled", "mapped")
	for _, t := range s.Spaces {
		row(t.Space.String(), formatBytes(t.Live), formatBytes(t.Peak), formatBytes(t.Allocated),
			formatBytes(t.Freed), formatBytes(t.Pooled), formatBytes(t.Mapped))
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("write the table of memory: %w", err)
	}
	out.WriteByte('\n')
	row("stage", "space", "purpose", "live", "peak", "allocated", "freed", "pooled")
	for _, t := range s.Stages {
		row(t.Stage, t.Space.String(), "all", formatBytes(t.Live), formatBytes(t.Peak),
			formatBytes(t.Allocated), formatBytes(t.Freed), "")
		for _, r := range s.Rows {
			if r.Stage == t.Stage && r.Space == t.Space && r.Kind != MappedFile {
				row("", "", purposeAndKind(r), formatBytes(r.Live), formatBytes(r.Peak),
					formatBytes(r.Allocated), formatBytes(r.Freed), formatBytes(r.Pooled))
			}
		}
	}
	for _, r := range s.Rows {
		if r.Kind == MappedFile {
			row(r.Stage, r.Space.String(), purposeAndKind(r), formatBytes(r.Live), formatBytes(r.Peak),
				formatBytes(r.Allocated), formatBytes(r.Freed), "")
		}
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("write the table of memory: %w", err)
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write the table of memory: %w", err)
	}
	return nil
}

func purposeAndKind(r Row) string {
	if r.Kind == Memory || r.Purpose == r.Kind.String() {
		return r.Purpose
	}
	return r.Purpose + " (" + r.Kind.String() + ")"
}
