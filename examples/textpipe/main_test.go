package main

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/snarkline/snarkline/alloc"
)

func TestRun(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	defer alloc.Marked().CheckLeaks(t)
	var out strings.Builder
	const budget = alloc.MiB
	alloc.Default().ResetPeaks()
	if err := run(context.Background(), &out, made(12), budget); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	if peak := alloc.Default().Peak(alloc.Host); peak > budget {
		t.Errorf("%d bytes were live, the budget is %d", peak, budget)
	}
	for _, want := range []string{"text 0 ", "text 10 ", "unexpected EOF", "went through"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q", want)
		}
	}
}
