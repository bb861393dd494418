package main

import (
	"os"
	"os/exec"
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
		{codeUsage, "--output would be written over the file of --from", []string{"tune", "--from", model, "-o", model, "--force"}},
		{codeUsage, "--output would be written over the file of --key", []string{"tune", "-o", "k.slk", "--", "prove", "--key", "k.slk", "--witness", "w"}},
		{codeUsage, "--output and --record would both", []string{"tune", "-o", "x.toml", "--record", "x.toml", "--", "demo"}},
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

// TestTuneRecords: a run is recorded, tuned by, and kept; plan reads what was
// kept, and what plan writes is a recording too.
func TestTuneRecords(t *testing.T) {
	t.Setenv(asCommand, "1")
	dir := t.TempDir()
	out, rec, sim := filepath.Join(dir, "s.toml"), filepath.Join(dir, "run.trace"), filepath.Join(dir, "sim.trace")
	r := sl(t, codeOK, append([]string{"tune", "--json", "--budget", "64MiB", "--record", rec, "-o", out, "--max-workers", "2", "--items", "6"}, smallDemo...)...)
	tu := decode[tuneResult](t, r.stdout).Tuning
	if m := tu.Choice.Measured; !m.OK() || m.Items != 6 || tu.Choice.Simulated.Items != 6 || tu.Choice.Settings.Budget["host"] != 64<<20 {
		t.Errorf("%+v", tu.Choice)
	}
	res := decode[planResult](t, sl(t, codeOK, "plan", rec, "--json", "--set", "synthesize.workers=2", "--record", sim).stdout)
	if len(res.Rows) != 3 || !res.Rows[0].Recorded || res.Rows[0].Prediction != nil || res.Rows[0].Outcome.Items != 6 || res.Rows[2].Outcome.Items != 6 {
		t.Fatalf("%+v", res)
	}
	recorded, same := res.Rows[0].Outcome, res.Rows[1].Outcome
	if recorded.Throughput <= 0 || recorded.Peak[0] <= 0 || recorded.Peak[0] > 64<<20 || recorded.Latency <= 0 || recorded.Stage("h-msm").Busy <= 0 {
		t.Errorf("%+v", recorded)
	}
	// How near is the business of the fit; that it is the same run is clear.
	if ratio := same.Throughput / recorded.Throughput; ratio < 0.3 || ratio > 3 {
		t.Errorf("recorded %v items/s, simulated %v", recorded.Throughput, same.Throughput)
	}
	again := decode[planResult](t, sl(t, codeOK, "plan", sim, "--json").stdout)
	if o := again.Rows[0].Outcome; o.Items != 6 || o.Wall.Round(1e6) != res.Rows[2].Outcome.Wall.Round(1e6) {
		t.Errorf("%+v was written as %+v", res.Rows[2].Outcome, o)
	}
}

// TestTuneForACard: --device-memory is the memory of the model's card, and what
// keys leave of it is the budget there.
func TestTuneForACard(t *testing.T) {
	machine := "[machine]\ncores = 8\nmemory = { host = \"16GiB\" }\n"
	model := write(t, "m.toml", strings.Replace(testModel, machine, `[machine]
cores = 8
memory = { host = "16GiB", device0 = "80GiB" }
base = { device0 = "1GiB" }
[[machine.device]]
name = "gpu"
space = "device0"
[[node.ntt.makes]]
name = "h"
space = "device0"
bytes = "1GiB"
readers = [ { node = "h-msm" } ]
`, 1))
	out := filepath.Join(t.TempDir(), "s.toml")
	var rate [2]float64
	for i, size := range []string{"2GiB", "16GiB"} {
		r := sl(t, codeOK, "tune", "--json", "--from", model, "--device-memory", size, "-o", out, "--force")
		c := decode[tuneResult](t, r.stdout).Tuning.Choice
		if d := c.Simulated.Peak[2]; d > int64(c.Settings.Budget["device0"]) || c.Settings.Budget["device0"] == 0 {
			t.Errorf("%s: peak %v, budget %v", size, c.Simulated.Peak, c.Settings.Budget)
		}
		rate[i] = c.Simulated.Throughput
		if text, err := os.ReadFile(out); err != nil || !strings.Contains(string(text), `device-memory = "`+size+`"`) {
			t.Errorf("%v %s", err, text)
		}
	}
	if rate[0] >= rate[1] {
		t.Errorf("%v items/s in 2 GiB, %v in 16 GiB", rate[0], rate[1])
	}
	if r := sl(t, codeMemory, "tune", "--from", model, "--device-memory", "1GiB", "-o", out, "--force"); !strings.Contains(r.stderr, "keys alone") {
		t.Errorf("%s", r.stderr)
	}
	sl(t, codeOK, "tune", "--from", model, "-o", out, "--force", "budget.device0=2GiB,4GiB", "h-msm.workers=1,2", "--budget", "4GiB")
	c, err := parse(t, "prove", "--key", "k", "--witness", "w", "--config", out)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := c.settings(pipeline.Settings{}, false); err != nil || s.Budget["device0"] < 2<<30 || s.Budget["host"] != 4<<30 {
		t.Errorf("%v %+v", err, s)
	}
}

// TestTuneToStandardOutput: the file alone goes there, and nothing has to be
// overwritten for it.
func TestTuneToStandardOutput(t *testing.T) {
	model := write(t, "m.toml", testModel)
	t.Setenv(asCommand, "1")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, "tune", "h-msm.workers=1,2", "--from", model, "-o", "/dev/stdout").Output()
	if err != nil || !strings.HasPrefix(string(out), "# Written by snarkline tune") || strings.Contains(string(out), "found in") {
		t.Errorf("%v %s", err, out)
	}
}

// TestTuneKeepsNoSettingThatFails: a choice whose real run fails is not written
// down, and is no success.
func TestTuneKeepsNoSettingThatFails(t *testing.T) {
	t.Setenv(asCommand, "1")
	model := write(t, "m.toml", "[machine]\ncores = 2\n[[node.synthesize.step]]\nseconds = 1\n") // takes no memory
	out := filepath.Join(t.TempDir(), "s.toml")
	r := sl(t, codeMemory, append([]string{"tune", "synthesize.workers=1,2", "--from", model, "--budget", "1MiB", "-o", out}, smallDemo...)...)
	if !strings.Contains(r.stderr, "the choice failed in its real run") || r.stdout != "" {
		t.Errorf("%s %s", r.stdout, r.stderr)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("the setting was written down")
	}
}
