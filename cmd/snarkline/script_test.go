package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/pipeline"
)

// TestJSONWhenParsingFails: a script gets its document whatever is wrong.
func TestJSONWhenParsingFails(t *testing.T) {
	config := write(t, "s.toml", "buget = 1\n")
	for _, args := range [][]string{
		{"prove", "--bogus", "--json"},
		{"prove", "--json"},
		{"--json=true", "prov"},
		{"demo", "--config", config, "--json"},
		{"demo", "--config", "none.toml", "--json"},
	} {
		r := sl(t, codeUsage, args...)
		if f := decode[failure](t, r.stdout); f.OK || f.Code != codeUsage || f.Error == "" {
			t.Errorf("%v: %+v", args, f)
		}
	}
	if r := sl(t, codeUsage, "prove", "--bogus", "--", "--json"); r.stdout != "" {
		t.Errorf("printed %q", r.stdout)
	}
}

func TestUsualWaysToAsk(t *testing.T) {
	help := sl(t, codeOK, "--help").stdout
	for _, args := range [][]string{{}, {"help"}} {
		if r := sl(t, codeOK, args...); r.stdout != help {
			t.Errorf("%v: %q", args, r.stdout)
		}
	}
	if got, want := sl(t, codeOK, "help", "prove").stdout, sl(t, codeOK, "prove", "--help").stdout; got != want {
		t.Errorf("%q", got)
	}
	if got, want := sl(t, codeOK, "--version").stdout, sl(t, codeOK, "version").stdout; got != want {
		t.Errorf("%q", got)
	}
}

// TestCodeOfABatch: it is that of the failed item with the lowest place,
// whichever fails first.
func TestCodeOfABatch(t *testing.T) {
	for _, order := range [][]int{{1, 2}, {2, 1}} {
		a := &app{ctx: t.Context(), flags: &globals{}, stdout: &relay{to: &strings.Builder{}}, stderr: &relay{to: &strings.Builder{}}}
		p := &proving{proveCmd: &proveCmd{}, a: a, m: &material{hasC: true}, items: []*proveItem{{Input: "a"}, {Input: "b"}}}
		for _, part := range order {
			p.failed(pipeline.Key{Part: part}, &codedError{part + 2, fmt.Errorf("item %d", part)})
		}
		if exitCode(p.first) != 3 {
			t.Errorf("%v: code %d", order, exitCode(p.first))
		}
	}
}

func TestEmptyList(t *testing.T) {
	at := bundled("bn128/vault")
	out := t.TempDir()
	for _, list := range []string{"", "\n \n"} {
		r := invoke(context.Background(), strings.NewReader(list), "prove", "--json", "-q", "--key", at+".zkey", "--witness", "-", "--proof", out, "--public", out)
		res := decode[proveResult](t, r.stdout)
		if r.code != codeInput || res.OK || res.Verified || !strings.Contains(r.stderr, "names no file") {
			t.Errorf("code %d: %s", r.code, r.stderr)
		}
	}
}

func TestItemErrorsNameTheFileOnce(t *testing.T) {
	at := bundled("bn128/vault")
	dir := t.TempDir()
	cut := copyFile(t, at+".wtns", filepath.Join(dir, "cut.wtns"), func(b []byte) []byte { return b[:100] })
	for _, w := range []string{cut, filepath.Join(dir, "none.wtns")} {
		r := sl(t, codeInput, "prove", "-q", "--key", at+".zkey", "--witness", w, "--proof", dir, "--public", dir)
		if strings.Count(r.stderr, w) != 1 {
			t.Errorf("%s", r.stderr)
		}
	}
}

// TestUnwritableIsFoundFirst: the key does not exist, and yet it is the result
// that is complained of, so nothing has been worked for in vain.
func TestUnwritableIsFoundFirst(t *testing.T) {
	dir := t.TempDir()
	file := write(t, "file", "")
	out := filepath.Join(dir, "out")
	one := []string{"prove", "--key", "none.zkey", "--witness", "w.wtns", "--proof", out, "--public", out + ".pub"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{append(one[:5:5], "--proof", "nodir/p.json", "--public", out), "--proof: write nodir/p.json: the folder nodir does not exist"},
		{append(one[:5:5], "--proof", out, "--public", file+"/x"), "--public: "},
		{append(one[:len(one):len(one)], "--report", dir), "--report: "},
		{append(one[:len(one):len(one)], "--offheap-profile", dir), "--offheap-profile: "},
		{append(one[:5:5], "w2.wtns", "--proof", file+"/x/", "--public", dir), "--proof: "},
		{[]string{"demo", "--report", "nodir/r"}, "--report: "},
		{[]string{"setup", "--unsafe", "--circuit", "none", "--key", "nodir/c.slk", "--vk", out}, "--key: "},
	} {
		r := sl(t, codeInternal, c.args...)
		if strings.Count(r.stderr, c.want) != 1 || strings.Contains(r.stderr, "none") || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%v: %s", c.args, r.stderr)
		}
		if got := files(t, dir); len(got) > 0 {
			t.Errorf("%v: left %v", c.args, got)
		}
	}
}

// TestNamesOfAGnarkBatch: binary files are not called JSON.
func TestNamesOfAGnarkBatch(t *testing.T) {
	g := makeGnark(t, curve.BN254, true)
	out := t.TempDir()
	sl(t, codeOK, "prove", "-q", "--key", g.path("c.pk"), "--vk", g.path("c.vk"), "--circuit", g.path("c.r1cs"),
		"--witness", g.path("w.wit"), g.path("one.wit"), "--proof", out, "--public", out)
	if got := files(t, out); !slices.Equal(got, []string{"one.proof", "one.public", "w.proof", "w.public"}) {
		t.Errorf("files %v", got)
	}
}

// TestProofToAStream: standard output, redirected, gets the proof and no more.
func TestProofToAStream(t *testing.T) {
	at := bundled("bn128/vault")
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "out.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	to := fmt.Sprintf("/dev/fd/%d", f.Fd())
	if _, err := os.Stat(to); err != nil {
		t.Skip(err)
	}
	public := filepath.Join(dir, "public.json")
	r := sl(t, codeOK, "prove", "-q", "--key", at+".zkey", "--witness", at+".wtns", "--proof", to, "--public", public)
	if r.stdout != "" {
		t.Errorf("printed %q", r.stdout)
	}
	sl(t, codeOK, "verify", "--key", at+".vkey.json", "--proof", f.Name(), "--public", public)
	if st, err := f.Stat(); err != nil || st.Size() == 0 {
		t.Errorf("the file that was open has been replaced: %v %v", st, err)
	}
}
