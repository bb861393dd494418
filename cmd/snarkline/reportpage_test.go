package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReportPage draws the demonstration, and a run that was cut short.
func TestReportPage(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "run.trace")
	sl(t, codeOK, "demo", "--partitions", "3", "--log-constraints", "11", "--curve", "bn254", "--quiet", "--trace", path)
	if out := sl(t, codeOK, "report", path); strings.TrimSpace(out.stdout) != filepath.Join(dir, "run.html") {
		t.Errorf("it wrote %q", out.stdout)
	}
	page, err := os.ReadFile(filepath.Join(dir, "run.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 items went through", "snarkline demo", "b_g2_msm", "of a budget of"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
	cut := copyFile(t, path, filepath.Join(dir, "cut.trace"), func(b []byte) []byte { return b[:len(b)-10] })
	other := filepath.Join(dir, "other.html")
	if r := decode[reportResult](t, sl(t, codeOK, "report", "--json", "-o", other, cut).stdout); !r.OK || r.File != other {
		t.Errorf("%+v", r)
	}
	if page, err = os.ReadFile(other); err != nil || !strings.Contains(string(page), "The recording ends before the run did") {
		t.Errorf("the page does not say that the run was cut: %v", err)
	}
}

func TestReportPageErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "no.trace")
	if err := os.WriteFile(path, []byte("no recording"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{codeInput, "no.trace", []string{path}},
		{codeInput, "none.trace", []string{filepath.Join(dir, "none.trace")}},
		{codeUsage, "no.trace", []string{path, "-o", path}},
		{codeUsage, "-o", []string{"/dev/stdin"}},
	} {
		if out := sl(t, c.code, append([]string{"report"}, c.args...)...); !strings.Contains(out.stderr, c.want) {
			t.Errorf("%v: %q is not in %s", c.args, c.want, out.stderr)
		}
	}
	if got := files(t, dir); len(got) != 1 {
		t.Errorf("files were left: %q", got)
	}
}
