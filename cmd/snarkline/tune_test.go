package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/pipeline"
)

func TestTuneFromModel(t *testing.T) {
	model := write(t, "m.toml", testModel)
	out := filepath.Join(t.TempDir(), "snarkline.toml")
	r := sl(t, codeOK, "tune", "--json", "--from", model, "--budget", "2GiB", "-o", out, "--max-workers", "4", "--device", "cpu")
	res := decode[tuneResult](t, r.stdout)
	tu := res.Tuning
	if !res.OK || tu.Choice.Simulated == nil || tu.Choice.Measured != nil || tu.Choice.Simulated.Throughput <= tu.Start.Simulated.Throughput || len(tu.Limits) == 0 || len(tu.Buys) != 2 {
		t.Fatalf("%+v", tu)
	}
	// The file is one that --config takes, and says what was chosen.
	c, err := parse(t, "prove", "--key", "k", "--witness", "w", "--config", out)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.settings(pipeline.Settings{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if s.Budget["host"] != 2<<30 || c.Device.String() != "cpu" || len(s.Stages) != 8 {
		t.Errorf("%+v", s)
	}
	for name, st := range tu.Choice.Settings.Stages {
		if s.Stages[name] != st {
			t.Errorf("%s: %+v in the file, %+v chosen", name, s.Stages[name], st)
		}
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "# predicted: ") || strings.Contains(string(text), "# measured") {
		t.Errorf("%s", text)
	}
	again := sl(t, codeUsage, "tune", "--from", model, "-o", out)
	if !strings.Contains(again.stderr, "--force") {
		t.Errorf("%s", again.stderr)
	}
	if now, _ := os.ReadFile(out); string(now) != string(text) {
		t.Error("the file has changed")
	}
	r = sl(t, codeOK, "tune", "--from", model, "-o", out, "--force", "h-msm.workers=1..3", "h-msm.capacity=1,unbounded")
	for _, want := range []string{"start: ", "predicted: ", "limited by ", "found in ", "written to " + out} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q is missing in %s", want, r.stdout)
		}
	}
}

func TestTuneRefuses(t *testing.T) {
	model := write(t, "m.toml", testModel)
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{codeMemory, "can never fit", []string{"tune", "--from", model, "--budget", "1MiB"}},
		{codeUsage, `no stage "nt"`, []string{"tune", "nt.workers=1", "--from", model}},
		{codeUsage, `no stage "nt"`, []string{"tune", "--set", "nt.workers=1", "--from", model}},
		{codeUsage, "--record", []string{"tune", "--from", model, "--record", "x"}},
		{codeInput, "none.toml", []string{"tune", "--from", "none.toml"}},
		{codeInternal, "--output", []string{"tune", "--from", model, "-o", "none/x.toml"}},
		{codeUsage, "prove or demo", []string{"tune", "--", "verify"}},
	} {
		r := sl(t, c.code, c.args...)
		if !strings.Contains(r.stderr, c.want) {
			t.Errorf("%v: %q is missing in %s", c.args, c.want, r.stderr)
		}
	}
	if got := files(t, "."); len(got) > 0 {
		t.Errorf("left %v", got)
	}
}

// TestTuneProves: a real run of the choice, whose figures stand beside the
// predicted ones.
func TestTuneProves(t *testing.T) {
	t.Setenv(asCommand, "1")
	model := write(t, "m.toml", testModel)
	out := filepath.Join(t.TempDir(), "s.toml")
	r := sl(t, codeOK, append([]string{"tune", "--from", model, "--budget", "2GiB", "-o", out, "--max-workers", "2"}, smallDemo...)...)
	if !strings.Contains(r.stdout, "measured: ") || !strings.Contains(r.stdout, "throughput predicted ") {
		t.Errorf("%s", r.stdout)
	}
	if text, err := os.ReadFile(out); err != nil || !strings.Contains(string(text), "# measured: ") {
		t.Errorf("%v %s", err, text)
	}
}
