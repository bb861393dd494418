package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
)

// replay prints everything, and is an error if something is not as it should be.
func replay(w io.Writer) error {
	e, err := publishedEngine()
	if err != nil {
		return err
	}
	sections, err := phase12(e)
	if err != nil {
		return err
	}
	for _, of := range []func(engine) (section, error){early, twoWorkers, piled} {
		s, err := of(e)
		if err != nil {
			return err
		}
		sections = append(sections, s)
	}
	var errs []error
	for _, s := range sections {
		if err := s.print(w); err != nil {
			return err
		}
		for _, r := range s.rows {
			errs = append(errs, r.fault())
		}
	}
	if err := theLink(w, e); err != nil {
		return err
	}
	for _, of := range []func(engine) (tale, error){pileUp, cardMemory} {
		t, err := of(e)
		if err != nil {
			return err
		}
		if err := t.print(w); err != nil {
			return err
		}
		for _, s := range t.scenes {
			errs = append(errs, s.fault())
		}
	}
	if err := trust(w, e); err != nil {
		return err
	}
	if err := ours(w); err != nil {
		return err
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w:\n%w", errOff, err)
	}
	return nil
}

// lines prints a table of cells, as Markdown does.
func lines(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	for i, cells := range rows {
		for _, c := range cells {
			_, _ = fmt.Fprintf(t, "| %s\t", c) // fails in Flush
		}
		_, _ = fmt.Fprintln(t, "|")
		if i == 0 {
			for range cells {
				_, _ = fmt.Fprint(t, "|---\t")
			}
			_, _ = fmt.Fprintln(t, "|")
		}
	}
	return t.Flush()
}

func (s section) print(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "\n## %s\n\n%s\n\n", s.title, s.text); err != nil {
		return err
	}
	rows := [][]string{{"", "", "published", "predicted", "error", "does not fit because"}}
	for _, r := range s.rows {
		rows = append(rows, []string{r.what, r.unit, fmt.Sprintf("%g", r.published), fmt.Sprintf("%.4g", r.predicted), fmt.Sprintf("%+.1f%%", 100*r.err()), r.off})
	}
	return lines(w, rows)
}
