package inputs

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func collect(t *testing.T, a Args, stdin string) []string {
	t.Helper()
	var out []string
	for it, err := range a.All(context.Background(), strings.NewReader(stdin), ".wtns") {
		if err != nil {
			t.Fatal(err)
		}
		if it.Index != len(out)+1 {
			t.Errorf("item %d has index %d", len(out)+1, it.Index)
		}
		out = append(out, it.Path)
	}
	return out
}

func TestAll(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"b.wtns", "a.wtns", "c.json"} {
		if err := os.WriteFile(filepath.Join(dir, n), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, b := filepath.Join(dir, "a.wtns"), filepath.Join(dir, "b.wtns")
	for _, c := range []struct {
		args  Args
		stdin string
		want  []string
		batch bool
		count int
	}{
		{Args{"x"}, "", []string{"x"}, false, 1},
		{Args{"x", "y"}, "", []string{"x", "y"}, true, 2},
		{Args{dir}, "", []string{a, b}, true, 2},
		{Args{"-"}, "p\r\n\n  \nq r\n", []string{"p", "q r"}, true, -1},
		{Args{"x", dir, "-"}, "p", []string{"x", a, b, "p"}, true, -1},
	} {
		if got := collect(t, c.args, c.stdin); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.args, got, c.want)
		}
		if c.args.IsBatch() != c.batch {
			t.Errorf("%v: batch %v", c.args, !c.batch)
		}
		if n, err := c.args.Count(".wtns"); err != nil || n != c.count {
			t.Errorf("%v: count %d %v", c.args, n, err)
		}
	}
}

func TestEmptyFolderIsAnError(t *testing.T) {
	for _, err := range (Args{t.TempDir()}).All(context.Background(), nil, ".wtns") {
		if err == nil || !strings.Contains(err.Error(), "no .wtns file") {
			t.Errorf("got %v", err)
		}
		return
	}
	t.Error("no error")
}

func TestSilentStdinDoesNotHoldUpCancellation(t *testing.T) {
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int)
	go func() {
		n := 0
		for range (Args{"-"}).All(ctx, r, ".wtns") {
			n++
			cancel()
		}
		done <- n
	}()
	if _, err := io.WriteString(w, "one\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case n := <-done:
		if n != 1 {
			t.Errorf("%d items", n)
		}
	case <-time.After(5 * time.Second):
		t.Error("still waiting for standard input")
	}
	_ = w.CloseWithError(errors.New("closed"))
}

func TestNamer(t *testing.T) {
	dir := t.TempDir()
	it := Item{Path: "in/w1.wtns", Name: "w1", Index: 3}
	for _, c := range []struct {
		value string
		batch bool
		want  string
	}{
		{"", false, "proof.json"},
		{"", true, "w1.proof.json"},
		{"p.json", false, "p.json"},
		{dir, false, filepath.Join(dir, "w1.proof.json")},
		{dir, true, filepath.Join(dir, "w1.proof.json")},
		{"out/", true, "out/w1.proof.json"},
		{"out/{n}-{name}.json", true, "out/3-w1.json"},
		{"p.json", true, ""},
	} {
		n, err := NewNamer("--proof", c.value, ".proof.json", "proof.json", c.batch)
		if err != nil {
			if c.want != "" {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if got, err := n.Path(it, &Claims{}); got != c.want || err != nil {
			t.Errorf("%+v: %s %v", c, got, err)
		}
	}
}

func TestNamerRefusesTheSameNameTwice(t *testing.T) {
	var claims Claims
	name := func(flag, value string, it Item) error {
		n, err := NewNamer(flag, value, ".proof.json", "", true)
		if err != nil {
			t.Fatal(err)
		}
		_, err = n.Path(it, &claims)
		return err
	}
	if err := name("--proof", "", Item{Path: "a/w.wtns", Name: "w"}); err != nil {
		t.Fatal(err)
	}
	err := name("--proof", "", Item{Path: "b/w.wtns", Name: "w"})
	if err == nil || !strings.Contains(err.Error(), "--proof of a/w.wtns and --proof of b/w.wtns would both be written to w.proof.json (use a pattern with {n})") {
		t.Errorf("got %v", err)
	}
	err = name("--public", "./{name}.json", Item{Path: "w.proof.wtns", Name: "w.proof"})
	if err == nil || !strings.Contains(err.Error(), "--proof of a/w.wtns and --public of w.proof.wtns") {
		t.Errorf("the names of another flag: %v", err)
	}
}

func TestClaims(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("real"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(at("real"), at("link")); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(dir, at("folder")); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		name  string
		first string
		write bool // the first
		then  string
		read  bool // the second
		want  string
	}{
		{"two results", "x", true, "x", false, "A and B would both be written to"},
		{"otherwise spelt", "x", true, "no/../x", false, "A and B would both be written to"},
		{"through a link", "real", true, "link", false, "A and B would both be written to"},
		{"in a linked folder", "x", true, "folder/x", false, "A and B would both be written to"},
		{"over what is read", "real", false, "real", false, "B would be written over the file of A"},
		{"reading a result", "x", true, "x", true, "A would be written over the file of B"},
		{"read twice", "real", false, "real", true, ""},
		{"others", "x", true, "y", false, ""},
	} {
		var claims Claims
		first, then := claims.Read, claims.Write
		if c.write {
			first = claims.Write
		}
		if c.read {
			then = claims.Read
		}
		if err := first(at(c.first), "A"); err != nil {
			t.Fatal(err)
		}
		try := claims.Clone()
		err := then(dir+"/"+c.then, "B")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if err := try.Write(at("other"), "C"); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := claims.Write(at("other"), "D"); err != nil {
			t.Errorf("%s: what a copy claims counts for the original: %v", c.name, err)
		}
	}
	var claims Claims
	for range 2 {
		if err := claims.Write(os.DevNull, "A"); err != nil {
			t.Errorf("a device: %v", err)
		}
		if err := claims.Write("", "A"); err != nil {
			t.Errorf("no file: %v", err)
		}
	}
}
