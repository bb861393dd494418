package emulator

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const roleEnv = "EMULATOR_TEST_ROLE"

// process is this test binary run again in a role.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func again(t *testing.T, role, share string, env ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0], "-test.run=^TestRole$", "-test.v")}
	p.cmd.Env = append(os.Environ(), roleEnv+"="+role, "EMULATOR_TEST_SHARE="+share)
	p.cmd.Env = append(p.cmd.Env, env...)
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = os.Stderr
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.in.Close()
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return p
}

// line is the next line that the role wrote.
func (p *process) line() string {
	p.t.Helper()
	for p.out.Scan() {
		if s := p.out.Text(); !strings.HasPrefix(s, "=== ") && !strings.HasPrefix(s, "compiled ") {
			return s
		}
	}
	p.t.Fatalf("the other process ended: %v", p.out.Err())
	return ""
}

func (p *process) say(s string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, s); err != nil {
		p.t.Fatal(err)
	}
}

// TestRole is what the test binary does when another test has run it again.
func TestRole(t *testing.T) {
	in := bufio.NewScanner(os.Stdin)
	next := func() string { in.Scan(); return in.Text() }
	share := os.Getenv("EMULATOR_TEST_SHARE")
	switch role := os.Getenv(roleEnv); role {
	case "":
		t.Skip("for other tests")
	case "hold":
		hold(start(t, Config{Cards: []Card{{Total: 16 * mib}, {Total: 16 * mib}}, Share: share}), next)
	case "environment":
		environment(t)
	default:
		t.Fatal("no such role: ", role)
	}
}
