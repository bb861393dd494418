package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/inputs"
	"github.com/snarkline/snarkline/pipeline"
)

// workload is the command line that sweep and tune run again and again, with
// other settings each time: prove or demo, given behind "--".
type workload struct {
	args []string // the command and its flags
	name string   // the command
	cli  cli      // as parsed
}

// takesWorkload are the commands behind whose "--" there is a command line.
var takesWorkload = []string{"sweep", "tune"}

// cutWorkload takes the workload off the arguments of a command that has one.
func cutWorkload(args []string) (own, work []string) {
	i := slices.Index(args, "--")
	if i < 0 || !slices.ContainsFunc(args[:i], func(s string) bool { return slices.Contains(takesWorkload, s) }) {
		return args, nil
	}
	return args[:i], args[i+1:]
}

// newWorkload reads a workload, demo if there is none.
func newWorkload(args []string) (*workload, error) {
	if len(args) == 0 {
		args = []string{"demo"}
	}
	w := &workload{args: args, name: args[0]}
	if w.name != "prove" && w.name != "demo" {
		return nil, usagef("behind -- stands prove or demo with its flags, not %q", w.name)
	}
	if slices.ContainsFunc(args, func(s string) bool { return s == "--help" || s == "-h" }) {
		return nil, usagef("`snarkline %s --help` is a command of its own", w.name)
	}
	p, err := newParser(&w.cli, io.Discard, io.Discard)
	if err != nil {
		return nil, err
	}
	if _, err := p.Parse(args); err != nil {
		return nil, usagef("behind --: %w", err)
	}
	g := &w.cli.globals
	for _, f := range []file{
		{"--report", g.Report}, {"--profile", g.Profile}, {"--offheap-profile", g.OffheapProfile},
		{"--trace", w.cli.Prove.Trace + w.cli.Demo.Trace},
		{"--proof", w.cli.Prove.Proof}, {"--public", w.cli.Prove.Public},
	} {
		if f.path != "" {
			return nil, usagef("behind --: leave out %s: every run would write there", f.flag)
		}
	}
	for _, live := range []liveFlags{w.cli.Prove.liveFlags, w.cli.Demo.liveFlags} {
		if live != (liveFlags{}) {
			return nil, usagef("behind --: leave out --live, --live-web, --metrics and --otlp: runs are watched one at a time, by prove and demo")
		}
	}
	if w.name == "prove" && slices.Contains(append(w.cli.Prove.Witness, append(w.cli.Prove.Input, w.cli.Prove.Files...)...), "-") {
		return nil, usagef("behind --: a list on standard input can be read only once; name the files")
	}
	return w, nil
}

// workloadReads are the files that a workload's flags name for reading. What is
// wrong with a workload newWorkload says.
func workloadReads(args []string) []file {
	w, err := newWorkload(args)
	if err != nil {
		return nil
	}
	p := w.cli.Prove
	return []file{{"--key", p.Key}, {"--vk", p.VK}, {"--circuit", p.Circuit}, {"--wasm", p.Wasm}, {"--pipeline", p.Pipeline}}
}

// settings are those that the workload's own flags make.
func (w *workload) settings() (pipeline.Settings, error) {
	return w.cli.settings(pipeline.Settings{}, w.cli.Prove.Pipeline != "")
}

// with is the command line with further flags, which win over its own.
func (w *workload) with(flags ...string) []string {
	at := slices.Index(w.args, "--")
	if at < 0 {
		at = len(w.args)
	}
	return slices.Concat(w.args[:at], flags, w.args[at:])
}

// repeat makes the workload n items long: the demonstration's partitions, or the
// witnesses of a batch, from the first again where they are fewer.
func (w *workload) repeat(ctx context.Context, n int) error {
	if n <= 0 {
		return nil
	}
	if w.name == "demo" {
		w.args = w.with("--partitions", fmt.Sprint(n))
		return nil
	}
	p := &w.cli.Prove
	sources, exts := append(inputs.Args{}, p.Witness...), []string{".wtns", ".wit", ".bin"}
	if p.Wasm != "" {
		sources, exts = append(inputs.Args{}, p.Input...), []string{".json"}
	}
	sources = append(sources, p.Files...)
	var paths []string
	for in, err := range sources.All(ctx, nil, exts...) {
		if err != nil {
			return inputError(err)
		}
		paths = append(paths, in.Path)
	}
	if len(paths) == 0 {
		return usagef("behind --: nothing to prove: give --witness, or --wasm and --input")
	}
	if len(paths) > n {
		return usagef("--items %d: behind -- there are %d inputs; name fewer", n, len(paths))
	}
	var more []string
	for i := len(paths); i < n; i++ {
		more = append(more, paths[i%len(paths)])
	}
	w.args = append(w.args, more...)
	return nil
}

// sayOnly are flags that change what a run prints and nothing else.
var sayOnly = []string{"-q", "--quiet", "--json", "--progress", "--no-progress", "--debug"}

// meaning is what runs of the workload must share to be compared: what is proved
// and on which machine.
func (w *workload) meaning() (map[string]string, error) {
	args := slices.DeleteFunc(slices.Clone(w.args), func(s string) bool { return slices.Contains(sayOnly, s) })
	m := map[string]string{"workload": strings.Join(args, " "), "machine": machineText()}
	if w.name == "prove" {
		for _, f := range []file{{"key", w.cli.Prove.Key}, {"circuit", w.cli.Prove.Circuit}} {
			if f.path == "" {
				continue
			}
			text, err := fingerprint(f.path)
			if err != nil {
				return nil, inputError(fmt.Errorf("--%s: %w", f.flag, err))
			}
			m[f.flag] = text
		}
	}
	return m, nil
}

// fingerprint tells files apart by their size and their first bytes, where keys
// have their points: to read 40 GiB for it would be too much.
func fingerprint(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	if _, err := io.CopyN(h, f, 1<<20); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return fmt.Sprintf("%d bytes, %s", st.Size(), hex.EncodeToString(h.Sum(nil)[:8])), nil
}
