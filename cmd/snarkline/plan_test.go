package main

import (
	"strings"
	"testing"

	"github.com/snarkline/snarkline/plan"
)

func TestPlanOfAModel(t *testing.T) {
	model := write(t, "m.toml", testModel)
	r := sl(t, codeOK, "plan", model, "--json", "--set", "synthesize.workers=2", "--budget", "2GiB", "--items", "10",
		"--try", "cores=4", "--try", "h-msm.workers=2 ntt.workers=2", "--try", "budget.host=1MiB", "--try", "memory=600MiB budget.host=none")
	res := decode[planResult](t, r.stdout)
	if len(res.Rows) != 6 || !res.OK {
		t.Fatalf("%s", r.stdout)
	}
	first, set, cores, two, small, killed := res.Rows[0], res.Rows[1], res.Rows[2], res.Rows[3], res.Rows[4], res.Rows[5]
	if first.Outcome.Items != 16 || set.Outcome.Items != 10 || set.Settings.Stages["synthesize"].Workers != 2 || set.Settings.Stages["b_g2_msm"].Capacity != -1 {
		t.Errorf("%+v\n%+v", first, set)
	}
	if cores.Outcome.Throughput >= set.Outcome.Throughput || two.Outcome.Throughput <= set.Outcome.Throughput || set.Prediction == nil || len(set.Limits) == 0 {
		t.Errorf("%v, with fewer cores %v, with more workers %v", set.Outcome.Throughput, cores.Outcome.Throughput, two.Outcome.Throughput)
	}
	if small.Outcome.Failure == nil || small.Outcome.Failure.Kind != plan.TooLarge || killed.Outcome.Failure == nil || killed.Outcome.Failure.Kind != plan.Killed {
		t.Errorf("%+v\n%+v", small.Outcome.Failure, killed.Outcome.Failure)
	}
	text := sl(t, codeOK, "plan", model, "--set", "synthesize.workers=2").stdout
	for _, want := range []string{"[0] the model", "[1] synthesize.workers=2", "limited by", "waits for room", "host peaks at"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestPlanOfAnotherPipeline(t *testing.T) {
	graph := write(t, "g.toml", "name = \"two\"\n[[source]]\nname = \"in\"\n[[stage]]\nname = \"a\"\nfrom = \"in\"\nworkers = 3\n[[stage]]\nname = \"b\"\nfrom = \"a\"\n[[sink]]\nname = \"out\"\nfrom = \"b\"\n")
	model := write(t, "m.toml", "[[node.a.step]]\nseconds = 3\n[[node.b.step]]\nseconds = 1\n")
	r := sl(t, codeOK, "plan", model, "--pipeline", graph, "--json", "--items", "100", "--set", "b.workers=2")
	if res := decode[planResult](t, r.stdout); len(res.Rows) != 2 || res.Rows[1].Outcome.Throughput < 0.9 || res.Rows[1].Outcome.Stage("a").Workers != 3 {
		t.Errorf("%s", r.stdout)
	}
	if r := sl(t, codeInput, "plan", model); !strings.Contains(r.stderr, model) {
		t.Errorf("%s", r.stderr)
	}
}

func TestPlanRefuses(t *testing.T) {
	model := write(t, "m.toml", testModel)
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{codeInput, "none.trace", []string{"plan", "none.trace"}},
		{codeInput, "line 2", []string{"plan", write(t, "b.toml", "[machine]\ncoers = 3\n")}},
		{codeInput, "offset", []string{"plan", write(t, "x.trace", "this is no recording, whatever its name may say")}},
		{codeUsage, "--record would be written over the file of the model", []string{"plan", model, "--record", model}},
		{codeUsage, "--record would be written over the file of the recording", []string{"plan", "y.trace", "--record", "y.trace"}},
		{codeUsage, "at most 1000000 can be simulated", []string{"plan", model, "--items", "2000000"}},
		{codeUsage, "--report: prove and demo write it", []string{"plan", model, "--report", "x"}},
		{codeUsage, "--pipeline is for models", []string{"plan", "x.trace", "--pipeline", "y.toml"}},
		{codeUsage, `no stage "nt" (did you mean "ntt"?)`, []string{"plan", model, "--set", "nt.workers=1"}},
		{codeUsage, `no stage "nt"`, []string{"plan", model, "--try", "nt.workers=1"}},
		{codeUsage, "one value each", []string{"plan", model, "--try", "ntt.workers=1,2"}},
		{codeUsage, "no setting in", []string{"plan", model, "--try", " "}},
		{codeUsage, "no such choice", []string{"plan", model, "--try", "device=cpu"}},
		{codeInternal, "--record", []string{"plan", model, "--record", "none/x.trace"}},
	} {
		r := sl(t, c.code, c.args...)
		if !strings.Contains(r.stderr, c.want) {
			t.Errorf("%v: %q is missing in %s", c.args, c.want, r.stderr)
		}
	}
}

// TestPlanForProcessors: --workers is what it is for a run, its processors, and a
// settings file that names a report is one for other commands.
func TestPlanForProcessors(t *testing.T) {
	model := write(t, "m.toml", testModel)
	config := write(t, "c.toml", "workers = 2\nreport = \"r.json\"\n")
	for _, args := range [][]string{{"--workers", "2"}, {"--config", config}, {"--cores", "2", "-j", "1"}} {
		r := sl(t, codeOK, append([]string{"plan", model, "--json"}, args...)...)
		if res := decode[planResult](t, r.stdout); len(res.Rows) != 2 || res.Rows[1].Choices["cores"] != "2" {
			t.Errorf("%v: %s", args, r.stdout)
		}
	}
}
