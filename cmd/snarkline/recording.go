package main

import (
	"fmt"

	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/trace"
)

// recordFlags are the flags of commands whose run can be recorded.
type recordFlags struct {
	Trace string `group:"measure" placeholder:"FILE" help:"Record the run: what waited, worked and held memory, and when. trace, report and plan read it."`
}

// traceFile is where the recording goes, with its flag.
func (f *recordFlags) traceFile() file { return file{"--trace", f.Trace} }

// recording is a run that is recorded, or one that is not.
type recording struct {
	path string
	rec  *trace.Recorder // nil: it is not

	procs *processors
}

// record begins to record the run of a batch, if that is asked for. The file is
// written as the run goes on, so that one that is killed leaves what there was.
func (a *app) record(b *batch) (*recording, error) {
	r := &recording{path: b.trace}
	if r.path == "" {
		return r, nil
	}
	key := b.prover.Key
	meta := trace.Meta{Program: "snarkline " + b.command, Labels: map[string]string{
		"version": buildVersion().Version, "curve": key.Curve.String(), "domain": fmt.Sprint(key.Domain.Size()),
		"constraints": fmt.Sprint(key.NbConstraints), "wires": fmt.Sprint(key.NbWires), "basis": key.Basis.String(),
		"items": fmt.Sprint(b.total), "ordered": fmt.Sprint(b.ordered),
	}}
	meta.Devices, meta.Links = b.procs.recorded()
	r.procs = b.procs
	var err error
	if r.rec, err = trace.Create(r.path, trace.WithMeta(meta)); err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	return r, nil
}

// options make a graph tell the recorder.
func (r *recording) options() []pipeline.Option {
	if r.rec == nil {
		return nil
	}
	return []pipeline.Option{r.rec.Option()}
}

// end writes what is left of the recording.
func (r *recording) end(report *pipeline.Report) error {
	if r.rec == nil {
		return nil
	}
	r.rec.Measured(r.procs.recorded())
	if err := r.rec.Close(report); err != nil {
		return fmt.Errorf("--trace %s: %w", r.path, err)
	}
	return nil
}
