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
		n, err := NewNamer(c.value, ".proof.json", "proof.json", c.batch)
		if err != nil {
			if c.want != "" {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if got, err := n.Path(it); got != c.want || err != nil {
			t.Errorf("%+v: %s %v", c, got, err)
		}
	}
}

func TestNamerRefusesTheSameNameTwice(t *testing.T) {
	n, err := NewNamer("", ".proof.json", "", true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Path(Item{Path: "a/w.wtns", Name: "w"}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Path(Item{Path: "b/w.wtns", Name: "w"}); err == nil || !strings.Contains(err.Error(), "a/w.wtns and b/w.wtns") {
		t.Errorf("got %v", err)
	}
}
