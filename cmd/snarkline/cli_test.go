package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/config"
	"github.com/snarkline/snarkline/pipeline"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// parse reads args as the command does, without running anything.
func parse(t *testing.T, args ...string) (*cli, error) {
	t.Helper()
	var c cli
	p, err := newParser(&c, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Parse(args)
	return &c, err
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestGrammar(t *testing.T) {
	c, err := parse(t, "prove", "--key", "c.zkey", "--witness", "w1.wtns", "w2.wtns", "--budget", "4GiB",
		"--set", "synthesize.workers=4", "--set", "ntt.capacity=2", "-j", "3", "--no-progress")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(append(c.Prove.Witness, c.Prove.Files...), []string{"w1.wtns", "w2.wtns"}) {
		t.Errorf("witnesses %v and %v", c.Prove.Witness, c.Prove.Files)
	}
	if c.Budget != 4<<30 || c.Workers != 3 || c.Progress == nil || *c.Progress || c.Prove.NoVerify || c.Prove.SkipSubgroupCheck {
		t.Errorf("%+v", c)
	}
	st, err := c.settings(pipeline.Settings{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if st.Stages["synthesize"].Workers != 4 || st.Stages["ntt"].Capacity != 2 || st.Stages["ntt"].Workers != 0 || st.Budget["host"] != 4<<30 {
		t.Errorf("%+v", st)
	}
	if c, err = parse(t, "prove", "--key=c", "--witness=-"); err != nil || c.Prove.Witness[0] != "-" || c.Progress != nil {
		t.Errorf("%+v %v", c.Prove, err)
	}
	if c, err = parse(t, "prove", "--key=c", "--witness=a,b.wtns"); err != nil || len(c.Prove.Witness) != 1 {
		t.Errorf("a comma splits a path: %v %v", c.Prove.Witness, err)
	}
}

func TestGrammarRefuses(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"prove"},
		{"prov", "--key", "k"},
		{"prove", "--key", "k", "--bogus"},
		{"prove", "--key", "k", "--budget", "much"},
		{"prove", "--key", "k", "--budget", "0"},
		{"prove", "--key", "k", "--profile", "gpu"},
		{"verify", "--key", "k", "--proof", "p"},
		{"setup", "--circuit", "c", "--basis", "other"},
	} {
		if _, err := parse(t, args...); exitCode(err) != codeUsage {
			t.Errorf("%v: code %d, %v", args, exitCode(err), err)
		}
	}
}

func TestSettings(t *testing.T) {
	for set, want := range map[string]string{
		"ntt":                   "want STAGE.KNOB=N",
		"ntt=3":                 "want STAGE.KNOB=N",
		"nt.workers=1":          `there is no stage "nt" (did you mean "ntt"?)`,
		"ntt.worker=1":          `ntt has no "worker" (did you mean "workers"?)`,
		"ntt.workers=0":         "workers must be a number of at least 1",
		"ntt.capacity=-1":       "neither a number nor",
		"ntt.workers=x":         "workers must be a number",
		"ntt.workers=unbounded": "workers must be a number",
	} {
		c, err := parse(t, "demo", "--set", set)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.settings(pipeline.Settings{}, false)
		if exitCode(err) != codeUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
	c, err := parse(t, "demo", "--set", "ntt.capacity=unbounded", "--set", "b_g2_msm.workers=3")
	if err != nil {
		t.Fatal(err)
	}
	if st, err := c.settings(pipeline.Settings{}, false); err != nil || st.Stages["ntt"].Capacity != pipeline.Unbounded || st.Stages["b_g2_msm"].Workers != 3 {
		t.Errorf("%v %v", st, err)
	}
}

func TestConfigIsTheSameAsFlags(t *testing.T) {
	path := write(t, "s.toml", `
budget = "4GiB"
workers = 3
quiet = true
set = ["h-msm.workers=2"]

[prove]
keep-going = true
witness = ["a.wtns", "b.wtns"]

[stages.synthesize]
workers = 4
[stages.ntt]
capacity = 2
`)
	fromFile, err := parse(t, "prove", "--key", "k", "--config", path)
	if err != nil {
		t.Fatal(err)
	}
	fromFlags, err := parse(t, "prove", "--key", "k", "--budget", "4GiB", "--workers", "3", "-q", "--keep-going",
		"--witness", "a.wtns", "--witness", "b.wtns", "--set", "h-msm.workers=2",
		"--set", "synthesize.workers=4", "--set", "ntt.capacity=2")
	if err != nil {
		t.Fatal(err)
	}
	a, err := fromFile.settings(pipeline.Settings{}, false)
	if err != nil {
		t.Fatal(err)
	}
	b, err := fromFlags.settings(pipeline.Settings{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("stages %v and %v", a, b)
	}
	fromFile.Config, fromFile.Set, fromFlags.Set = configFlag{}, nil, nil
	if !reflect.DeepEqual(fromFile, fromFlags) {
		t.Errorf("file  %+v\nflags %+v", fromFile, fromFlags)
	}
}

func TestConfigGivesRequiredFlagsAndReplacesDefaults(t *testing.T) {
	path := write(t, "s.toml", "[prove]\nkey = \"c.zkey\"\n[demo]\npartitions = 3\ncurve = \"bn254\"\n[setup]\nno-fold = true\n")
	c, err := parse(t, "prove", "--config", path, "--witness", "w")
	if err != nil || c.Prove.Key != "c.zkey" {
		t.Errorf("%+v %v", c.Prove, err)
	}
	if c, err = parse(t, "demo", "--config", path); err != nil || c.Demo.Partitions != 3 || c.Demo.Curve != "bn254" {
		t.Errorf("%+v %v", c.Demo, err)
	}
	if c, err = parse(t, "demo", "--config", path, "--partitions", "5"); err != nil || c.Demo.Partitions != 5 {
		t.Errorf("%+v %v", c.Demo, err)
	}
	if c, err = parse(t, "setup", "--circuit", "c", "--config", path); err != nil || !c.Setup.NoFold || c.Setup.Basis != "auto" {
		t.Errorf("%+v %v", c.Setup, err)
	}
}

func TestCommandLineWinsOverConfig(t *testing.T) {
	path := write(t, "s.toml", "budget = \"4GiB\"\n[stages.ntt]\nworkers = 4\n")
	c, err := parse(t, "demo", "--budget", "1GiB", "--set", "ntt.workers=2", "--config", path)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := c.settings(pipeline.Settings{}, false); err != nil || st.Stages["ntt"].Workers != 2 || st.Budget["host"] != 1<<30 || c.Budget != 1<<30 {
		t.Errorf("%v %v %v", st, c.Budget, err)
	}
}

func TestConfigErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"budget = \"1GiB\"\nbuget = 1":            `s.toml:2: unknown key "buget" (did you mean "budget"?)`,
		"\n[prove]\nbasis = \"coset\"":            `s.toml:3: unknown key "prove.basis"`,
		"[prov]\nkey = \"k\"":                     `s.toml:2: there is no command "prov" (did you mean "prove"?)`,
		"[stages.nnt]\nworkers = 1":               `s.toml:2: there is no stage "nnt" (did you mean "ntt"?)`,
		"[stages.ntt]\ncapacity = 1\nwrokers = 1": `s.toml:3: ntt has no "wrokers" (did you mean "workers"?)`,
		"[stages.ntt]\nworkers = 0":               `s.toml:2: setting "ntt.workers=0": workers must be`,
		"[stages]\nntt = 3":                       `s.toml:2: stages.ntt: want a table`,
		"[budget]\nhots = \"1GiB\"":               `s.toml:2: setting "budget.hots=1GiB"`,
		"config = \"other.toml\"":                 `s.toml:1: unknown key "config"`,
		"a = \n":                                  `s.toml:1: `,
		"profile = \"gpu\"":                       `s.toml:1: must be one of`,
		"# fine\n\nbudget = \"lots\"":             `lots`,
	} {
		path := write(t, "s.toml", text)
		_, err := parse(t, "demo", "--config", path)
		if exitCode(err) != codeUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: code %d, %v; want %q", text, exitCode(err), err, want)
		}
		var e *config.Error
		if strings.Contains(want, "s.toml") && !errors.As(err, &e) {
			t.Errorf("%q: %T", text, err)
		}
	}
	if _, err := parse(t, "demo", "--config", "none.toml"); exitCode(err) != codeUsage || !strings.Contains(err.Error(), "none.toml") {
		t.Errorf("missing file: %v", err)
	}
}

func TestHelp(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	for _, args := range [][]string{{}, {"prove"}, {"verify"}, {"setup"}, {"inspect"}, {"export"}, {"export", "key"}, {"demo"}, {"plan"}, {"sweep"}, {"tune"}, {"devices"}} {
		var out, errs strings.Builder
		if code := run(t.Context(), append(args, "--help"), nil, &out, &errs); code != 0 || errs.Len() > 0 {
			t.Errorf("%v: code %d, %s", args, code, errs.String())
		}
		golden := filepath.Join("testdata", "help", strings.Join(append([]string{"snarkline"}, args...), "-")+".txt")
		if *update {
			if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if out.String() != string(want) {
			t.Errorf("%v: the help is not what %s says (go test -update rewrites it):\n%s", args, golden, out.String())
		}
	}
}

func TestHelpListsEveryExitCode(t *testing.T) {
	doc, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(exitCodeHelp, "\n") {
		fields := strings.Fields(line)
		if len(fields) > 1 && strings.HasPrefix(line, "  ") && !strings.Contains(string(doc), "| "+fields[0]+" |") {
			t.Errorf("docs/cli.md does not list exit code %s", fields[0])
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"ntt", "ntt", 0}, {"nnt", "ntt", 1}, {"wrokers", "workers", 2}, {"", "abc", 3}, {"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
