package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/outfile"
	"github.com/snarkline/snarkline/report"
)

// reportCmd draws a recording.
type reportCmd struct {
	File   string `arg:"" name:"file" help:"A recording, as prove and demo write with --trace, and plan and tune with --record."`
	Output string `short:"o" placeholder:"FILE" help:"Where the page goes (default: beside the recording, with the ending .html)."`
}

// Help is the longer text of `snarkline report --help`.
func (*reportCmd) Help() string {
	return `Draws a recorded run as one HTML page: the graph with its queues, memory by stage
and by state with the moment of the peak explained, who worked on what when, and
a table of the stages. The page holds everything that it needs and opens from
disk; it fetches nothing.

  snarkline prove --key circuit.zkey --witness witnesses/ --trace run.trace
  snarkline report run.trace

A recording of a run that was killed gives a page of what was written by then.`
}

// reportResult is the result for --json.
type reportResult struct {
	OK   bool   `json:"ok"`
	File string `json:"file"`
}

// Run writes the page.
func (c *reportCmd) Run(a *app) error {
	path := c.Output
	if path == "" {
		if st, err := os.Stat(c.File); err == nil && !st.Mode().IsRegular() {
			return usagef("-o: say where the page goes; %s is no file that it could stand beside", c.File)
		}
		path = strings.TrimSuffix(c.File, filepath.Ext(c.File)) + ".html"
	}
	claims, err := a.claims(file{"the recording", c.File})
	if err != nil {
		return err
	}
	if err := claimWrites(claims, file{"-o", path}); err != nil {
		return err
	}
	if err := a.writable(file{"-o", path}); err != nil {
		return err
	}
	t, err := a.readTrace(c.File)
	if err != nil {
		return err
	}
	if err := outfile.Stream(path, a.until(func(w io.Writer) error { return report.Write(w, t) })); err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	if outfile.IsStream(path) {
		a.answered = true // the page itself is what was asked for
		return nil
	}
	return a.result(reportResult{true, path}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, path)
		return err
	})
}
