package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/stages"
)

func TestProveAndVerify(t *testing.T) {
	for _, curve := range []string{"bn128", "bls12381"} {
		for _, circuit := range []string{"vault", "silent"} {
			at := bundled(curve + "/" + circuit)
			dir := t.TempDir()
			proof, public := filepath.Join(dir, "proof.json"), filepath.Join(dir, "public.json")
			r := sl(t, codeOK, "prove", "--key", at+".zkey", "--witness", at+".wtns", "--proof", proof, "--public", public)
			if r.stdout != proof+"\n" {
				t.Errorf("standard output has more than the result: %q", r.stdout)
			}
			for _, want := range []string{"synthesize", "b_g2_msm", "made by stage", "tracked, peak"} {
				if !strings.Contains(r.stderr, want) {
					t.Errorf("the table lacks %q:\n%s", want, r.stderr)
				}
			}
			if r := sl(t, codeOK, "verify", "--key", at+".vkey.json", "--proof", proof, "--public", public); r.stdout != "OK\n" {
				t.Errorf("got %q", r.stdout)
			}
			want, err := os.ReadFile(at + ".public.json")
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(public)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s %s: public inputs %s, snarkjs says %s", curve, circuit, got, want)
			}
		}
	}
}

func TestProveFromInput(t *testing.T) {
	root, err := filepath.Abs(testdata)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	at := func(name string) string { return filepath.Join(root, name) }
	r := sl(t, codeOK, "prove", "-q", "--key", at("bn128/vault.zkey"), "--wasm", at("bn128/vault.wasm"), "--input", at("vault.json"))
	if r.stdout != "proof.json\n" || r.stderr != "" {
		t.Errorf("%q %q", r.stdout, r.stderr)
	}
	sl(t, codeOK, "verify", "--key", at("bn128/vault.zkey"), "--proof", "proof.json", "--public", "public.json")
}

func TestQuietAndReport(t *testing.T) {
	dir := t.TempDir()
	at := bundled("bn128/vault")
	report := filepath.Join(dir, "report.json")
	off := filepath.Join(dir, "off.pprof")
	r := sl(t, codeOK, "prove", "--key", at+".zkey", "--witness", at+".wtns", "--proof", dir, "--public", dir, "-q", "--json",
		"--report", report, "--offheap-profile", off, "--profile", "mem", "--profile-dir", dir, "--budget", "64MiB")
	if r.stderr != "" {
		t.Errorf("quiet, and yet: %s", r.stderr)
	}
	res := decode[proveResult](t, r.stdout)
	if !res.OK || res.Proofs != 1 || !res.Verified || res.Peak <= 0 || res.Items[0].Proof != filepath.Join(dir, "vault.proof.json") {
		t.Errorf("%+v", res)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	rep := decode[runReport](t, string(text))
	if rep.Pipeline == nil || rep.Pipeline.Stage("ntt") == nil || rep.Pipeline.Budget.Limit[alloc.Host] != 64<<20 || rep.Memory.Space(alloc.Host).Peak != res.Peak {
		t.Errorf("%s", text)
	}
	if got := files(t, dir); !slices.Equal(got, []string{"mem.pprof", "off.pprof", "report.json", "vault.proof.json", "vault.public.json"}) {
		t.Errorf("files %v", got)
	}
}

func TestBatches(t *testing.T) {
	at := bundled("bn128/vault")
	in := t.TempDir()
	var paths []string
	for _, name := range []string{"w1", "w2", "w3"} {
		paths = append(paths, copyFile(t, at+".wtns", filepath.Join(in, name+".wtns"), nil))
	}
	want := []string{"w1.proof.json", "w1.public.json", "w2.proof.json", "w2.public.json", "w3.proof.json", "w3.public.json"}
	for name, c := range map[string]struct {
		stdin string
		args  []string
	}{
		"files":  {"", append([]string{"--witness"}, paths...)},
		"folder": {"", []string{"--witness", in}},
		"stdin":  {strings.Join(paths, "\n"), []string{"--witness", "-"}},
	} {
		out := t.TempDir()
		mark := alloc.Marked()
		r := invoke(t.Context(), strings.NewReader(c.stdin), append([]string{"prove", "--key", at + ".zkey", "--proof", out, "--public", out + "/", "--set", "synthesize.workers=2"}, c.args...)...)
		mark.CheckLeaks(t)
		if got := files(t, out); r.code != 0 || !slices.Equal(got, want) {
			t.Errorf("%s: code %d, files %v\n%s", name, r.code, got, r.stderr)
		}
		if n := strings.Count(r.stdout, "\n"); n != 3 || !strings.Contains(r.stdout, "w2.proof.json\n") {
			t.Errorf("%s: printed %q", name, r.stdout)
		}
		if !strings.Contains(r.stderr, "3 proved, 0 not") {
			t.Errorf("%s: no summary in %s", name, r.stderr)
		}
	}
}

func TestPatternAndClash(t *testing.T) {
	at := bundled("bn128/vault")
	out := t.TempDir()
	sl(t, codeOK, "prove", "-q", "--key", at+".zkey", "--witness", at+".wtns", at+".wtns",
		"--proof", out+"/{n}-{name}.json", "--public", out+"/{n}.json")
	if got := files(t, out); !slices.Equal(got, []string{"1-vault.json", "1.json", "2-vault.json", "2.json"}) {
		t.Errorf("files %v", got)
	}
	r := sl(t, codeUsage, "prove", "-q", "--keep-going", "--key", at+".zkey", "--witness", at+".wtns", at+".wtns", "--proof", out, "--public", out)
	if !strings.Contains(r.stderr, "would both be written to") || !strings.Contains(r.stdout, "vault.proof.json") {
		t.Errorf("%q %q", r.stdout, r.stderr)
	}
	sl(t, codeUsage, "prove", "--key", at+".zkey", "--witness", at+".wtns", at+".wtns", "--proof", out+"/one.json")
}

// spoilWitness changes the last value of a .wtns, which a constraint ties.
func spoilWitness(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)-32] ^= 1
	return b
}

func TestKeepGoing(t *testing.T) {
	at := bundled("bn128/vault")
	in, out := t.TempDir(), t.TempDir()
	copyFile(t, at+".wtns", filepath.Join(in, "a.wtns"), spoilWitness)
	copyFile(t, at+".wtns", filepath.Join(in, "b.wtns"), nil)
	copyFile(t, at+".wtns", filepath.Join(in, "c.wtns"), func(b []byte) []byte { return b[:100] })
	copyFile(t, at+".wtns", filepath.Join(in, "d.wtns"), nil)
	args := []string{"prove", "--json", "--key", at + ".zkey", "--circuit", at + ".r1cs", "--witness", in, "--proof", out, "--public", out}

	r := sl(t, codeUnsatisfied, append(args, "--keep-going")...)
	res := decode[proveResult](t, r.stdout)
	if res.Proofs != 2 || res.Failed != 2 || len(res.Items) != 4 {
		t.Errorf("%+v", res)
	}
	codes := []int{codeUnsatisfied, codeOK, codeInput, codeOK}
	for i, item := range res.Items {
		if item.Code != codes[i] || item.OK != (codes[i] == 0) || (item.Error == "") != item.OK {
			t.Errorf("item %d: %+v", i, item)
		}
	}
	if got := files(t, out); !slices.Equal(got, []string{"b.proof.json", "b.public.json", "d.proof.json", "d.public.json"}) {
		t.Errorf("files %v", got)
	}

	r = sl(t, codeUnsatisfied, args...)
	res = decode[proveResult](t, r.stdout)
	if res.OK || res.Code != codeUnsatisfied || res.Items[0].Code != codeUnsatisfied {
		t.Errorf("%+v", res)
	}
	if res.Verified {
		t.Error("nothing was proved, and yet it was verified")
	}
	if !strings.Contains(r.stderr, "a.wtns: synthesize: ") {
		t.Errorf("the message does not name the item and the stage: %s", r.stderr)
	}
}

func TestUnsatisfied(t *testing.T) {
	for _, curve := range []string{"bn128", "bls12381"} {
		at := bundled(curve + "/vault")
		dir := t.TempDir()
		w := copyFile(t, at+".wtns", filepath.Join(dir, "w.wtns"), spoilWitness)
		proof := filepath.Join(dir, "p.json")
		r := sl(t, codeUnsatisfied, "prove", "--key", at+".zkey", "--circuit", at+".r1cs", "--witness", w, "--proof", proof, "--public", proof+".pub")
		if !strings.Contains(r.stderr, "constraint ") || !strings.Contains(r.stderr, "is not satisfied") {
			t.Errorf("the constraint is not named: %s", r.stderr)
		}
		r = sl(t, codeUnsatisfied, "prove", "--key", at+".zkey", "--witness", w, "--proof", proof, "--public", proof+".pub")
		if !strings.Contains(r.stderr, "does not verify") || !strings.Contains(r.stderr, "--circuit") {
			t.Errorf("no hint: %s", r.stderr)
		}
		if got := files(t, dir); !slices.Equal(got, []string{"w.wtns"}) {
			t.Errorf("files were left: %v", got)
		}
	}
}

// TestWrongVerifyingKey: a verifying key of another set-up is found before
// anything is proved, whatever the circuit can tell of a witness.
func TestWrongVerifyingKey(t *testing.T) {
	at := bundled("bn128/vault")
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	sl(t, codeOK, "setup", "-q", "--unsafe", "--circuit", at+".r1cs", "--key", path("own.slk"), "--vk", path("own.json"))
	// The two public inputs' points change places: all that a proving key
	// knows of a verifying key stays.
	vk, err := readVerifyingKey(t.Context(), at+".vkey.json")
	if err != nil {
		t.Fatal(err)
	}
	vk.IC[1], vk.IC[2] = vk.IC[2], vk.IC[1]
	if err := writeVerifyingKey(path("swapped.json"), vk); err != nil {
		t.Fatal(err)
	}
	out := path("out")
	for _, c := range []struct{ key, vk, want string }{
		{at + ".zkey", path("own.json"), "different set-ups"},
		{path("own.slk"), at + ".vkey.json", "different set-ups"},
		{at + ".zkey", bundled("bn128/silent.vkey.json"), "different"},
		{at + ".zkey", bundled("bls12381/vault.vkey.json"), "bls12-381"},
		{at + ".zkey", path("swapped.json"), "is not that in the second"},
	} {
		for _, more := range [][]string{nil, {"--circuit", at + ".r1cs"}} {
			r := sl(t, codeInput, append([]string{"prove", "-q", "--key", c.key, "--vk", c.vk, "--witness", at + ".wtns", "--proof", out, "--public", out + ".pub"}, more...)...)
			if !strings.Contains(r.stderr, c.want) || !strings.Contains(r.stderr, c.key) || !strings.Contains(r.stderr, c.vk) {
				t.Errorf("%s with %s: %s", c.key, c.vk, r.stderr)
			}
		}
	}
	sl(t, codeInput, "export", "key", at+".zkey", path("k.slk"), "--vk", path("own.json"))
	for _, vk := range []string{at + ".vkey.json", at + ".zkey"} {
		sl(t, codeOK, "prove", "-q", "--key", at+".zkey", "--vk", vk, "--witness", at+".wtns", "--proof", out, "--public", out+".pub")
	}
}

func TestCodeOfAProofThatDoesNotVerify(t *testing.T) {
	refused := &stages.VerifyError{Err: fmt.Errorf("verify: %w", groth16.ErrInvalidProof)}
	err := fmt.Errorf("stage assemble: %w", refused)
	if code := exitCode(inputError(err)); code != codeInvalid {
		t.Errorf("code %d, want %d", code, codeInvalid)
	}
	if code := exitCode((&material{hasC: true}).explain(err)); code != codeInvalid {
		t.Errorf("a circuit that knows C: code %d, want %d", code, codeInvalid)
	}
	if code := exitCode((&material{}).explain(err)); code != codeUnsatisfied {
		t.Errorf("a circuit that does not: code %d, want %d", code, codeUnsatisfied)
	}
}

// TestClashes: no result is lost to another, and no input to a result.
func TestClashes(t *testing.T) {
	at := bundled("bn128/vault")
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	keep := map[string]string{"k.zkey": at + ".zkey", "w.wtns": at + ".wtns", "w2.wtns": at + ".wtns", "c.r1cs": at + ".r1cs",
		"in.json": bundled("vault.json"), "c.wasm": at + ".wasm", "vk.json": at + ".vkey.json"}
	names := []string{"link"}
	for name, from := range keep {
		copyFile(t, from, path(name), nil)
		names = append(names, name)
	}
	if err := os.Symlink(path("w.wtns"), path("link")); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	one := []string{"--key", "k.zkey", "--witness", "w.wtns"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{append(one, "--proof", "x", "--public", "x"), "--proof and --public would both be written to"},
		{append(one, "--proof", "x", "--public", "no/../x"), "--proof and --public would both be written to"},
		{append(one, "--public", "proof.json"), "--proof and --public would both be written to"},
		{append(one, "--proof", "x", "--public", "y", "--report", "y"), "--report and --public would both be written to"},
		{append(one, "--report", "x", "--offheap-profile", "x"), "--report and --offheap-profile would both be written to"},
		{append(one, "--proof", "k.zkey"), "--proof would be written over the file of --key"},
		{append(one, "--public", "link"), "--public would be written over the file of --witness"},
		{append(one, "--vk", "vk.json", "--public", "vk.json"), "--public would be written over the file of --vk"},
		{append(one, "--circuit", "c.r1cs", "--public", "c.r1cs"), "--public would be written over the file of --circuit"},
		{append(one, "--offheap-profile", "k.zkey"), "--offheap-profile would be written over the file of --key"},
		{append(one, "--report", "k.zkey"), "--report would be written over the file of --key"},
		{[]string{"--key", "k.zkey", "--wasm", "c.wasm", "--input", "in.json", "--proof", "in.json"}, "--proof would be written over the file of --input"},
		{[]string{"--key", "k.zkey", "--wasm", "c.wasm", "--input", "in.json", "--proof", "c.wasm"}, "--proof would be written over the file of --wasm"},
		{append(one, "w2.wtns", "--proof", "{n}", "--public", "./{n}"), "--proof and --public would both be written to"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			root, err := filepath.Abs(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(root)
			r := sl(t, codeUsage, append([]string{"prove"}, c.args...)...)
			if !strings.Contains(r.stderr, c.want) {
				t.Errorf("%q is missing in: %s", c.want, r.stderr)
			}
			if got := files(t, "."); !slices.Equal(got, names) {
				t.Errorf("files %v", got)
			}
		})
	}
	for name, from := range keep {
		same(t, path(name), from)
	}
	// Items whose names only meet in a batch: the second fails, alone.
	r := sl(t, codeUsage, "prove", "--keep-going", "--json", "--key", path("k.zkey"), "--witness", path("w.wtns"), path("w2.wtns"),
		"--proof", dir+"/w{n}.wtns", "--public", dir+"/{n}.public")
	res := decode[proveResult](t, r.stdout)
	if res.Proofs != 1 || !res.Items[0].OK || !strings.Contains(res.Items[1].Error, "--proof of "+path("w2.wtns")+" would be written over the file of --witness") {
		t.Errorf("%+v %s", res, r.stderr)
	}
	same(t, path("w2.wtns"), at+".wtns")
	// A device takes any number of results.
	sl(t, codeOK, "prove", "-q", "--key", path("k.zkey"), "--witness", path("w.wtns"), "--proof", os.DevNull, "--public", os.DevNull)
	// The set-up's results are two files, and neither is the circuit's.
	sl(t, codeUsage, "setup", "--unsafe", "--circuit", path("c.r1cs"), "--key", path("n.slk"), "--vk", path("n.slk"))
	sl(t, codeUsage, "setup", "--unsafe", "--circuit", path("c.r1cs"), "--key", path("n.slk"), "--vk", path("c.r1cs"))
	same(t, path("c.r1cs"), at+".r1cs")
}

func TestNoVerify(t *testing.T) {
	at := bundled("bn128/vault")
	dir := t.TempDir()
	w := copyFile(t, at+".wtns", filepath.Join(dir, "w.wtns"), spoilWitness)
	proof, public := filepath.Join(dir, "proof.json"), filepath.Join(dir, "public.json")
	sl(t, codeOK, "prove", "-q", "--no-verify", "--key", at+".zkey", "--witness", w, "--proof", proof, "--public", public)
	r := sl(t, codeInvalid, "verify", "--key", at+".vkey.json", "--proof", proof, "--public", public)
	if r.stdout != "INVALID\n" {
		t.Errorf("got %q", r.stdout)
	}
}

func TestDamagedInputs(t *testing.T) {
	at := bundled("bn128/vault")
	dir := t.TempDir()
	change := func(name, from string, f func([]byte) []byte) string {
		return copyFile(t, from, filepath.Join(dir, name), f)
	}
	cut := func(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:len(b)-n] } }
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"missing key", []string{"--key", "none.zkey", "--witness", at + ".wtns"}, []string{"none.zkey"}},
		{"key that is none", []string{"--key", at + ".wtns", "--witness", at + ".wtns"}, []string{"vault.wtns", "no proving key", "circom witness"}},
		{"key cut short", []string{"--key", change("cut.zkey", at+".zkey", cut(1000)), "--witness", at + ".wtns"}, []string{"cut.zkey", "byte"}},
		{"point off the curve", []string{"--key", change("off.zkey", at+".zkey", func(b []byte) []byte {
			b[sectionAt(b, 9)+3] ^= 0x10 // of H
			return b
		}), "--witness", at + ".wtns"}, []string{"off.zkey", "section 9", "at byte"}},
		{"missing witness", []string{"--key", at + ".zkey", "--witness", "none.wtns"}, []string{"none.wtns"}},
		{"witness cut short", []string{"--key", at + ".zkey", "--witness", change("cut.wtns", at+".wtns", cut(10))}, []string{"cut.wtns", "byte"}},
		{"value too large", []string{"--key", at + ".zkey", "--witness", change("big.wtns", at+".wtns", func(b []byte) []byte {
			b[len(b)-1] = 0xff
			return b
		})}, []string{"big.wtns", "section 2", "at byte"}},
		{"witness of another curve", []string{"--key", at + ".zkey", "--witness", bundled("bls12381/vault.wtns")}, []string{"vault", "of bls12-381", "on bn254"}},
		{"witness of another circuit", []string{"--key", at + ".zkey", "--witness", bundled("bn128/silent.wtns")}, []string{"wires"}},
		{"circuit of another key", []string{"--key", at + ".zkey", "--circuit", bundled("bn128/silent.r1cs"), "--witness", at + ".wtns"}, []string{"different circuits"}},
		{"calculator of another circuit", []string{"--key", at + ".zkey", "--wasm", bundled("bn128/silent.wasm"), "--input", bundled("silent.json")}, []string{"silent.wasm"}},
		{"input that is no JSON", []string{"--key", at + ".zkey", "--wasm", at + ".wasm", "--input", change("in.json", at+".zkey", nil)}, []string{"in.json"}},
		{"input with an unknown signal", []string{"--key", at + ".zkey", "--wasm", at + ".wasm", "--input", bundled("silent.json")}, []string{"signal"}},
	} {
		out := t.TempDir()
		r := sl(t, codeInput, append([]string{"prove", "-q", "--proof", out, "--public", out}, c.args...)...)
		for _, w := range c.want {
			if !strings.Contains(r.stderr, w) {
				t.Errorf("%s: %q is missing in: %s", c.name, w, r.stderr)
			}
		}
		if got := files(t, out); len(got) > 0 || r.stdout != "" {
			t.Errorf("%s: left %v, printed %q", c.name, got, r.stdout)
		}
	}
}

// sectionAt is where the data of a section of an iden3 container begins.
func sectionAt(b []byte, id uint32) int {
	for at := 12; at < len(b); {
		n := int(binary.LittleEndian.Uint64(b[at+4:]))
		if binary.LittleEndian.Uint32(b[at:]) == id {
			return at + 12
		}
		at += 12 + n
	}
	return -1
}

func TestBudgetTooSmall(t *testing.T) {
	at := bundled("bn128/vault")
	out := t.TempDir()
	r := sl(t, codeMemory, "prove", "-q", "--budget", "100KiB", "--key", at+".zkey", "--witness", at+".wtns", "--proof", out, "--public", out)
	if !strings.Contains(r.stderr, "never fits in the budget of host 100 KiB") {
		t.Errorf("got %s", r.stderr)
	}
	if got := files(t, out); len(got) > 0 {
		t.Errorf("left %v", got)
	}
}

func TestOwnPipeline(t *testing.T) {
	at := bundled("bn128/vault")
	text := sl(t, codeOK, "export", "pipeline").stdout
	out := t.TempDir()
	args := []string{"prove", "--key", at + ".zkey", "--witness", at + ".wtns", at + ".wtns", "--proof", out + "/{n}", "--public", out + "/{n}.pub", "--pipeline"}
	own := strings.ReplaceAll(strings.Replace(text, "workers = 1", "workers = 3", 1), `"tail-msm"`, `"tail"`)
	own = strings.Replace(own, "name = \"tail\"", "name = \"tail\"\nuse = \"tail-msm\"", 1)
	r := sl(t, codeOK, append(args, write(t, "p.toml", own), "--set", "tail.workers=2")...)
	if !strings.Contains(r.stderr, "tail   ") || len(files(t, out)) != 4 {
		t.Errorf("%s", r.stderr)
	}
	bad := write(t, "p.toml", strings.Replace(text, "from = \"synthesize\"", "form = \"synthesize\"", 1))
	if r := sl(t, codeUsage, append(args, bad)...); !strings.Contains(r.stderr, "line ") || !strings.Contains(r.stderr, "form") || !strings.Contains(r.stderr, "--pipeline "+bad+": ") {
		t.Errorf("%s", r.stderr)
	}
	sl(t, codeUsage, append(args, "none.toml")...)
	if r := sl(t, codeUsage, append(args, write(t, "p.toml", text), "--set", "tail.workers=2")...); !strings.Contains(r.stderr, "tail") {
		t.Errorf("%s", r.stderr)
	}
}

func TestOrdered(t *testing.T) {
	at := bundled("bn128/vault")
	out := t.TempDir()
	args := []string{"prove", "-q", "--ordered", "--set", "synthesize.workers=4", "--key", at + ".zkey", "--proof", out + "/{n}", "--public", out + "/{n}.pub", "--witness"}
	var want strings.Builder
	for i := range 8 {
		args = append(args, at+".wtns")
		fmt.Fprintf(&want, "%s/%d\n", out, i+1)
	}
	if r := sl(t, codeOK, args...); r.stdout != want.String() {
		t.Errorf("%s", r.stdout)
	}
}

func TestUsage(t *testing.T) {
	at := bundled("bn128/vault")
	for _, c := range []struct{ args, want string }{
		{"prove --key " + at + ".zkey", "nothing to prove"},
		{"prove --key k --input i.json", "--input needs --wasm"},
		{"prove --key k --wasm w --witness x", "does not go with"},
		{"prove --key k --witness w --set ntt.worker=1", `did you mean "workers"`},
		{"prove --key k --witness w --workers=-3", "there must be one"},
		{"setup --circuit " + at + ".r1cs", "--unsafe"},
		{"export key " + at + ".zkey out.slk --fold", "--fold needs --circuit"},
		{"demo --curve bls", "unknown curve"},
		{"demo --partitions 0", "at least"},
		{"demo --log-constraints 99", "want 11 to 24"},
	} {
		r := sl(t, codeUsage, strings.Fields(c.args)...)
		if !strings.Contains(r.stderr, c.want) || r.stdout != "" {
			t.Errorf("%s: %q, want %q", c.args, r.stderr, c.want)
		}
	}
}

func TestErrorsAsJSON(t *testing.T) {
	r := sl(t, codeInput, "prove", "--json", "--key", "none.zkey", "--witness", "w.wtns")
	if f := decode[failure](t, r.stdout); f.OK || f.Code != codeInput || !strings.Contains(f.Error, "none.zkey") {
		t.Errorf("%+v", f)
	}
	r = sl(t, codeUsage, "prove", "--json", "--key", bundled("bn128/vault.zkey"))
	if f := decode[failure](t, r.stdout); f.Code != codeUsage {
		t.Errorf("%+v", f)
	}
}

// TestInterrupt cancels in the middle of a batch whose list never ends.
func TestInterrupt(t *testing.T) {
	at, err := filepath.Abs(bundled("bls12381/vault"))
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	mark := alloc.Marked()
	ctx, cancel := context.WithCancelCause(t.Context())
	r, w := io.Pipe()
	go func() {
		for {
			if _, err := io.WriteString(w, at+".wtns\n"); err != nil {
				return
			}
		}
	}()
	go func() {
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if names, _ := os.ReadDir(out); len(names) > 3 {
				break
			}
		}
		cancel(errInterrupted)
	}()
	res := invoke(ctx, r, "prove", "--key", at+".zkey", "--witness", "-", "--proof", out+"/{n}.json", "--public", out+"/{n}.public.json", "--json",
		"--set", "synthesize.workers=4", "--set", "synthesize.capacity=8")
	_ = r.CloseWithError(io.EOF)
	mark.CheckLeaks(t)
	if res.code != codeInterrupted {
		t.Fatalf("code %d: %s", res.code, res.stderr)
	}
	doc := decode[proveResult](t, res.stdout)
	if doc.OK || doc.Code != codeInterrupted || doc.Proofs < 1 || doc.Failed < 1 {
		t.Errorf("%d proved, %d not, code %d", doc.Proofs, doc.Failed, doc.Code)
	}
	got := files(t, out)
	if len(got) != 2*doc.Proofs {
		t.Errorf("%d proofs and the files %v", doc.Proofs, got)
	}
	for _, name := range got {
		if strings.Contains(name, ".part") {
			t.Errorf("half-written: %s", name)
		}
		if st, err := os.Stat(filepath.Join(out, name)); err != nil || st.Size() == 0 {
			t.Errorf("%s is empty", name)
		}
	}
}

func TestInterruptedBeforeItStarts(t *testing.T) {
	at := bundled("bn128/vault")
	out := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	mark := alloc.Marked()
	r := invoke(ctx, nil, "prove", "-q", "--key", at+".zkey", "--witness", at+".wtns", "--proof", out, "--public", out)
	mark.CheckLeaks(t)
	if r.code != codeInterrupted || len(files(t, out)) > 0 {
		t.Errorf("code %d, left %v: %s", r.code, files(t, out), r.stderr)
	}
}

func TestResultThatCannotBeWritten(t *testing.T) {
	at := bundled("bn128/vault")
	r := sl(t, codeInternal, "prove", "-q", "--key", at+".zkey", "--witness", at+".wtns", "--proof", "no/such/folder/p.json", "--public", filepath.Join(t.TempDir(), "x"))
	if !strings.Contains(r.stderr, "no/such/folder/p.json") {
		t.Errorf("got %s", r.stderr)
	}
}
