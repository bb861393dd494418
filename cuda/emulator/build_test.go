package emulator

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func needCompiler(t *testing.T) {
	t.Helper()
	if _, err := findCompiler(t.Context()); err != nil {
		if os.Getenv(needEnv) == "1" {
			t.Fatal(err)
		}
		t.Skip("SKIPPED: ", err)
	}
}

// Two builders at once do the work once; then only what has changed is compiled;
// a mistake in a kernel is told in the compiler's words.
func TestBuild(t *testing.T) {
	needCompiler(t)
	cache, dir := t.TempDir(), t.TempDir()
	kernel := filepath.Join(dir, "mine.cu")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("mine.cuh", "#define ANSWER 42\n")
	write("mine.cu", `#include "rt.cuh"
#include "mine.cuh"
namespace CURVE_NS {
KERNEL(mine)(u32* out) { out[threadIdx.x] = ANSWER; }
EXPORT(mine)
}
`)
	o := Options{Kernels: []string{kernel}, Cache: cache, Flags: []string{"-O0"}}
	var wg sync.WaitGroup
	var built [2]Built
	var errs [2]error
	for i := range built {
		wg.Go(func() { built[i], errs[i] = Build(t.Context(), o) })
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	if built[0].Path != built[1].Path || built[0].Cached == built[1].Cached {
		t.Errorf("two builders: %+v and %+v", built[0], built[1])
	}
	if n := len(built[0].Files) + len(built[1].Files); n != 6 {
		t.Errorf("%d files compiled, want 6", n)
	}
	answer := func() uint32 {
		t.Helper()
		b, err := Build(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		c, err := bindPath(b.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer lockThread()()
		m := &machine{cu: c, t: t}
		m.must(m.Init(0))
		m.enter()
		p := m.alloc(4)
		m.run("mine", 1, 1, 0, p)
		v := download[uint32](m, p, 1)[0]
		if err := c.Configure(Config{None: true}); err != nil {
			t.Fatal(err)
		}
		return v
	}
	if got := answer(); got != 42 {
		t.Errorf("the kernel's answer is %d", got)
	}
	write("mine.cuh", "#define ANSWER 43\n")
	b, err := Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Files) != 2 || !strings.HasPrefix(b.Files[0].File, "mine.cu") || b.Path == built[0].Path {
		t.Errorf("after a change of a header: %+v", b)
	}
	if got := answer(); got != 43 {
		t.Errorf("the changed kernel's answer is %d", got)
	}
	write("mine.cuh", "#define ANSWER nonsense\n")
	_, err = Build(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "nonsense") || !strings.Contains(err.Error(), "mine.cu") {
		t.Errorf("a broken kernel: %v", err)
	}
	write("mine.cuh", "#define ANSWER 44\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Build(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}

	// Old files go, and nothing half written is left.
	old := filepath.Join(cache, "objects", "old.o")
	if err := os.WriteFile(old, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-8 * 24 * time.Hour)
	if err := os.Chtimes(old, then, then); err != nil {
		t.Fatal(err)
	}
	if got := answer(); got != 44 {
		t.Errorf("the kernel's answer is %d", got)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("an old object is kept")
	}
	left, err := filepath.Glob(filepath.Join(cache, "*", "*.tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestNoCompiler(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CXX", "")
	if _, err := Build(t.Context(), Options{}); !errors.Is(err, ErrNoCompiler) {
		t.Errorf("got %v", err)
	}
}

func TestNoRepository(t *testing.T) {
	needCompiler(t)
	t.Chdir(t.TempDir())
	if _, err := Build(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "repository") {
		t.Errorf("got %v", err)
	}
}

// TestSanitized runs testdata/exercise.cc under the address and the undefined
// behaviour sanitizers. It compiles everything for that, and so has to be asked
// for.
func TestSanitized(t *testing.T) {
	if os.Getenv("SNARKLINE_EMULATOR_SANITIZE") != "1" {
		t.Skip("SNARKLINE_EMULATOR_SANITIZE=1 runs it")
	}
	c, err := findCompiler(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "exercise")
	err = c.command(t.Context(), "-x", "c++", "-std=c++17", "-O1", "-g", "-fsanitize=address,undefined",
		"-fno-sanitize-recover=undefined", "-DSNARKLINE_EMULATOR=1", "-DCURVE=381", "-I../kernels", "-Wno-unknown-pragmas",
		"src/block.cc", "src/fiber.cc", "src/unity_api.cc", "src/unity_core.cc", "testdata/probe.cu", "testdata/exercise.cc",
		"-pthread", "-o", bin)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, filepath.Join(t.TempDir(), "share"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "fine\n") {
		t.Errorf("%v\n%s", err, out)
	}
}
