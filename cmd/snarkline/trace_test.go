package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/stages"
	"github.com/snarkline/snarkline/trace"
)

// TestTrace records the demonstration and looks at what was recorded in every way
// that the command has.
func TestTrace(t *testing.T) {
	dir := t.TempDir()
	path, report := filepath.Join(dir, "run.trace"), filepath.Join(dir, "report.json")
	sl(t, codeOK, "demo", "--partitions", "5", "--log-constraints", "11", "--curve", "bn254", "--quiet", "--trace", path, "--report", report)
	if alloc.Default().Observed() {
		t.Error("memory is observed when the command has ended")
	}
	tr, err := trace.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	rep := decode[runReport](t, string(text))
	if _, peak := tr.CountTracked(alloc.Host); peak != rep.Memory.Space(alloc.Host).Peak {
		t.Errorf("the recording peaks at %d, the tracker at %d", peak, rep.Memory.Space(alloc.Host).Peak)
	}
	if tr.Wall != rep.Pipeline.Wall || tr.Meta.Budget[alloc.Host] != int64(rep.Settings.Budget["host"]) || tr.Meta.Labels["curve"] != "bn254" || tr.Meta.Program != "snarkline demo" {
		t.Errorf("wall %v, meta %+v", tr.Wall, tr.Meta)
	}
	for _, s := range tr.Stages() {
		if got, want := int64(s.Items), rep.Pipeline.Stage(s.Stage).Items; got != want {
			t.Errorf("%s: %d items, the report says %d", s.Stage, got, want)
		}
	}
	for _, it := range tr.Items {
		if len(it.Needs) == 0 || it.Err != "" {
			t.Errorf("item %+v", it)
		}
	}
	own := 0
	for _, b := range tr.Buffers {
		if b.Born > 0 && b.Call == trace.None {
			t.Errorf("a buffer made in the run belongs to no call: %+v", b)
		}
		if b.Call != trace.None {
			own++
		}
	}
	if own < 5*3 {
		t.Errorf("calls made %d buffers", own)
	}

	info := sl(t, codeOK, "trace", "info", path)
	for _, want := range []string{"snarkline demo", "budget", "bn254, domain 2048", "5 done", "peak", "held by", stages.NameSynthesize} {
		if !strings.Contains(info.stdout, want) {
			t.Errorf("%q is missing in\n%s", want, info.stdout)
		}
	}
	j := decode[traceInfo](t, sl(t, codeOK, "trace", "info", "--json", path).stdout)
	if j.Items != 5 || j.Failed != 0 || j.Cut || len(j.Peaks) != 1 || len(j.Stages) != len(tr.Graph.Nodes) || j.Wall != tr.Wall {
		t.Errorf("%+v", j)
	}

	chrome, pprof, csv := filepath.Join(dir, "run.json"), filepath.Join(dir, "peak.pprof"), filepath.Join(dir, "csv")
	out := sl(t, codeOK, "trace", "export", path, "--perfetto", chrome, "--pprof", pprof, "--csv", csv)
	if got := strings.Fields(out.stdout); len(got) != 5 || got[0] != chrome {
		t.Errorf("it wrote %q", got)
	}
	if text, err = os.ReadFile(chrome); err != nil || !json.Valid(text) {
		t.Errorf("the JSON for Perfetto: %v", err)
	}
	if got := files(t, csv); strings.Join(got, " ") != "buffers.csv calls.csv items.csv" {
		t.Errorf("CSV: %q", got)
	}
	if gocmd, err := exec.LookPath("go"); err == nil {
		top, err := exec.Command(gocmd, "tool", "pprof", "-top", pprof).CombinedOutput()
		if err != nil || !strings.Contains(string(top), "held") {
			t.Errorf("pprof: %v\n%s", err, top)
		}
	}
}

// TestTraceOfAKilledRun: a file that was cut short is told as that.
func TestTraceOfAKilledRun(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "run.trace")
	sl(t, codeOK, "demo", "--partitions", "2", "--log-constraints", "11", "--curve", "bn254", "--quiet", "--trace", path)
	cut := copyFile(t, path, filepath.Join(dir, "cut.trace"), func(b []byte) []byte { return b[:len(b)-10] })
	if out := sl(t, codeOK, "trace", "info", cut); !strings.Contains(out.stdout, "ends before the run did") {
		t.Errorf("%s", out.stdout)
	}
	bad := copyFile(t, path, filepath.Join(dir, "bad.trace"), func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	if out := sl(t, codeInput, "trace", "info", bad); !strings.Contains(out.stderr, "bad.trace: recording: frame at offset ") {
		t.Errorf("%s", out.stderr)
	}
}

func TestTraceErrors(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("no recording at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{codeInput, "missing.trace", []string{"trace", "info", filepath.Join(dir, "missing.trace")}},
		{codeInput, "other: recording: header at offset 0: it is no recording", []string{"trace", "info", other}},
		{codeUsage, "--perfetto, --pprof or --csv", []string{"trace", "export", other}},
		{codeInput, "it is no recording", []string{"trace", "export", other, "--csv", dir}},
		{codeInternal, "--trace: ", []string{"demo", "--trace", filepath.Join(dir, "no", "folder")}},
		{codeUsage, "--trace", []string{"prove", "--key", other, "--witness", filepath.Join(dir, "w.wtns"), "--trace", other}},
	} {
		if r := sl(t, c.code, c.args...); !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: %q is missing in\n%s", strings.Join(c.args, " "), c.want, r.stderr)
		}
	}
}

// TestTraceFromAFile: the flag may stand in a settings file.
func TestTraceFromAFile(t *testing.T) {
	dir := t.TempDir()
	path, conf := filepath.Join(dir, "run.trace"), filepath.Join(dir, "snarkline.toml")
	if err := os.WriteFile(conf, []byte("[demo]\ntrace = '"+path+"'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sl(t, codeOK, "demo", "--partitions", "1", "--log-constraints", "11", "--curve", "bn254", "--quiet", "--config", conf)
	if _, err := trace.ReadFile(path); err != nil {
		t.Error(err)
	}
}
