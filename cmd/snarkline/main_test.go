package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consensys/gnark/logger"
	"go.uber.org/goleak"

	"github.com/snarkline/snarkline/alloc"
)

// asCommand makes the test's program the command, for the runs that sweep and tune
// make of themselves.
const asCommand = "SNARKLINE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	logger.Disable()
	// Tests that want a card say so: the others are the same on every machine.
	if err := os.Setenv(deviceEnv, "cpu"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// testdata is where the bundled circom files are.
const testdata = "../../formats/circom/testdata"

// bundled is the path of a bundled file.
func bundled(name string) string { return filepath.Join(testdata, filepath.FromSlash(name)) }

// result is what one invocation of the command left.
type result struct {
	code   int
	stdout string
	stderr string
}

// invoke runs the command in this process.
func invoke(ctx context.Context, stdin io.Reader, args ...string) result {
	var out, errs bytes.Buffer
	code := run(ctx, args, stdin, &out, &errs)
	return result{code, out.String(), errs.String()}
}

// sl runs the command and fails the test unless it ends with code. Whatever
// it does, it gives all memory back.
func sl(t *testing.T, code int, args ...string) result {
	t.Helper()
	mark := alloc.Marked()
	r := invoke(t.Context(), strings.NewReader(""), args...)
	mark.CheckLeaks(t)
	if r.code != code {
		t.Fatalf("snarkline %s: code %d, want %d\n%s%s", strings.Join(args, " "), r.code, code, r.stdout, r.stderr)
	}
	return r
}

// decode reads the command's JSON.
func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	if dec.More() {
		t.Fatalf("more than one document: %q", text)
	}
	return v
}

// files are the names in a folder.
func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// copyFile copies a file and changes it on the way.
func copyFile(t *testing.T, from, to string, change func([]byte) []byte) string {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		b = change(b)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}
