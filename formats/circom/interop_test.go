//go:build interop

// Tests against snarkjs itself. They need node, and the path of snarkjs'
// build/cli.cjs in the environment variable SNARKJS; without it they fail.

package circom

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// snarkjs runs the tool and returns what it prints.
func snarkjs(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cli := os.Getenv("SNARKJS")
	if cli == "" {
		t.Fatal("SNARKJS must be the path of snarkjs' build/cli.cjs")
	}
	out, err := exec.Command("node", append([]string{cli}, args...)...).CombinedOutput()
	return string(out), err
}

func mustSnarkjs(t *testing.T, args ...string) string {
	t.Helper()
	out, err := snarkjs(t, args...)
	if err != nil {
		t.Fatalf("snarkjs %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// folder writes and reads files of one test.
type folder struct {
	t    *testing.T
	path string
}

func newFolder(t *testing.T) folder { return folder{t, t.TempDir()} }

func (d folder) at(name string) string { return filepath.Join(d.path, name) }

func (d folder) write(name string, f func(b *bytes.Buffer) error) string {
	d.t.Helper()
	var b bytes.Buffer
	check(d.t, f(&b))
	check(d.t, os.WriteFile(d.at(name), b.Bytes(), 0o600))
	return d.at(name)
}

func (d folder) read(name string) []byte {
	d.t.Helper()
	return must[[]byte](d.t)(os.ReadFile(d.at(name)))
}

// accept has snarkjs judge a proof of ours, and refuse it for other inputs.
func (d folder) accept(vk *groth16.VerifyingKey, proof *groth16.Proof, public []curve.Scalar) {
	d.t.Helper()
	v := d.write("vk.json", func(b *bytes.Buffer) error { return WriteVerifyingKey(b, vk) })
	p := d.write("proof.json", func(b *bytes.Buffer) error { return WriteProof(b, proof) })
	i := d.write("public.json", func(b *bytes.Buffer) error { return WritePublic(b, proof.Curve, public) })
	if out, err := snarkjs(d.t, "groth16", "verify", v, i, p); err != nil || !strings.Contains(out, "OK!") {
		d.t.Errorf("snarkjs does not accept our proof: %v\n%s", err, out)
	}
	text := must[string](d.t)(SolidityCalldata(proof, public))
	if out := mustSnarkjs(d.t, "zkey", "export", "soliditycalldata", i, p); out != text+"\n" {
		d.t.Errorf("calldata\n%s\nsnarkjs'\n%s", text, out)
	}
	if len(public) == 0 {
		return
	}
	wrong := append([]curve.Scalar(nil), public...)
	wrong[0] = curve.Scalar{1, 2, 3}
	i = d.write("public.json", func(b *bytes.Buffer) error { return WritePublic(b, proof.Curve, wrong) })
	if out, err := snarkjs(d.t, "groth16", "verify", v, i, p); err == nil {
		d.t.Errorf("snarkjs accepts our proof for other inputs\n%s", out)
	}
}

// judge has snarkjs prove with the files, and verifies that ourselves.
func (d folder) judge(vk *groth16.VerifyingKey, zkey, wtns string, public []curve.Scalar) {
	d.t.Helper()
	mustSnarkjs(d.t, "groth16", "prove", zkey, wtns, d.at("theirs.json"), d.at("theirs.public.json"))
	proof := must[*groth16.Proof](d.t)(ReadProof("theirs.json", bytes.NewReader(d.read("theirs.json"))))
	got := must[[]curve.Scalar](d.t)(ReadPublic("theirs.public.json", bytes.NewReader(d.read("theirs.public.json")), vk.Curve))
	if len(got) != len(public) {
		d.t.Fatalf("snarkjs has %d public values, we %d", len(got), len(public))
	}
	for i := range got {
		if got[i] != public[i] {
			d.t.Errorf("public value %d differs", i)
		}
	}
	if err := vk.Verify(proof, got); err != nil {
		d.t.Errorf("we do not accept snarkjs' proof: %v", err)
	}
}

// TestInteropKeysOfSnarkjs: its keys, our witnesses, both provers.
func TestInteropKeysOfSnarkjs(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		for _, name := range []string{"vault", "silent"} {
			d := newFolder(t)
			o := must[*opened](t)(readZkey(load(t, id, name+".zkey"), KeyOptions{}))
			defer o.close()
			source := calculator(t, id, name, CalculatorOptions{}).Witness(inputsOf(t, name+".json"))
			w := filled(t, source)
			public := w[1 : 1+o.key.NbPublic]
			d.accept(o.vk, prove(t, o.key, o.circuit, w), public)
			wtns := d.write("w.wtns", func(b *bytes.Buffer) error { return WriteWtns(context.Background(), b, id, source) })
			d.judge(o.vk, file(id, name+".zkey"), wtns, public)
		}
	})
}

// interopSetup sets a circuit up, hands its files to snarkjs, and has both
// sides prove and verify.
func interopSetup(t *testing.T, r *groth16.R1CS, domain curve.Domain, witnesses ...groth16.Witness) {
	t.Helper()
	ctx := context.Background()
	d := newFolder(t)
	key, vk, err := groth16.UnsafeSetup(ctx, r, groth16.SetupOptions{Basis: curve.Coset, Domain: domain})
	check(t, err)
	defer key.Close()
	zkey := d.write("our.zkey", func(b *bytes.Buffer) error { return WriteZkey(b, key, vk, r) })
	r1cs := d.write("our.r1cs", func(b *bytes.Buffer) error { return WriteR1CS(b, r) })

	mustSnarkjs(t, "zkey", "export", "verificationkey", zkey, d.at("exported.json"))
	d.write("vk.json", func(b *bytes.Buffer) error { return WriteVerifyingKey(b, vk) })
	if !bytes.Equal(d.read("exported.json"), d.read("vk.json")) {
		t.Error("snarkjs exports another verification key of our .zkey")
	}
	for _, w := range witnesses {
		public := w[1 : 1+r.Public]
		wtns := d.write("our.wtns", func(b *bytes.Buffer) error { return WriteWtns(ctx, b, r.ID, w) })
		if out := mustSnarkjs(t, "wtns", "check", r1cs, wtns); !strings.Contains(out, "WITNESS IS CORRECT") {
			t.Errorf("snarkjs on our .r1cs and .wtns:\n%s", out)
		}
		d.accept(vk, prove(t, key, r, w), public)
		d.judge(vk, zkey, wtns, public)
	}
}

// TestInteropKeysOfOurs: keys of our set-up, over either roots of unity.
func TestInteropKeysOfOurs(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		for _, name := range []string{"vault", "silent"} {
			c := must[*Circuit](t)(readCircuit(load(t, id, name+".r1cs")))
			defer c.Close()
			w := filled(t, must[*Wtns](t)(openWtns(load(t, id, name+".wtns"))))
			log := map[string]int{"vault": 8, "silent": 2}[name]
			for _, domain := range []curve.Domain{{}, must[curve.Domain](t)(SnarkjsDomain(id, log))} {
				interopSetup(t, &c.R1CS, domain, w)
			}
		}
	})
}

// TestInteropAroundPowersOfTwo: constraint counts just under, at and over a
// power of two, without and with public inputs, a witness of zeros, and
// repeated public values.
func TestInteropAroundPowersOfTwo(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		borders(t, id, func(name string, c *chain) {
			if c.Public == 0 && c.NbConstraints() != 16 {
				return // as good as those with public inputs, and snarkjs is slow
			}
			t.Run(name, func(t *testing.T) {
				interopSetup(t, &c.R1CS, curve.Domain{}, c.witness(0, 0), c.witness(3, 5))
			})
		})
	})
}
