package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/outfile"
	"github.com/snarkline/snarkline/pipeline"
)

// runReport is the file of --report. Bytes and nanoseconds are whole numbers.
type runReport struct {
	Command  string            `json:"command"`
	Version  string            `json:"version"`
	Time     time.Time         `json:"time"`
	Seconds  float64           `json:"seconds"`
	Settings pipeline.Settings `json:"settings"`
	Key      any               `json:"key"`
	Pipeline *pipeline.Report  `json:"pipeline"`
	Memory   alloc.Snapshot    `json:"memory"`
	Resident residentReport    `json:"resident"`
	Result   any               `json:"result"`
}

// residentReport is memory of the process in bytes; 0 where the system does
// not say.
type residentReport struct {
	Before   int64 `json:"tracked_before"` // key and circuit, before the run
	Peak     int64 `json:"peak"`           // of the process, mapped files included
	AnonPeak int64 `json:"anon_peak"`      // apart from mapped files, while proving
}

// writeReport writes the file of --report, if one is wanted.
func (a *app) writeReport(command string, out *outcome, key, result any) error {
	if a.flags.Report == "" || out == nil {
		return nil
	}
	r := runReport{
		Command: command, Version: buildVersion().Version, Time: time.Now().UTC(), Seconds: out.seconds,
		Settings: out.settings, Key: key, Pipeline: out.report, Memory: out.memory, Result: result,
		Resident: residentReport{Before: out.base, Peak: out.resident(), AnonPeak: out.anon},
	}
	return outfile.Stream(a.flags.Report, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	})
}

// showTable prints the stages with their times and memory to stderr.
func (a *app) showTable(out *outcome) error {
	if a.flags.Quiet || out == nil || out.report == nil {
		return nil
	}
	var b strings.Builder
	if err := out.report.WriteTable(&b); err != nil {
		return err
	}
	host := out.memory.Space(alloc.Host)
	line := func(label, format, value string, args ...any) {
		note := fmt.Sprintf(format, args...)
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-22s%19s  %s", label, value, note), " ") + "\n")
	}
	b.WriteByte('\n')
	if host.MappedPeak > 0 {
		line("key and files, mapped", "(the system drops their pages when it needs them)", sizeText(host.MappedPeak))
	}
	if out.base > 0 {
		line("key and circuit", "(there before the run, not drawn from the budget)", sizeText(out.base))
	}
	line("tracked, peak", "(of everything at one moment)", sizeText(host.Peak))
	if out.anon > 0 {
		line("resident, peak", "(as the system sees it, mapped files apart)", sizeText(out.anon))
	}
	out.procs.lines(line)
	if _, err := io.WriteString(a.stderr, b.String()); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	return nil
}

// peak is the most that was tracked in host memory at any one moment, in bytes.
func (o *outcome) peak() int64 { return o.memory.Space(alloc.Host).Peak }

// resident is the peak of the process's resident memory, in bytes.
func (o *outcome) resident() int64 {
	r, err := alloc.ResidentNow()
	if err != nil {
		return 0
	}
	return r.Peak
}
