package main

import (
	"context"
	"encoding/csv"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snarkline/snarkline/plan"
)

// testModel is a model of the standard pipeline.
const testModel = `
[machine]
cores = 8
memory = { host = "16GiB" }
[[node.synthesize.step]]
seconds = 1.6
cores = 1
[[node.synthesize.makes]]
name = "w"
bytes = "128MiB"
readers = [ { node = "batch-add" }, { node = "tail-msm" }, { node = "b_g2_msm" } ]
[[node.synthesize.makes]]
name = "abc"
bytes = "384MiB"
readers = [ { node = "ntt" }, { node = "h-msm" } ]
[[node.ntt.step]]
seconds = 0.5
cores = 2
[[node.h-msm.step]]
seconds = 1.1
cores = 3
[[node.tail-msm.step]]
seconds = 0.9
cores = 2
[[node.b_g2_msm.step]]
seconds = 0.7
cores = 2
`

// smallDemo is a workload of a second.
var smallDemo = []string{"--", "demo", "--log-constraints", "11", "--curve", "bn254", "--partitions", "4"}

func TestSweepSimulated(t *testing.T) {
	model := write(t, "m.toml", testModel)
	out := filepath.Join(t.TempDir(), "rows.csv")
	page := out + ".html"
	r := sl(t, codeOK, "sweep", "--json", "synthesize.workers=1..3", "h-msm.workers=1,2", "cores=4,8", "--budget", "2GiB", "--from", model, "--csv", out, "--html", page, "--items", "12")
	res := decode[sweepOutput](t, r.stdout)
	if !res.OK || len(res.Sweep.Rows) != 12 || res.Best == nil || res.Best.Choices["cores"] != "8" || len(res.Front) == 0 {
		t.Fatalf("%+v", res)
	}
	for _, row := range res.Sweep.Rows {
		if row.Simulated == nil || row.Simulated.Items != 12 || row.Measured != nil || row.Settings.Budget["host"] != 2<<30 || row.Simulated.Peak[0] > 2<<30 {
			t.Errorf("%+v", row)
		}
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if recs, err := csv.NewReader(strings.NewReader(string(text))).ReadAll(); err != nil || len(recs) != 13 || recs[0][2] != "cores" {
		t.Errorf("%v %v", err, recs)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "</html>") {
		t.Errorf("the page: %v", err)
	}
	table := sl(t, codeOK, "sweep", "synthesize.workers=1..3", "--from", model).stdout
	if !strings.Contains(table, "items/s") || !strings.Contains(table, "best: synthesize.workers=") || strings.Count(table, "simulated") != 3 {
		t.Errorf("%s", table)
	}
	// Failures are rows.
	r = sl(t, codeOK, "sweep", "--json", "budget.host=1MiB,1GiB", "--from", model)
	if res := decode[sweepOutput](t, r.stdout); res.Sweep.Rows[0].Simulated.Failure.Kind != plan.TooLarge || res.Best.Values[0] != "1GiB" {
		t.Errorf("%s", r.stdout)
	}
	// Two models of the same graph, by a choice.
	other := write(t, "n.toml", strings.Replace(testModel, "seconds = 1.1", "seconds = 0.1", 1))
	r = sl(t, codeOK, "sweep", "--json", "device=cpu,cuda:0", "--from", "device=cpu@"+model, "--from", "device=cuda:0@"+other)
	if res := decode[sweepOutput](t, r.stdout); res.Best.Choices["device"] != "cuda:0" {
		t.Errorf("%+v", res.Best)
	}
}

func TestSweepForReal(t *testing.T) {
	t.Setenv(asCommand, "1")
	results := filepath.Join(t.TempDir(), "sweep.jsonl")
	args := append([]string{"sweep", "--json", "synthesize.workers=1,2", "budget.host=1MiB,64MiB", "--results", results}, smallDemo...)
	res := decode[sweepOutput](t, sl(t, codeOK, args...).stdout)
	if len(res.Sweep.Rows) != 4 || res.Sweep.Ran != 4 || res.Best == nil || res.Best.Values[1] != "64MiB" {
		t.Fatalf("%+v", res.Sweep)
	}
	for _, row := range res.Sweep.Rows {
		o := row.Measured
		if row.Values[1] == "1MiB" {
			if o.Failure == nil || o.Failure.Kind != plan.TooLarge || !strings.Contains(o.Failure.Text, "a partition needs") {
				t.Errorf("%+v", o)
			}
			continue
		}
		workers := 0
		if s := o.Stage("synthesize"); s != nil {
			workers = s.Workers
		}
		if !o.OK() || o.Items != 4 || o.Throughput <= 0 || o.Peak[0] <= 0 || o.Peak[0] > 64<<20 || o.Resident <= 0 || row.Values[0] != string(rune('0'+workers)) {
			t.Errorf("%v: %+v", row.Values, o)
		}
	}
	if res = decode[sweepOutput](t, sl(t, codeOK, args...).stdout); res.Sweep.Ran != 0 || res.Sweep.Known != 4 {
		t.Errorf("%d run again", res.Sweep.Ran)
	}
	args[len(args)-1] = "5"
	r := sl(t, codeUsage, args...)
	if !strings.Contains(r.stderr, "--results: ") || !strings.Contains(r.stderr, "its workload is") {
		t.Errorf("%s", r.stderr)
	}
}

// TestSweepProves: the witnesses of a batch, as many times as --items says, and no
// proofs left behind.
func TestSweepProves(t *testing.T) {
	t.Setenv(asCommand, "1")
	at, err := filepath.Abs(bundled("bn128/vault"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	r := sl(t, codeOK, "sweep", "--json", "ntt.workers=1,2", "--items", "3", "--repeat", "2", "--", "prove", "--key", at+".zkey", "--witness", at+".wtns")
	res := decode[sweepOutput](t, r.stdout)
	for _, row := range res.Sweep.Rows {
		if o := row.Measured; !o.OK() || o.Items != 3 || o.Repeats != 2 {
			t.Errorf("%+v", o)
		}
	}
	if got := files(t, dir); len(got) > 0 {
		t.Errorf("left %v", got)
	}
	// No setting is to blame for a key that is not there.
	r = sl(t, codeInput, "sweep", "ntt.workers=1,2", "--", "prove", "--key", "none.zkey", "--witness", at+".wtns")
	if !strings.Contains(r.stderr, "none.zkey") {
		t.Errorf("%s", r.stderr)
	}
	r = sl(t, codeInput, "sweep", "ntt.workers=1,2", "--", "prove", "--key", at+".zkey", "--witness", "none.wtns")
	if !strings.Contains(r.stderr, "a run failed: ") || !strings.Contains(r.stderr, "none.wtns") {
		t.Errorf("%s", r.stderr)
	}
}

// TestSweepInterrupted: the run that is under way ends with the sweep, and what
// was found is kept.
func TestSweepInterrupted(t *testing.T) {
	t.Setenv(asCommand, "1")
	results := filepath.Join(t.TempDir(), "sweep.jsonl")
	ctx, cancel := context.WithCancelCause(t.Context())
	timer := time.AfterFunc(1500*time.Millisecond, func() { cancel(errInterrupted) })
	defer timer.Stop()
	begin := time.Now()
	r := invoke(ctx, nil, "sweep", "ntt.workers=1..50", "--results", results, "--", "demo", "--log-constraints", "11", "--curve", "bn254", "--partitions", "2")
	if r.code != codeInterrupted || time.Since(begin) > 9*time.Second || !strings.Contains(r.stderr, "interrupted") {
		t.Errorf("code %d after %v, %s", r.code, time.Since(begin), r.stderr)
	}
	if text, err := os.ReadFile(results); err != nil || !strings.HasPrefix(string(text), `{"snarkline_sweep":1`) {
		t.Errorf("%v %s", err, text)
	}
}

func TestSweepVerifies(t *testing.T) {
	t.Setenv(asCommand, "1")
	model := write(t, "m.toml", testModel)
	args := append([]string{"sweep", "--json", "synthesize.workers=1..3", "--from", model, "--verify", "1", "--budget", "1GiB"}, smallDemo...)
	res := decode[sweepOutput](t, sl(t, codeOK, args...).stdout)
	if res.Sweep.Ran != 4 || res.Best.Measured == nil || res.Best.Simulated == nil || res.Best.Measured.Items != 4 {
		t.Errorf("%+v", res)
	}
}

func TestSweepRefuses(t *testing.T) {
	model := write(t, "m.toml", testModel)
	broken := write(t, "broken.toml", "[machine]\ncoers = 3\n")
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{codeUsage, "axis=values", []string{"sweep"}},
		{codeUsage, `axis "ntt=1"`, []string{"sweep", "ntt.x=1", "--from", model}},
		{codeUsage, `no stage "nt"`, []string{"sweep", "nt.workers=1", "--from", model}},
		{codeUsage, `no stage "nt"`, []string{"sweep", "ntt.workers=1", "--set", "nt.workers=1", "--from", model}},
		{codeUsage, "axis colour", []string{"sweep", "colour=red", "--", "demo"}},
		{codeUsage, "no such choice", []string{"sweep", "colour=red", "--from", model}},
		{codeUsage, "needs --from", []string{"sweep", "ntt.workers=1", "--verify", "2"}},
		{codeUsage, "prove or demo", []string{"sweep", "ntt.workers=1", "--", "setup"}},
		{codeUsage, "leave out --proof", []string{"sweep", "ntt.workers=1", "--", "prove", "--key", "k", "--witness", "w", "--proof", "p"}},
		{codeUsage, "leave out --trace", []string{"sweep", "ntt.workers=1", "--", "demo", "--trace", "x"}},
		{codeUsage, "leave out --live", []string{"tune", "--", "demo", "--live"}},
		{codeUsage, "both", []string{"sweep", "ntt.workers=1", "--from", model, "--csv", "x", "--html", "x"}},
		{codeUsage, "behind --: ", []string{"sweep", "ntt.workers=1", "--", "prove", "--bogus"}},
		{codeUsage, "only once", []string{"sweep", "ntt.workers=1", "--", "prove", "--key", "k", "--witness", "-"}},
		{codeUsage, "nothing is run", []string{"sweep", "ntt.workers=1", "--from", model, "--", "demo"}},
		{codeUsage, "say what they are for", []string{"sweep", "ntt.workers=1", "--from", model, "--from", model}},
		{codeInput, "none.trace", []string{"sweep", "ntt.workers=1", "--from", "none.trace"}},
		{codeInput, "coers", []string{"sweep", "ntt.workers=1", "--from", broken}},
		{codeInternal, "--csv", []string{"sweep", "ntt.workers=1", "--from", model, "--csv", "none/rows.csv"}},
		{codeUsage, "--csv would be written over the file of --from", []string{"sweep", "ntt.workers=1", "--from", model, "--csv", model}},
		{codeUsage, "--html would be written over the file of --from", []string{"sweep", "ntt.workers=1", "--from", model, "--from", "device=cpu@k.trace", "--html", "k.trace"}},
		{codeUsage, "--csv would be written over the file of --key", []string{"sweep", "ntt.workers=1", "--csv", "k.slk", "--", "prove", "--key", "k.slk", "--witness", "w"}},
		{codeUsage, "more than a million million settings", []string{"sweep", "each.workers=1..100", "--from", model}},
		{codeInput, "--results: ", []string{"sweep", "ntt.workers=1", "--from", model, "--results", broken}},
		{codeUsage, "--report: prove and demo write it", []string{"sweep", "ntt.workers=1", "--from", model, "--report", "x"}},
	} {
		c.want = strings.Replace(c.want, "ntt=1", "ntt.x=1", 1)
		r := sl(t, c.code, c.args...)
		if !strings.Contains(r.stderr, c.want) {
			t.Errorf("%v: %q is missing in %s", c.args, c.want, r.stderr)
		}
	}
}

// TestSweepFindsNothing: a sweep without a setting to use says so by its code,
// and its rows are there all the same.
func TestSweepFindsNothing(t *testing.T) {
	model := write(t, "m.toml", testModel)
	for want, args := range map[string][]string{
		"no setting came to its end":       {"budget.host=1MiB,2MiB"},
		"no setting keeps within --within": {"synthesize.workers=1,2", "--within", "1MiB"},
	} {
		r := sl(t, codeMemory, append([]string{"sweep", "--json", "--from", model}, args...)...)
		res := decode[sweepOutput](t, r.stdout)
		if res.OK || res.Code != codeMemory || !strings.Contains(res.Error, want) || res.Best != nil || len(res.Sweep.Rows) != 2 || !strings.Contains(r.stderr, want) {
			t.Errorf("%s %s", r.stdout, r.stderr)
		}
	}
}

// TestSweepOfAllButWhatIsSaid: what a run prints does not make it another one.
func TestSweepOfAllButWhatIsSaid(t *testing.T) {
	var all []map[string]string
	for _, args := range [][]string{{"demo", "--partitions", "3"}, {"demo", "-q", "--partitions", "3", "--no-progress"}, {"demo", "--partitions", "4"}} {
		w, err := newWorkload(args)
		if err != nil {
			t.Fatal(err)
		}
		m, err := w.meaning()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	if !maps.Equal(all[0], all[1]) || maps.Equal(all[0], all[2]) {
		t.Errorf("%v", all)
	}
}

func TestFailedRun(t *testing.T) {
	for script, want := range map[string]plan.FailureKind{
		"kill -9 $$":  plan.Killed,
		"exit 137":    plan.Killed,
		"kill -11 $$": plan.Broken,
		"exit 6":      plan.TooLarge,
		"exit 1":      plan.Broken,
	} {
		o, err := failedRun(exec.Command("sh", "-c", script).Run(), "what it said")
		if err != nil || o.OK() || o.Failure.Kind != want {
			t.Errorf("%s: %+v %v", script, o, err)
		}
	}
	for script, code := range map[string]int{"exit 2": codeUsage, "exit 3": codeInput, "exit 4": codeUnsatisfied} {
		if _, err := failedRun(exec.Command("sh", "-c", script).Run(), "what it said"); exitCode(err) != code || !strings.Contains(err.Error(), "what it said") {
			t.Errorf("%s: %v", script, err)
		}
	}
	if _, err := failedRun(os.ErrNotExist, ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestTail(t *testing.T) {
	var errs tail
	for range 1000 {
		_, _ = errs.Write([]byte("a line of twenty bytes\n"))
	}
	_, _ = errs.Write([]byte("snarkline: what counts\nsnarkline: `snarkline --help` and more\n  [0] detail\n"))
	if got := errs.last(); got != "what counts" || len(errs.b) > 8<<10 {
		t.Errorf("%q of %d", got, len(errs.b))
	}
	if got := (&tail{[]byte("panic: x\n")}).last(); got != "panic: x" {
		t.Errorf("%q", got)
	}
}

func TestCutWorkload(t *testing.T) {
	own, work := cutWorkload([]string{"--json", "sweep", "a=1", "--", "demo", "--", "x"})
	if !slices.Equal(own, []string{"--json", "sweep", "a=1"}) || !slices.Equal(work, []string{"demo", "--", "x"}) {
		t.Errorf("%q %q", own, work)
	}
	if own, work = cutWorkload([]string{"prove", "--", "sweep"}); len(own) != 3 || work != nil {
		t.Errorf("%q %q", own, work)
	}
	w := &workload{args: []string{"demo", "--", "x"}}
	if got := w.with("--set", "y"); !slices.Equal(got, []string{"demo", "--set", "y", "--", "x"}) {
		t.Errorf("%q", got)
	}
}
