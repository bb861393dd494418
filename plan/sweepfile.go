package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// The results file of a sweep has a line of JSON for its meaning and one for
// each run. It is only appended to, a line with one write, so that a sweep that
// is cut off anywhere leaves a file that the next one goes on from.

// sweepFormat is the version in the first line.
const sweepFormat = 1

type fileHead struct {
	Format  int               `json:"snarkline_sweep"`
	Meaning map[string]string `json:"meaning"`
}

type fileRun struct {
	Key       string   `json:"key"` // Point.Key
	Simulated bool     `json:"simulated,omitempty"`
	Outcome   *Outcome `json:"outcome"`
}

// MeaningError says that the results of a file cannot be put beside new ones.
type MeaningError struct {
	File  string
	Field string // of Runner.Meaning
	Was   string // in the file; empty: not there
	Now   string
}

// Error names the file, the field and both values.
func (e *MeaningError) Error() string {
	show := func(s string) string {
		if s == "" {
			return "nothing"
		}
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%s holds results of another sweep: its %s is %s, now it is %s; give another file or remove this one",
		e.File, e.Field, show(e.Was), show(e.Now))
}

// ErrNotResults is what a file is called that no sweep has written.
var ErrNotResults = errors.New("not a results file of a sweep")

// results is an open results file and what it holds.
type results struct {
	path  string
	f     *os.File // nil: results are kept in memory alone
	known map[runKey]*Outcome
}

type runKey struct {
	key       string
	simulated bool
}

// openResults opens or makes the file. An empty path keeps results in memory.
func openResults(path string, meaning map[string]string) (_ *results, err error) {
	r := &results{path: path, known: make(map[runKey]*Outcome)}
	if path == "" {
		return r, nil
	}
	if r.f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, fmt.Errorf("results of the sweep: %w", err)
	}
	defer func() {
		if err != nil {
			_ = r.f.Close()
		}
	}()
	if err := unix.Flock(int(r.f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("results of the sweep: %s is in use by another sweep", path)
		}
		return nil, fmt.Errorf("results of the sweep: lock %s: %w", path, err)
	}
	text, err := io.ReadAll(r.f)
	if err != nil {
		return nil, fmt.Errorf("results of the sweep: read %s: %w", path, err)
	}
	whole, err := r.read(text, meaning)
	if err != nil {
		return nil, err
	}
	if whole < len(text) { // the line that was being written when the sweep was cut off
		if err := r.f.Truncate(int64(whole)); err != nil {
			return nil, fmt.Errorf("results of the sweep: cut %s to its last whole line: %w", path, err)
		}
	}
	if _, err := r.f.Seek(int64(whole), io.SeekStart); err != nil {
		return nil, fmt.Errorf("results of the sweep: %s: %w", path, err)
	}
	if whole == 0 {
		return r, r.append(fileHead{sweepFormat, meaning})
	}
	return r, nil
}

// read takes in what the file holds, and says how much of it is whole lines.
func (r *results) read(text []byte, meaning map[string]string) (whole int, err error) {
	for line := 1; ; line++ {
		end := bytes.IndexByte(text[whole:], '\n')
		if end < 0 {
			break
		}
		one := text[whole : whole+end]
		whole += end + 1
		if line == 1 {
			if err := r.head(one, meaning); err != nil {
				return 0, err
			}
			continue
		}
		var run fileRun
		if err := json.Unmarshal(one, &run); err != nil {
			return 0, fmt.Errorf("%s:%d: no result of a sweep: %w", r.path, line, err)
		}
		if run.Outcome == nil {
			return 0, fmt.Errorf("%s:%d: no result of a sweep: it has no outcome", r.path, line)
		}
		r.known[runKey{run.Key, run.Simulated}] = run.Outcome
	}
	if whole == 0 && len(text) > 0 && !bytes.HasPrefix(text, []byte(`{"snarkline_sweep"`)[:min(len(text), 18)]) {
		return 0, fmt.Errorf("%s:1: %w", r.path, ErrNotResults)
	}
	return whole, nil
}

func (r *results) head(line []byte, meaning map[string]string) error {
	var h fileHead
	if err := json.Unmarshal(line, &h); err != nil || h.Format == 0 {
		return fmt.Errorf("%s:1: %w", r.path, ErrNotResults)
	}
	if h.Format != sweepFormat {
		return fmt.Errorf("%s:1: its format is version %d, this program writes %d", r.path, h.Format, sweepFormat)
	}
	fields := slices.Sorted(maps.Keys(meaning))
	for _, k := range slices.Sorted(maps.Keys(h.Meaning)) {
		if _, ok := meaning[k]; !ok {
			fields = append(fields, k)
		}
	}
	for _, k := range fields {
		if h.Meaning[k] != meaning[k] {
			return &MeaningError{File: r.path, Field: k, Was: h.Meaning[k], Now: meaning[k]}
		}
	}
	return nil
}

// get is what is known of a point.
func (r *results) get(p Point, simulated bool) *Outcome { return r.known[runKey{p.Key(), simulated}] }

// put notes an outcome.
func (r *results) put(p Point, simulated bool, o *Outcome) error {
	k := runKey{p.Key(), simulated}
	r.known[k] = o
	return r.append(fileRun{k.key, simulated, o})
}

func (r *results) append(v any) error {
	if r.f == nil {
		return nil
	}
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("results of the sweep: %w", err)
	}
	if _, err := r.f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("results of the sweep: write %s: %w", r.path, err)
	}
	return nil
}

func (r *results) close() error {
	if r.f == nil {
		return nil
	}
	if err := r.f.Close(); err != nil {
		return fmt.Errorf("results of the sweep: close %s: %w", r.path, err)
	}
	return nil
}
