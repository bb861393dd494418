package main

import (
	"fmt"
	"io"
	"math"
)

// variant is the engine with something changed that was given.
type variant struct {
	what string
	e    engine
}

// variants are those that trust looks at; the first changes nothing.
func variants(e engine) []variant {
	return []variant{
		{"as given", e},
		{"the card 5% faster", e.scaled("prove", 0.95)},
		{"the card 5% slower", e.scaled("prove", 1.05)},
		{"the card 10% slower", e.scaled("prove", 1.10)},
		{"synthesis 5% slower", e.scaled("synthesize", 1.05)},
		{"syntheses unequal by 2%", e.spread("synthesize", 0.02)},
		{"syntheses unequal by 5%", e.spread("synthesize", 0.05)},
	}
}

// misfits counts the rows of the tables of phase 12 that are off by more than 15%,
// and is the worst of them.
func misfits(e engine) (rows, off int, worst float64, err error) {
	sections, err := phase12(e)
	if err != nil {
		return 0, 0, 0, err
	}
	for _, s := range sections {
		for _, r := range s.rows {
			rows++
			if math.Abs(r.err()) > within {
				off++
			}
			if math.Abs(r.err()) > math.Abs(worst) {
				worst = r.err()
			}
		}
	}
	return rows, off, worst, nil
}

// trust prints how far all of this hangs on what was given.
func trust(w io.Writer, e engine) error {
	if _, err := fmt.Fprintf(w, "\n## How much hangs on a figure\n\nThe tables of phase 12, and the fault F7 again.\n\n"); err != nil {
		return err
	}
	cells := [][]string{{"", "rows off by more than 15%", "worst", "F7, 10 workers", "F7, 12 workers"}}
	for _, v := range variants(e) {
		rows, off, worst, err := misfits(v.e)
		if err != nil {
			return fmt.Errorf("%s: %w", v.what, err)
		}
		line := []string{v.what, fmt.Sprintf("%d of %d", off, rows), fmt.Sprintf("%+.1f%%", 100*worst)}
		for _, pw := range []int{10, 12} {
			p, err := v.e.predict(run{pw: pw, gw: 2, proofs: longRun, capacity: 1, early: true, late: true})
			if err != nil {
				return err
			}
			end := fmt.Sprintf("%.0f GiB", v.e.rss(p))
			if p.Killed != nil {
				end = fmt.Sprintf("killed after %d proofs", p.Items/perProof)
			}
			line = append(line, end)
		}
		cells = append(cells, line)
	}
	return lines(w, cells)
}
