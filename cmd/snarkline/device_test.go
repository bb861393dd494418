package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/driver"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// deviceEnv is the variable that stands for --device.
const deviceEnv = "SNARKLINE_DEVICE"

// prove is the command line that proves the bundled circuit into a new folder,
// with args besides.
func proveVault(t *testing.T, curve string, args ...string) (line []string, proof, public string) {
	t.Helper()
	at, dir := bundled(curve+"/vault"), t.TempDir()
	proof, public = filepath.Join(dir, "proof.json"), filepath.Join(dir, "public.json")
	return append([]string{"prove", "--key", at + ".zkey", "--witness", at + ".wtns", "--proof", proof, "--public", public}, args...), proof, public
}

// bound skips a test where this build has no binding to a driver.
func bound(t *testing.T) {
	t.Helper()
	if _, err := driver.Open(filepath.Join(t.TempDir(), "none")); err != nil && strings.Contains(err.Error(), "is without") {
		t.Skipf("SKIPPED: %v; the device path is NOT tested here", err)
	}
}

// noDriver makes the machine one without a driver.
func noDriver(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "libcuda.so.1")
	t.Setenv(driver.LibraryEnv, path)
	return path
}

func TestNoDriver(t *testing.T) {
	bound(t)
	path := noDriver(t)
	line, proof, public := proveVault(t, "bn128", "--device", "auto")
	r := sl(t, codeOK, line...)
	if !strings.Contains(r.stderr, "a card is not used: ") || !strings.Contains(r.stderr, path) || !strings.Contains(r.stderr, "proving on the CPU (") {
		t.Errorf("%s", r.stderr)
	}
	sl(t, codeOK, "verify", "--key", bundled("bn128/vault.vkey.json"), "--proof", proof, "--public", public)
	for _, device := range []string{"cuda:0", "cuda:3,cuda:1", "all"} {
		line, _, _ := proveVault(t, "bn128", "--device", device)
		if r := sl(t, codeUsage, line...); !strings.Contains(r.stderr, "--device "+device) || !strings.Contains(r.stderr, path) || !strings.Contains(r.stderr, "snarkline devices") {
			t.Errorf("%s: %s", device, r.stderr)
		}
	}
	r = sl(t, codeOK, "devices")
	for _, want := range []string{"no card can be used", path, driver.LibraryEnv, "nodes ", "cpu ", "auto proves on the CPU"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in %s", want, r.stdout)
		}
	}
	d := decode[devicesResult](t, sl(t, codeOK, "devices", "--json").stdout)
	if !d.OK || len(d.Cards) != 0 || !slices.Equal(d.Auto, []string{"cpu"}) || !strings.Contains(d.Missing, path) || d.Driver != nil || d.CPU.Cores < 1 {
		t.Errorf("%+v", d)
	}
}

// TestBrokenLibrary: what is no library is told in the loader's words.
func TestBrokenLibrary(t *testing.T) {
	bound(t)
	path := write(t, "libcuda.so.1", "no library at all")
	t.Setenv(driver.LibraryEnv, path)
	line, _, _ := proveVault(t, "bn128", "--device", "cuda:0")
	for _, r := range []result{sl(t, codeUsage, line...), sl(t, codeOK, "devices")} {
		if !strings.Contains(r.stderr+r.stdout, path) || !strings.Contains(r.stderr+r.stdout, "invalid ELF header") && !strings.Contains(r.stderr+r.stdout, "too short") {
			t.Errorf("%s%s", r.stdout, r.stderr)
		}
	}
}

// TestCPUByName: no driver is looked for, and the result says where it proved.
func TestCPUByName(t *testing.T) {
	noDriver(t)
	line, _, _ := proveVault(t, "bn128", "--device", "cpu", "--json")
	r := sl(t, codeOK, line...)
	res := decode[proveResult](t, r.stdout)
	p := res.Processors
	if p == nil || p.Device != "cpu" || len(p.Cards) != 0 || p.ProofsOn["cpu"] != 1 || p.B2On["cpu"] != 1 || p.Refused != nil || p.MadeAgain != 0 {
		t.Fatalf("%+v", p)
	}
	if i := res.Items[0]; i.On != "cpu" || i.B2On != "cpu" || i.Attempts != 1 || i.Again != nil || i.Staged == "" {
		t.Errorf("%+v", i)
	}
	if strings.Contains(r.stderr, "a card") {
		t.Errorf("%s", r.stderr)
	}
}

func TestDeviceFlags(t *testing.T) {
	for _, args := range [][]string{
		{"--device", "gpu"}, {"--device", "cuda:x"}, {"--device", "cuda:0,cuda:0"}, {"--device-memory", "0"},
		{"--b2", "gpu"}, {"--device", "cpu", "--b2", "device"},
	} {
		line, _, _ := proveVault(t, "bn128", args...)
		sl(t, codeUsage, line...)
	}
	t.Setenv(deviceEnv, "cuda:5")
	c, err := parse(t, "demo")
	if err != nil || c.Device.String() != "cuda:5" || c.B2 != "auto" {
		t.Errorf("%v %q %v", c.Device, c.B2, err)
	}
	path := write(t, "s.toml", "device = \"cuda:0,cuda:2\"\ndevice-memory = \"16GiB\"\nb2 = \"cpu\"\nno-elsewhere = true\n[budget]\ndevice0 = \"8GiB\"\n")
	if c, err = parse(t, "demo", "--config", path); err != nil {
		t.Fatal(err)
	}
	if c.Device.String() != "cuda:0,cuda:2" || c.DeviceMemory != 16<<30 || c.B2 != "cpu" || !c.NoElsewhere {
		t.Errorf("%+v", c.deviceFlags)
	}
	if s, err := c.settings(pipeline.Settings{}, false); err != nil || s.Budget["device0"] != 8<<30 {
		t.Errorf("%+v %v", s, err)
	}
	if _, err := parse(t, "demo", "--config", write(t, "s.toml", "\ndevice = \"gpu\"\n")); err == nil || !strings.Contains(err.Error(), "s.toml:2: ") {
		t.Errorf("%v", err)
	}
}

// TestBudgetsOfCards: what is free is the budget unless the user says another.
func TestBudgetsOfCards(t *testing.T) {
	set := pipeline.Settings{Budget: map[string]pipeline.Size{"device1": 5}}
	p := &processors{}
	if got := p.budgets(set); len(got.Budget) != 1 {
		t.Errorf("%v", got)
	}
	if got := cardBudgets(set, map[alloc.Space]int64{alloc.Device(0): 7, alloc.Device(1): 8}); got.Budget["device0"] != 7 || got.Budget["device1"] != 5 {
		t.Errorf("%v", got)
	}
}

func TestTellAttempts(t *testing.T) {
	wrong := &pipeline.StageError{Stage: "assemble", Err: &stages.VerifyError{On: "cuda:0", B2On: "cpu"}}
	memory := &pipeline.StageError{Stage: "ntt", Err: fmt.Errorf("cuda:0: %w", gpu.ErrNoMemory)}
	all := &pipeline.AttemptsError{Errs: []error{wrong, memory}}
	if n, again := attempts(all); n != 2 || len(again) != 1 || attemptText(again[0]) != "the proof made on cuda:0 (b_g2_msm on cpu) does not verify" {
		t.Errorf("%d %v", n, again)
	}
	if n, again := attempts(wrong); n != 1 || again != nil {
		t.Errorf("%d %v", n, again)
	}
	if last := lastAttempt(fmt.Errorf("run: %w", all)); last.Error() != memory.Error() || exitCode(last) != codeMemory {
		t.Errorf("%v, code %d", last, exitCode(last))
	}
	if s := attemptText(memory); s != "ntt: cuda:0: out of device memory" || !strings.Contains(advised(s, memory), "--device cpu") || advised(s, wrong) != s {
		t.Errorf("%s", s)
	}
}

func TestTierOf(t *testing.T) {
	for staged, want := range map[string]string{
		"cuda:0, tier 2 of 3: a (1.0 GiB) in device memory, 3 GiB free": "tier 2 of 3",
		"passed through: a, b, c stay in host memory":                   "",
	} {
		if got := tierOf(staged); got != want {
			t.Errorf("%q: %q", staged, got)
		}
	}
}

// TestCardLanes: workers that are asked for are shared out among cards, each of
// which has one at least.
func TestCardLanes(t *testing.T) {
	set := pipeline.Settings{Stages: map[string]pipeline.StageSetting{"ntt": {Workers: 1}, "batch-add": {Workers: 5}, "synthesize": {Workers: 7}, "h-msm": {Capacity: 3}}}
	if got := cardLanes(set, 2); !maps.Equal(got, map[string]int{"ntt": 1, "batch-add": 3}) {
		t.Errorf("%v", got)
	}
}

// TestDeviceByName: what cannot be had is an error on every system.
func TestDeviceByName(t *testing.T) {
	noDriver(t)
	line, _, _ := proveVault(t, "bn128", "--device", "cuda:0")
	if r := sl(t, codeUsage, line...); !strings.Contains(r.stderr, "--device cuda:0: ") {
		t.Errorf("%s", r.stderr)
	}
	line, proof, public := proveVault(t, "bn128", "--device", "auto")
	sl(t, codeOK, line...)
	accepted(t, "bn128", proof, public)
	sl(t, codeOK, "devices")
}
