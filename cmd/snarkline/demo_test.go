package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

func TestDemo(t *testing.T) {
	report := filepath.Join(t.TempDir(), "report.json")
	r := sl(t, codeOK, "demo", "--partitions", "8", "--log-constraints", "12", "--curve", "bn254", "--json", "--report", report)
	res := decode[demoResult](t, r.stdout)
	if !res.OK || res.Verified != 8 || res.Partitions != 8 || !res.Within || res.Budget <= 0 {
		t.Errorf("%+v", res)
	}
	if res.Waited == 0 {
		t.Errorf("nothing waited: the budget of %d bytes forces nothing", res.Budget)
	}
	for _, want := range []string{"keys:", "budget:", "partition  7 verified", "admission:", "tracked, peak"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("%q is missing in\n%s", want, r.stderr)
		}
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	rep := decode[runReport](t, string(text))
	if rep.Command != "demo" || rep.Pipeline.Items != 8 || rep.Settings.Budget["host"] == 0 {
		t.Errorf("%+v", rep)
	}
	// What the items held, the key apart, stays within the budget.
	if held := rep.Memory.Space(alloc.Host).Peak - rep.Resident.Before; held > res.Budget {
		t.Errorf("the items held %d bytes, the budget is %d", held, res.Budget)
	}
}

func TestDemoInterrupted(t *testing.T) {
	mark := alloc.Marked()
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(300*time.Millisecond, func() { cancel(errInterrupted) })
	r := invoke(ctx, nil, "demo", "--debug", "--partitions", "500", "--log-constraints", "11")
	mark.CheckLeaks(t)
	if r.code != codeInterrupted || r.stdout != "" || !strings.Contains(r.stderr, "interrupted") {
		t.Errorf("code %d, %q, %s", r.code, r.stdout, r.stderr)
	}
}

func TestDemoBudgetTooSmall(t *testing.T) {
	r := sl(t, codeMemory, "demo", "--partitions", "2", "--log-constraints", "11", "--budget", "1MiB")
	if !strings.Contains(r.stderr, "a partition needs ") || strings.Contains(r.stderr, "room for 0") {
		t.Errorf("%s", r.stderr)
	}
}

func TestSignalCancels(t *testing.T) {
	ctx, stop := interruptible(t.Context())
	defer stop()
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the signal did nothing")
	}
	if !errors.Is(context.Cause(ctx), errInterrupted) || exitCode(context.Cause(ctx)) != codeInterrupted {
		t.Errorf("cause %v", context.Cause(ctx))
	}
}
