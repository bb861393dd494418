package pipeline

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/alloc"
)

// writeMemory writes the peaks by stage: where all is in one space, with what
// the stage held, had in its queue and had pending apart; where there are
// several, side by side.
func (r *Report) writeMemory(b *bytes.Buffer) {
	spaces := r.spaces()
	if len(spaces) == 1 {
		r.writeSpace(b, spaces[0])
	} else {
		for part := range slices.Chunk(spaces, spacesAbreast) {
			r.writeSpaces(b, part)
		}
	}
	if r.Budget != nil {
		fmt.Fprintf(b, "\nadmission: %s of the items waited, %s in all\n", humanize.Comma(r.Budget.Waits), span(r.Budget.WaitTime))
	}
}

// spaces are those of which anything was used.
func (r *Report) spaces() (spaces []alloc.Space) {
	for i := range alloc.Space(alloc.MaxSpaces) {
		used := r.Peak[i] > 0
		for k := range r.Stages {
			s := &r.Stages[k]
			used = used || s.Held.Peak[i]+s.Queued.Peak[i]+s.Pending.Peak[i]+s.Made.Peak[i] > 0
		}
		if used {
			spaces = append(spaces, i)
		}
	}
	return spaces
}

func (r *Report) writeSpace(b *bytes.Buffer, sp alloc.Space) {
	fmt.Fprintf(b, "\n%-22s%19s%19s%19s%19s\n", sp.String()+" memory, peaks", "made by stage", "held by stage", "in its queue", "pending")
	for k := range r.Stages {
		s := &r.Stages[k]
		row := []int64{s.Made.Peak[sp], s.Held.Peak[sp], s.Queued.Peak[sp], s.Pending.Peak[sp]}
		if row[0]+row[1]+row[2]+row[3] == 0 {
			continue
		}
		fmt.Fprintf(b, "%-22s", clip(s.Name, 21))
		for _, n := range row {
			fmt.Fprintf(b, "%19s", size(n))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "%-22s%19s  (live now: %s)\n", "process", size(r.Peak[sp]), size(r.Live[sp]))
	if r.Budget != nil && r.Budget.Limit[sp] > 0 {
		fmt.Fprintf(b, "%-22s%19s  (reserved at most: %s)\n", "budget", size(r.Budget.Limit[sp]), size(r.Budget.Peak[sp]))
	}
}

// spacesAbreast is how many spaces 100 columns hold side by side.
const spacesAbreast = 4

// writeSpaces writes a column for each space: what a stage made, and the most
// that it held, had in its queue or had pending.
func (r *Report) writeSpaces(b *bytes.Buffer, spaces []alloc.Space) {
	row := func(name string, cell func(alloc.Space) string) {
		line, empty := fmt.Sprintf("%-22s", clip(name, 21)), true
		for _, sp := range spaces {
			c := cell(sp)
			empty = empty && c == "-"
			line += fmt.Sprintf("%19s", c)
		}
		if !empty {
			b.WriteString(line + "\n")
		}
	}
	b.WriteByte('\n')
	row("memory, peaks", func(sp alloc.Space) string { return sp.String() })
	row("made by / held by", func(alloc.Space) string { return "made /     held" })
	for k := range r.Stages {
		s := &r.Stages[k]
		row(s.Name, func(sp alloc.Space) string {
			made, held := s.Made.Peak[sp], max(s.Held.Peak[sp], s.Queued.Peak[sp], s.Pending.Peak[sp])
			if made+held == 0 {
				return "-"
			}
			return fmt.Sprintf("%s /%9s", size(made), size(held))
		})
	}
	row("process", func(sp alloc.Space) string { return size(r.Peak[sp]) })
	row("live now", func(sp alloc.Space) string { return size(r.Live[sp]) })
	if r.Budget == nil {
		return
	}
	row("budget", func(sp alloc.Space) string { return size(r.Budget.Limit[sp]) })
	row("reserved at most", func(sp alloc.Space) string {
		if r.Budget.Limit[sp] == 0 {
			return "-"
		}
		return size(r.Budget.Peak[sp])
	})
}
