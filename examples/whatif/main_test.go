package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/snarkline/snarkline/alloc"
)

func TestRun(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	defer alloc.Marked().CheckLeaks(t)
	var out strings.Builder
	page := filepath.Join(t.TempDir(), "run.html")
	if err := run(context.Background(), &out, 12, page); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	for _, want := range []string{"recorded", "[read.workers=4 read.capacity=1]", "the fastest within 6 MiB", "[stages.read]"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	html, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(html), "</html>") {
		t.Errorf("the page: %d bytes, %v", len(html), err)
	}
}
