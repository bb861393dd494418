package progress

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func waitFor(t *testing.T, out *buffer, text string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !strings.Contains(out.String(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q was never shown; shown was %q", text, out.String())
		}
	}
}

func TestLines(t *testing.T) {
	var out buffer
	m := Start(Options{Out: &out, Unit: "proofs", Total: 12, Interval: time.Millisecond,
		Memory: func() (int64, int64) { return 1 << 30, 4 << 30 }})
	m.Begin("ntt")
	m.Begin("h-msm")
	m.Begin("h-msm")
	m.Done(2)
	m.Fail()
	waitFor(t, &out, "snarkline: 3 of 12 proofs, 0s, 1 failed, ntt h-msm ×2, 1.0 GiB of 4.0 GiB\n")
	m.End("ntt")
	m.End("h-msm")
	waitFor(t, &out, "1 failed, h-msm, 1.0")
	m.Stop()
	n := len(out.String())
	time.Sleep(5 * time.Millisecond)
	if len(out.String()) != n {
		t.Error("wrote after Stop")
	}
}

func TestUnknownTotal(t *testing.T) {
	var out buffer
	m := Start(Options{Out: &out, Unit: "proofs", Total: -1, Interval: time.Millisecond})
	m.Done(1)
	waitFor(t, &out, "snarkline: 1 proofs, 0s\n")
	m.Set(1, 2)
	waitFor(t, &out, "snarkline: 1 of 2 proofs, 0s\n")
	m.Stop()
}

func TestBarAndMessages(t *testing.T) {
	var out buffer
	m := Start(Options{Out: &out, Bar: true, Unit: "proofs", Total: 3})
	m.Begin("ntt")
	m.Done(1)
	waitFor(t, &out, "1/3 proofs")
	waitFor(t, &out, "ntt")
	if _, err := fmt.Fprintln(m.Writer(), "a message"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, &out, "a message\n")
	m.Done(2)
	m.Stop()
	if !strings.Contains(out.String(), "3/3 proofs") {
		t.Errorf("the last state is missing: %q", out.String())
	}
}

func TestOff(t *testing.T) {
	var out buffer
	m := Start(Options{Out: &out, Off: true, Bar: true})
	stopped := false
	m.OnStop(func() { stopped = true })
	m.Done(1)
	m.Stop()
	if out.String() != "" || !stopped || m.Writer() != &out {
		t.Errorf("%q, stopped %v", out.String(), stopped)
	}
}

func TestIsTerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if IsTerminal(null) || IsTerminal(&bytes.Buffer{}) {
		t.Error("taken for a terminal")
	}
}
