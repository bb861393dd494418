package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/emulator"
)

const lostText = "snarkline: cuda:0 is lost to this process: the driver allows no new context after CUDA_ERROR_ILLEGAL_ADDRESS; start the program again to use the card"

// losing is a batch of proofs, by name, for a card whose context ends under it
// and does not come again.
func losing(t *testing.T, cards int, args ...string) (line []string, names []string, out string) {
	t.Helper()
	emulate(t, emulator.Config{NoRevival: true, Cards: make([]emulator.Card, cards)})
	emulator.Fault("kernel", 3, 700, true)
	in := t.TempDir()
	out, names = t.TempDir(), []string{"a", "b", "c", "d"}
	for _, name := range names {
		copyFile(t, bundled("bn128/vault.wtns"), filepath.Join(in, name+".wtns"), nil)
	}
	return append([]string{"prove", "--json", "--key", bundled("bn128/vault.zkey"), "--witness", in, "--proof", out, "--public", out}, args...), names, out
}

// saidLost fails the test unless it was said once that the card is lost, with
// what follows.
func saidLost(t *testing.T, stderr, rest string) {
	t.Helper()
	if n := strings.Count(stderr, lostText); n != 1 {
		t.Errorf("said %d times that the card is lost:\n%s", n, stderr)
	}
	if !strings.Contains(stderr, lostText+rest+"\n") {
		t.Errorf("no %q in\n%s", lostText+rest, stderr)
	}
}

// TestEmulatedLostCard: a card whose driver makes no other context is left alone
// from then on, and the batch ends well.
func TestEmulatedLostCard(t *testing.T) {
	line, names, out := losing(t, 1, "--device", "cuda:0")
	r := sl(t, codeOK, line...)
	saidLost(t, r.stderr, "; the rest is proved on the CPU")
	for _, name := range names {
		accepted(t, "bn128", filepath.Join(out, name+".proof.json"), filepath.Join(out, name+".public.json"))
	}
	res := decode[proveResult](t, r.stdout)
	if c := res.Processors.Cards[0]; "snarkline: "+c.Lost != lostText || res.Proofs != len(names) || res.Processors.ProofsOn["cpu"] != len(names) {
		t.Errorf("%+v", res.Processors)
	}
	if !strings.Contains(r.stderr, "note  cuda:0 is lost to this process") {
		t.Errorf("the report does not say it:\n%s", r.stderr)
	}
}

// TestEmulatedLostOfTwo: the other card has the rest.
func TestEmulatedLostOfTwo(t *testing.T) {
	line, names, _ := losing(t, 2, "--device", "all", "--no-elsewhere", "-q")
	r := sl(t, codeOK, line...)
	p := decode[proveResult](t, r.stdout).Processors
	if p.ProofsOn["cuda:0"]+p.ProofsOn["cuda:1"] != len(names) {
		t.Fatalf("%+v", p)
	}
	lost, other := "cuda:0", "cuda:1"
	if p.Cards[0].Lost == "" {
		lost, other = other, lost
	}
	if n := strings.Count(r.stderr, "snarkline: "+lost+" is lost to this process: "); n != 1 ||
		!strings.Contains(r.stderr, "to use the card; the rest is proved on "+other+"\n") {
		t.Errorf("%s", r.stderr)
	}
	for _, c := range p.Cards {
		if (c.Lost != "") != (c.Device == lost) {
			t.Errorf("%s is lost: %q", c.Device, c.Lost)
		}
	}
}

// TestEmulatedLostAlone: where there is nothing else, what is left fails.
func TestEmulatedLostAlone(t *testing.T) {
	line, names, _ := losing(t, 1, "--device", "cuda:0", "--no-elsewhere", "--keep-going")
	r := sl(t, codeInternal, line...)
	saidLost(t, r.stderr, "; there is nothing else to prove the rest on")
	res := decode[proveResult](t, r.stdout)
	if res.Failed != len(names) {
		t.Errorf("%d failed", res.Failed)
	}
	for _, i := range res.Items {
		if !strings.Contains(i.Error, "is lost to this process") || !strings.Contains(i.Error, "no other processor") {
			t.Errorf("%q", i.Error)
		}
	}
}

// TestEmulatedLostBefore: a card that is lost while the key is brought there is
// one that cannot be used.
func TestEmulatedLostBefore(t *testing.T) {
	for _, device := range []string{"auto", "cuda:0", "all"} {
		line, _, _ := losing(t, 1, "--device", device)
		emulator.Clear()
		emulator.Fault("copy", 1, 700, true)
		code := codeOK
		if device != "auto" {
			code = codeUsage
		}
		r := sl(t, code, line...)
		if !strings.Contains(r.stderr, "is lost to this process") || strings.Contains(r.stderr, "proving on cuda:0") {
			t.Errorf("%s: %s", device, r.stderr)
		}
		if device == "auto" && !strings.Contains(r.stderr, "proving on the CPU") {
			t.Errorf("%s", r.stderr)
		}
	}
}

// TestEmulatedWorkers: the workers that suit a card are those of the run, unless
// a setting or a pipeline says otherwise.
func TestEmulatedWorkers(t *testing.T) {
	emulate(t, emulator.Config{Cards: []emulator.Card{{Total: alloc.GiB}, {Total: alloc.GiB}}})
	workers := func(args ...string) map[string]int {
		report := filepath.Join(t.TempDir(), "report.json")
		line, _, _ := proveVault(t, "bn128", append(args, "--b2", "cpu", "--report", report, "-q")...)
		sl(t, codeOK, line...)
		got := map[string]int{}
		for _, s := range decode[runReport](t, readText(t, report)).Pipeline.Stages {
			got[s.Name] = s.Workers
		}
		return got
	}
	expect := func(what string, got map[string]int, want map[string]int) {
		for name, n := range want {
			if got[name] != n {
				t.Errorf("%s: %d workers of %s, want %d", what, got[name], name, n)
			}
		}
	}
	expect("one card", workers("--device", "cuda:0"), map[string]int{"synthesize": 2, "prestage": 1, "ntt": 1, "h-msm": 1, "batch-add": 2, "tail-msm": 1, "b_g2_msm": 2, "assemble": 1})
	expect("two cards", workers("--device", "all"), map[string]int{"synthesize": 4, "assemble": 2, "prestage": 28, "ntt": 28, "h-msm": 28, "batch-add": 28, "tail-msm": 28, "b_g2_msm": 28})
	expect("two cards, --set", workers("--device", "all", "--set", "ntt.workers=3", "--set", "synthesize.workers=1"), map[string]int{"synthesize": 1, "ntt": 28})
	expect("--set", workers("--device", "cuda:0", "--set", "batch-add.workers=1", "--set", "ntt.workers=3"), map[string]int{"synthesize": 2, "ntt": 3, "batch-add": 1, "b_g2_msm": 2})
	config := write(t, "s.toml", "[stages.synthesize]\nworkers = 5\n[stages.ntt]\ncapacity = 3\n")
	expect("--config", workers("--device", "all", "--config", config), map[string]int{"synthesize": 5, "ntt": 28, "b_g2_msm": 28})
	standard := write(t, "p.toml", sl(t, codeOK, "export", "pipeline").stdout)
	expect("--pipeline", workers("--device", "cuda:0", "--pipeline", standard), map[string]int{"synthesize": 1, "ntt": 1, "batch-add": 1, "b_g2_msm": 1})
	for _, set := range []string{"synthesize.workers=2", "ntt.workers=1"} { // on two cards that is told of
		line, _, _ := proveVault(t, "bn128", "--device", "all", "--b2", "cpu", "--pipeline", standard, "--set", set)
		r := sl(t, codeOK, line...)
		if !strings.Contains(r.stderr, "proofs on one card may wait for those on another: prestage has 1, ") ||
			strings.Contains(r.stderr, "ntt has 1, ") != (set != "ntt.workers=1") {
			t.Errorf("a pipeline of one worker a stage, --set %s: %s", set, r.stderr)
		}
	}
	expect("cpu", workers("--device", "cpu"), map[string]int{"synthesize": 1, "ntt": 1, "batch-add": 1, "b_g2_msm": 1})
}

// readText is what is in a file.
func readText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
