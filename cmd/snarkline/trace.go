package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/inputs"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/outfile"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/trace"
)

// traceCmd looks at recordings.
type traceCmd struct {
	Info   traceInfoCmd   `cmd:"" help:"Say what was recorded: the run, its peaks explained, its stages."`
	Export traceExportCmd `cmd:"" help:"Write a recording for Perfetto, pprof or a spreadsheet."`
}

// Help is the longer text of `snarkline trace --help`.
func (*traceCmd) Help() string {
	return `A recording is made by prove or demo with --trace:

  snarkline prove --key circuit.zkey --witness witnesses/ --trace run.trace
  snarkline trace info run.trace
  snarkline trace export run.trace --perfetto run.json --pprof peak.pprof --csv run/

A run that was killed leaves a recording that is good up to a moment before.`
}

// readTrace reads a recording that the command was given.
func (a *app) readTrace(path string) (*trace.Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, inputError(err)
	}
	defer func() { _ = f.Close() }()
	t, err := trace.Read(reader{a.ctx, f})
	if err != nil {
		return nil, inputErrorf("%s: %w", path, err)
	}
	return t, nil
}

// traceInfoCmd says what is in a recording.
type traceInfoCmd struct {
	File string `arg:"" name:"file" help:"A recording."`
}

// traceInfo is the result for --json. Times are nanoseconds.
type traceInfo struct {
	File    string               `json:"file"`
	Program string               `json:"program"`
	Started string               `json:"started"`
	Graph   string               `json:"graph"`
	Cores   int                  `json:"cores"`
	Memory  int64                `json:"memory_bytes"`
	Labels  map[string]string    `json:"labels,omitempty"`
	Budget  alloc.Amount         `json:"budget"`
	Wall    time.Duration        `json:"wall_ns"`
	Cut     bool                 `json:"cut"`
	Error   string               `json:"error,omitempty"`
	Items   int                  `json:"items"`
	Failed  int                  `json:"failed"`
	Calls   int                  `json:"calls"`
	Buffers int                  `json:"buffers"`
	Peaks   []tracePeak          `json:"peaks"`
	Stages  []trace.StageSummary `json:"stages"`
}

// tracePeak is the peak of a space.
type tracePeak struct {
	Space  alloc.Space   `json:"space"`
	At     time.Duration `json:"at_ns"`
	Bytes  int64         `json:"bytes"`
	Shares []trace.Share `json:"shares"`
}

func infoOf(path string, t *trace.Trace) *traceInfo {
	r := &traceInfo{
		File: path, Program: t.Meta.Program, Started: t.Meta.Started, Graph: t.Graph.Name, Cores: t.Meta.Cores, Memory: t.Meta.Memory,
		Labels: t.Meta.Labels, Budget: t.Meta.Budget, Wall: t.Wall, Cut: t.Cut, Error: t.Err,
		Calls: len(t.Calls), Buffers: len(t.Buffers), Stages: t.Stages(),
	}
	for i := range t.Items {
		switch it := &t.Items[i]; {
		case it.Left == trace.Never:
		case it.Err == "":
			r.Items++
		default:
			r.Failed++
		}
	}
	for _, s := range t.Spaces() {
		p := tracePeak{Space: s}
		p.At, p.Bytes, p.Shares = t.Peak(s)
		r.Peaks = append(r.Peaks, p)
	}
	return r
}

// Run prints what was recorded.
func (c *traceInfoCmd) Run(a *app) error {
	t, err := a.readTrace(c.File)
	if err != nil {
		return err
	}
	r := infoOf(c.File, t)
	return a.result(r, r.write)
}

func (r *traceInfo) write(w io.Writer) error {
	var b strings.Builder
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s%s\n", label, fmt.Sprintf(format, args...))
	}
	line("run", "%s", strings.TrimSuffix(fmt.Sprintf("%s, graph %s, %s", r.Program, r.Graph, r.Started), ", ")) // a simulated run has no date
	machine := fmt.Sprintf("%d cores", r.Cores)
	if r.Memory > 0 {
		machine += ", " + sizeText(r.Memory)
	}
	line("machine", "%s", machine)
	if !r.Budget.IsZero() {
		line("budget", "%v", r.Budget)
	}
	if r.Labels["curve"] != "" {
		line("circuit", "%s, domain %s, %s constraints", r.Labels["curve"], r.Labels["domain"], r.Labels["constraints"])
	}
	line("items", "%d done, %d failed or made again, in %s", r.Items, r.Failed, brief(r.Wall))
	if r.Cut {
		line("cut", "the recording ends before the run did")
	}
	if r.Error != "" {
		line("error", "%s", r.Error)
	}
	for _, p := range r.Peaks {
		line("peak", "%v at %s", alloc.BytesIn(p.Space, p.Bytes), brief(p.At))
		for _, s := range p.Shares {
			line("", "%s", shareText(s))
		}
	}
	b.WriteByte('\n')
	tw := tabwriter.NewWriter(&b, 0, 8, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(tw, "stage\tworkers\titems\tmean\tp95\tbusy\twaits in\twaits out\tqueue\t") // into memory
	for _, s := range r.Stages {
		if s.Kind != pipeline.KindStage && s.Kind != pipeline.KindSink {
			continue
		}
		_, _ = fmt.Fprintf(tw, "%s\t%d\t%d\t%s\t%s\t%.0f%%\t%s\t%s\t%d\t\n", s.Stage, s.Workers, s.Items, brief(s.Mean), brief(s.P95),
			100*s.Utilisation, brief(s.WaitIn), brief(s.WaitOut), s.Length)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// itemsText is a number of items in words.
func itemsText(n int) string {
	switch n {
	case 0:
		return "no item"
	case 1:
		return "1 item"
	}
	return fmt.Sprintf("%d items", n)
}

// shareText says what a share of a peak is.
func shareText(s trace.Share) string {
	items := itemsText(s.Items)
	what := map[trace.State]string{trace.Held: "held by ", trace.Queued: "waits before ", trace.Pending: "waits in ", trace.Other: "elsewhere, made by "}[s.State]
	if s.State == trace.Other {
		return fmt.Sprintf("%10s  %s%s", sizeText(s.Bytes), what, s.Stage)
	}
	return fmt.Sprintf("%10s  %s%s, of %s", sizeText(s.Bytes), what, s.Stage, items)
}

// brief is a time to three digits or so.
func brief(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(10 * time.Nanosecond).String()
}

// traceExportCmd converts a recording.
type traceExportCmd struct {
	File     string `arg:"" name:"file" help:"A recording."`
	Perfetto string `placeholder:"FILE" help:"Write JSON for ui.perfetto.dev or chrome://tracing: a track for each worker, counters of bytes and queues."`
	Pprof    string `placeholder:"FILE" help:"Write a profile of the bytes by stage at the peak, for go tool pprof."`
	CSV      string `name:"csv" placeholder:"DIR" help:"Write items.csv, calls.csv and buffers.csv into a folder."`
}

// exported is one file to write.
type exported struct {
	flag, path string
	write      func(io.Writer) error
}

// Run writes what was asked for.
func (c *traceExportCmd) Run(a *app) error {
	if c.Perfetto == "" && c.Pprof == "" && c.CSV == "" {
		return usagef("nothing to write: give --perfetto, --pprof or --csv")
	}
	t, err := a.readTrace(c.File)
	if err != nil {
		return err
	}
	var all []exported
	if c.Perfetto != "" {
		all = append(all, exported{"--perfetto", c.Perfetto, t.WritePerfetto})
	}
	if c.Pprof != "" {
		all = append(all, exported{"--pprof", c.Pprof, t.WritePprof})
	}
	if c.CSV != "" {
		if err := os.MkdirAll(c.CSV, 0o777); err != nil {
			return fmt.Errorf("--csv: make the folder: %w", err)
		}
		for _, e := range []exported{{"", "items.csv", t.WriteItemsCSV}, {"", "calls.csv", t.WriteCallsCSV}, {"", "buffers.csv", t.WriteBuffersCSV}} {
			all = append(all, exported{"--csv", filepath.Join(c.CSV, e.path), e.write})
		}
	}
	claims := &inputs.Claims{}
	if err := claims.Read(c.File, "the recording"); err != nil {
		return usagef("%w", err)
	}
	for _, e := range all {
		if err := claimWrites(claims, file{e.flag, e.path}); err != nil {
			return err
		}
	}
	var paths []string
	for _, e := range all {
		if err := outfile.Stream(e.path, a.until(e.write)); err != nil {
			return fmt.Errorf("%s: %w", e.flag, err)
		}
		if !outfile.IsStream(e.path) {
			paths = append(paths, e.path)
		}
	}
	return a.result(struct {
		OK    bool     `json:"ok"`
		Files []string `json:"files"`
	}{true, paths}, func(w io.Writer) error {
		for _, p := range paths {
			if _, err := fmt.Fprintln(w, p); err != nil {
				return err
			}
		}
		return nil
	})
}
