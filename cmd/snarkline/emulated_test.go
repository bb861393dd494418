package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/driver"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
)

// emulate gives the machine the cards of config, in place of those it has.
// Nothing may be left on them when the test ends.
func emulate(t *testing.T, config emulator.Config) {
	t.Helper()
	bound(t)
	path := emulator.Need(t, config)
	t.Setenv(driver.LibraryEnv, path)
	t.Setenv(driver.NVMLEnv, path)
	t.Cleanup(func() { clean(t) })
}

func clean(t *testing.T) {
	t.Helper()
	s, err := emulator.Stats()
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range s.Cards {
		if c.Live() {
			t.Errorf("card %d is not clean: %+v", i, c)
		}
	}
	if s.Early > 0 {
		t.Errorf("host memory went %d times before its copy was done", s.Early)
	}
}

// one is a machine with a card of so many bytes.
func one(total int64) emulator.Config { return emulator.Config{Cards: []emulator.Card{{Total: total}}} }

// accepted fails the test unless the bundled circuit's proof is valid.
func accepted(t *testing.T, curve, proof, public string) {
	t.Helper()
	sl(t, codeOK, "verify", "--key", bundled(curve+"/vault.vkey.json"), "--proof", proof, "--public", public)
}

// TestEmulatedCircom proves the bundled circuit on a card, on both curves, and
// looks at everything that is said of it.
func TestEmulatedCircom(t *testing.T) {
	for _, curve := range []string{"bn128", "bls12381"} {
		emulate(t, emulator.Config{})
		report := filepath.Join(t.TempDir(), "report.json")
		line, proof, public := proveVault(t, curve, "--device", "cuda:0", "--b2", "device", "--json", "--report", report)
		r := sl(t, codeOK, line...)
		accepted(t, curve, proof, public)
		res := decode[proveResult](t, r.stdout)
		p := res.Processors
		if p == nil || p.Device != "cuda:0" || len(p.Cards) != 1 || p.ProofsOn["cuda:0"] != 1 || p.B2On["cuda:0"] != 1 || p.Pinned <= 0 || p.MadeAgain != 0 || p.Refused != nil {
			t.Fatalf("%+v", p)
		}
		c := p.Cards[0]
		if c.Name != "Snarkline emulated GPU" || c.Capability != "9.0" || c.Total != alloc.GiB || c.Free <= 0 || c.Margin != 512*alloc.MiB ||
			c.Key <= 0 || c.Resident < c.Key || c.KeyUp < c.Key || c.Up <= 0 || c.Down <= 0 || c.Peak <= c.Resident || len(c.Operations) < 5 ||
			!strings.HasPrefix(c.Tier, "tier 1 of 3: a, b and c (") || c.Tiers["tier 1 of 3"] != 1 || c.Jobs > c.Free-c.Margin-c.Resident {
			t.Errorf("%+v", c)
		}
		if i := res.Items[0]; i.On != "cuda:0" || i.B2On != "cuda:0" || i.Attempts != 1 || !strings.HasPrefix(i.Staged, "cuda:0, tier 1 of 3") {
			t.Errorf("%+v", i)
		}
		for _, want := range []string{"proving on cuda:0 (Snarkline emulated GPU, ", "key points resident: ", "; tier 1 of 3: a, b and c", "b_g2_msm on the card",
			"host             pinned            device0\n", "cuda:0, over PCIe", "b_g2_msm made on                 cuda:0 1"} {
			if !strings.Contains(r.stderr, want) {
				t.Errorf("no %q in\n%s", want, r.stderr)
			}
		}
		for l := range strings.SplitSeq(r.stderr, "\n") {
			if n := len([]rune(l)); n > 100 && !strings.HasPrefix(l, "snarkline: ") {
				t.Errorf("%d columns: %s", n, l)
			}
		}
		text, err := os.ReadFile(report)
		if err != nil {
			t.Fatal(err)
		}
		rep, said := decode[runReport](t, string(text)), decode[struct{ Result proveResult }](t, string(text)).Result.Processors
		if said == nil || said.Cards[0].Up != c.Up || rep.Settings.Budget["device0"] <= 0 || int64(rep.Settings.Budget["device0"]) != c.Jobs ||
			rep.Pipeline.Stage("tail-msm").Made.Peak[alloc.Device(0)] <= 0 {
			t.Errorf("%s", text)
		}
	}
}

// TestEmulatedGnark proves a circuit of gnark's with a commitment, on both
// curves, where auto finds the card by itself.
func TestEmulatedGnark(t *testing.T) {
	for _, id := range curve.All() {
		emulate(t, emulator.Config{})
		g := makeGnark(t, id, true)
		proof, public := g.path("proof.bin"), g.path("public.bin")
		r := sl(t, codeOK, "prove", "--device", "auto", "--json", "--key", g.path("c.pk"), "--vk", g.path("c.vk"), "--circuit", g.path("c.r1cs"),
			"--witness", g.path("w.wit"), "--proof", proof, "--public", public)
		gnarkAccepts(t, id, g.vk, proof, public)
		if p := decode[proveResult](t, r.stdout).Processors; p.ProofsOn["cuda:0"] != 1 {
			t.Errorf("%+v", p)
		}
		sl(t, codeUnsatisfied, "prove", "-q", "--device", "cuda:0", "--key", g.path("c.pk"), "--vk", g.path("c.vk"), "--circuit", g.path("c.r1cs"),
			"--witness", g.path("bad.wit"), "--proof", proof, "--public", public)
	}
}

// TestEmulatedBatch: the sum of b_g2_msm goes where it is told to, and a
// settings file says the same as flags.
func TestEmulatedBatch(t *testing.T) {
	emulate(t, emulator.Config{})
	in, out := t.TempDir(), t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		copyFile(t, bundled("bn128/vault.wtns"), filepath.Join(in, name+".wtns"), nil)
	}
	config := write(t, "s.toml", "device = \"cuda:0\"\nb2 = \"cpu\"\ndevice-memory = \"128MiB\"\n[budget]\ndevice0 = \"32MiB\"\n")
	args := []string{"prove", "--json", "--key", bundled("bn128/vault.zkey"), "--witness", in, "--proof", out, "--public", out}
	r := sl(t, codeOK, append(args, "--config", config, "--set", "synthesize.workers=2")...)
	p := decode[proveResult](t, r.stdout).Processors
	if p.B2On["cpu"] != 3 || p.ProofsOn["cuda:0"] != 3 || p.Cards[0].Free-p.Cards[0].Margin != 128*alloc.MiB || !strings.Contains(r.stderr, "b_g2_msm on the CPU") || !strings.Contains(r.stderr, "1.0 GiB free, 128 MiB may be used)") {
		t.Errorf("%+v", p)
	}
	if !strings.Contains(r.stderr, "32 MiB") {
		t.Errorf("the budget of the card is not the one that was set:\n%s", r.stderr)
	}
	accepted(t, "bn128", filepath.Join(out, "c.proof.json"), filepath.Join(out, "c.public.json"))
	// Auto begins on the card.
	p = decode[proveResult](t, sl(t, codeOK, append(args, "--device", "cuda:0", "-q")...).stdout).Processors
	if p.B2On["cuda:0"] < 2 || p.B2On["cpu"]+p.B2On["cuda:0"] != 3 {
		t.Errorf("%+v", p.B2On)
	}
}

// TestEmulatedCards: a batch on two cards, and one proof on the emptier one.
func TestEmulatedCards(t *testing.T) {
	emulate(t, emulator.Config{Cards: []emulator.Card{{Name: "small", Total: alloc.GiB}, {Name: "large", Total: 2 * alloc.GiB}}})
	in, out := t.TempDir(), t.TempDir()
	for _, name := range []string{"a", "b", "c", "d"} {
		copyFile(t, bundled("bn128/vault.wtns"), filepath.Join(in, name+".wtns"), nil)
	}
	r := sl(t, codeOK, "prove", "--json", "--device", "cuda:1,cuda:0", "--key", bundled("bn128/vault.zkey"), "--witness", in, "--proof", out, "--public", out)
	p := decode[proveResult](t, r.stdout).Processors
	if p.Device != "cuda:1+cuda:0" || p.ProofsOn["cuda:0"] == 0 || p.ProofsOn["cuda:1"] == 0 || p.ProofsOn["cuda:0"]+p.ProofsOn["cuda:1"] != 4 {
		t.Errorf("%+v", p)
	}
	if strings.Count(r.stderr, "proving on cuda:") != 2 {
		t.Errorf("%s", r.stderr)
	}
	for _, c := range p.Cards {
		if c.Proofs != p.ProofsOn[c.Device] || c.Failed != 0 || c.AtOnce < 1 || c.Busy <= 0 || c.Utilised <= 0 || c.Utilised > 1 || c.Each <= 0 || c.Up <= 0 || c.Down <= 0 || c.Peak <= 0 || c.Resident < c.Key {
			t.Errorf("%+v", c)
		}
	}
	for _, want := range []string{"device0", "device1", "cuda:0, proofs", "cuda:1, proofs", "at work ", "cuda:0, over PCIe", "cuda:1, over PCIe"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("no %q in\n%s", want, r.stderr)
		}
	}
	line, proof, public := proveVault(t, "bn128", "--json", "--device", "auto")
	p = decode[proveResult](t, sl(t, codeOK, line...).stdout).Processors
	if p.Device != "cuda:1" || p.Cards[0].Name != "large" {
		t.Errorf("%+v", p)
	}
	accepted(t, "bn128", proof, public)
	line, _, _ = proveVault(t, "bn128", "--device", "cuda:2")
	if r := sl(t, codeUsage, line...); !strings.Contains(r.stderr, "cuda:2: no usable device of that number (there are: cuda:0, small; cuda:1, large)") {
		t.Errorf("%s", r.stderr)
	}
}

func TestEmulatedDevices(t *testing.T) {
	emulate(t, emulator.Config{Cards: []emulator.Card{
		{Name: "one", Total: 4 * alloc.GiB, Others: alloc.GiB}, {Name: "full", Total: alloc.GiB, Others: 700 * alloc.MiB}}})
	r := sl(t, codeOK, "devices")
	for _, want := range []string{"cuda:0  one", "3.0 GiB     4.0 GiB", "cuda:1  full", "cannot be used now: ", "driver  CUDA 13.0 (580.95.05), ", "cpu  ", "--device auto proves on cuda:0\n"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
	d := decode[devicesResult](t, sl(t, codeOK, "devices", "--json").stdout)
	if !d.OK || len(d.Cards) != 2 || d.Missing != "" || d.NVML != "" || d.Driver.CUDA != "13.0" || d.Driver.Version != "580.95.05" || !slices.Equal(d.Auto, []string{"cuda:0"}) {
		t.Fatalf("%+v", d)
	}
	c := d.Cards[0]
	if c.Device != "cuda:0" || c.Capability != "9.0" || *c.Free > 3*alloc.GiB || *c.Free < 2*alloc.GiB || c.Total != 4*alloc.GiB || *c.Others != alloc.GiB || c.Utilization == nil || !c.Auto || c.UUID == "" {
		t.Errorf("%+v", c)
	}
	if d.Cards[1].Auto || d.Cards[1].Unusable == "" {
		t.Errorf("%+v", d.Cards[1])
	}
}

// TestEmulatedMissing: what keeps a card from being used is told, by name as an
// error and otherwise as a line before the CPU proves.
func TestEmulatedMissing(t *testing.T) {
	for name, c := range map[string]struct {
		config emulator.Config
		code   int
		want   []string
	}{
		"no card":    {emulator.Config{None: true}, codeUsage, []string{"CUDA_ERROR_NO_DEVICE (100)"}},
		"old driver": {emulator.Config{Driver: 11040}, codeUsage, []string{"CUDA 11.4", "11.8", "520.61"}},
		"old card":   {emulator.Config{Cards: []emulator.Card{{Name: "GTX", Major: 7, Minor: 5}}}, codeUsage, []string{"cuda:0, GTX, has compute capability 7.5", "8.0"}},
		"too small":  {one(512*alloc.MiB + 4*alloc.KiB), codeMemory, []string{"cuda:0 (Snarkline emulated GPU)", "out of device memory", "may be used"}},
	} {
		t.Run(name, func(t *testing.T) {
			emulate(t, c.config)
			line, _, _ := proveVault(t, "bn128", "--device", "cuda:0")
			texts := []string{sl(t, c.code, line...).stderr}
			line, proof, public := proveVault(t, "bn128", "--device", "auto")
			r := sl(t, codeOK, line...)
			accepted(t, "bn128", proof, public)
			if !strings.Contains(r.stderr, "a card is not used: ") || !strings.Contains(r.stderr, "proving on the CPU") {
				t.Errorf("%s", r.stderr)
			}
			texts = append(texts, r.stderr)
			if c.code == codeUsage {
				texts = append(texts, sl(t, codeOK, "devices").stdout)
			}
			for _, text := range texts {
				for _, want := range c.want {
					if !strings.Contains(text, want) {
						t.Errorf("no %q in %s", want, text)
					}
				}
			}
		})
	}
}

// TestEmulatedDemo: the demonstration is on the card too, and gives it back when
// it is interrupted there.
func TestEmulatedDemo(t *testing.T) {
	emulate(t, emulator.Config{})
	args := []string{"demo", "--device", "cuda:0", "--log-constraints", "11", "--curve", "bn254"}
	res := decode[demoResult](t, sl(t, codeOK, append(args, "--partitions", "3", "--json", "-q")...).stdout)
	if p := res.Processors; !res.OK || res.Verified != 3 || p.ProofsOn["cuda:0"] != 3 || p.Cards[0].Tiers["tier 1 of 3"] != 3 || !strings.HasPrefix(p.Cards[0].Tier, "tier 1 of 3: a and b (") {
		t.Errorf("%+v %+v", res, p)
	}
	mark := alloc.Marked()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	verified := writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte(" verified: ")) {
			cancel(errInterrupted) // others are on the card
		}
		return len(p), nil
	})
	code := run(ctx, append(args, "--partitions", "500"), nil, io.Discard, verified)
	mark.CheckLeaks(t)
	if code != codeInterrupted {
		t.Errorf("code %d", code)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
