package emulator

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// Options say what to build. The zero value is the library with every kernel of
// cuda/kernels.
type Options struct {
	Root    string   // of the repository; "": found from the working directory
	Kernels []string // files; nil: every *.cu of cuda/kernels
	Cache   string   // a folder; "": snarkline/emulator in the user's cache folder
	Flags   []string // more for the compiler, with what SNARKLINE_EMULATOR_FLAGS says
}

// flagsEnv has more flags for the compiler. With "-fsanitize=undefined
// -fsanitize-trap=undefined" (clang) a kernel that does what C++ does not define
// ends its context with CUDA_ERROR_ILLEGAL_INSTRUCTION.
const flagsEnv = "SNARKLINE_EMULATOR_FLAGS"

// Built is a library that stands in a file.
type Built struct {
	Path     string
	Compiler string // its path
	Cached   bool   // it was there already
	Took     time.Duration
	Files    []FileTime // what was compiled, the slowest first; others were there already
}

// FileTime is how long a source took to compile.
type FileTime struct {
	File string // "ntt.cu, CURVE=381"
	Took time.Duration
}

// ErrNoCompiler is the error when there is no C++ compiler.
var ErrNoCompiler = errors.New("no C++ compiler: none of $CXX, clang++-19, clang++, g++ is there")

// Library builds the library with every kernel, if it is not there yet, and
// gives its path.
func Library(ctx context.Context) (string, error) {
	b, err := Build(ctx, Options{})
	return b.Path, err
}

// Build compiles what has changed, on all processors but with low priority, and
// links it. What was built before is kept in the cache by the hash of all that
// goes into it; several processes may build at once.
func Build(ctx context.Context, o Options) (b Built, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("build the emulator: %w", err)
		}
	}()
	start := time.Now()
	c, err := findCompiler(ctx)
	if err != nil {
		return b, err
	}
	b.Compiler = c.path
	if err := o.fill(); err != nil {
		return b, err
	}
	units, err := o.units(c)
	if err != nil {
		return b, err
	}
	h := sha256.New()
	for _, u := range units {
		_, _ = h.Write([]byte(u.hash + "\n"))
	}
	b.Path = filepath.Join(o.Cache, "libsnarkline-emulator-"+hex.EncodeToString(h.Sum(nil))[:32]+".so")
	if found(b.Path) {
		b.Cached = true
		return b, nil
	}
	unlock, err := lockFile(ctx, filepath.Join(o.Cache, "lock"))
	if err != nil {
		return b, err
	}
	defer unlock()
	if found(b.Path) { // somebody else has built it
		b.Cached = true
		return b, nil
	}
	if b.Files, err = compileAll(ctx, c, units); err != nil {
		return b, err
	}
	if err := link(ctx, c, units, o.Flags, b.Path); err != nil {
		return b, err
	}
	b.Took = time.Since(start)
	prune(o.Cache)
	return b, nil
}

func (o *Options) fill() (err error) {
	if o.Root == "" {
		if o.Root, err = findRoot(); err != nil {
			return err
		}
	}
	if o.Cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("where to keep it: %w", err)
		}
		o.Cache = filepath.Join(dir, "snarkline", "emulator")
	}
	if err := os.MkdirAll(o.Cache, 0o755); err != nil {
		return err
	}
	o.Flags = append(slices.Clone(o.Flags), strings.Fields(os.Getenv(flagsEnv))...)
	if o.Kernels == nil {
		if o.Kernels, err = filepath.Glob(filepath.Join(o.Root, "cuda", "kernels", "*.cu")); err != nil {
			return err
		}
	}
	return nil
}

// findRoot goes up from the working directory to this module's go.mod.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		text, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && bytes.HasPrefix(text, []byte("module github.com/snarkline/snarkline\n")) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is in no copy of the repository, whose sources it takes", dir)
		}
	}
}

type compiler struct {
	path    string
	version string
}

func findCompiler(ctx context.Context) (compiler, error) {
	for _, name := range []string{os.Getenv("CXX"), "clang++-19", "clang++", "g++"} {
		if name == "" {
			continue
		}
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := exec.CommandContext(ctx, path, "--version").Output()
		if err != nil {
			return compiler{}, fmt.Errorf("%s --version: %w", path, err)
		}
		return compiler{path, string(out)}, nil
	}
	return compiler{}, ErrNoCompiler
}

// command runs a compiler with low priority; its own words are in the error.
func (c compiler) command(ctx context.Context, args ...string) error {
	name := c.path
	if nice, err := exec.LookPath("nice"); err == nil {
		name, args = nice, append([]string{"-n", "10", c.path}, args...)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		const most = 8 << 10
		if len(out) > most {
			out = append(out[:most], "\n…"...)
		}
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

func compileAll(ctx context.Context, c compiler, units []unit) ([]FileTime, error) {
	times := make([]FileTime, len(units))
	// The largest first: they take longest.
	order := make([]int, len(units))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(units[b].bytes, units[a].bytes) })
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU())
	for _, i := range order {
		u := units[i]
		if found(u.object) {
			continue
		}
		g.Go(func() error {
			start := time.Now()
			err := into(u.object, func(tmp string) error {
				return c.command(ctx, append(slices.Clone(u.flags), "-c", u.file, "-o", tmp)...)
			})
			times[i] = FileTime{File: u.name, Took: time.Since(start)}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	times = slices.DeleteFunc(times, func(t FileTime) bool { return t.File == "" })
	slices.SortFunc(times, func(a, b FileTime) int { return cmp.Compare(b.Took, a.Took) })
	return times, nil
}

func link(ctx context.Context, c compiler, units []unit, flags []string, path string) error {
	return into(path, func(tmp string) error {
		args := []string{"-shared", "-o", tmp, "-pthread"}
		if runtime.GOOS == "linux" {
			args = append(args, "-Wl,-z,defs", "-Wl,-z,nodelete")
		}
		args = append(args, flags...)
		for _, u := range units {
			args = append(args, u.object)
		}
		return c.command(ctx, args...)
	})
}

// into lets make write a file beside path, which then takes its place.
func into(path string, make func(tmp string) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	if err := make(tmp); err != nil {
		// Compilers that were stopped leave files of their own beside it.
		left, _ := filepath.Glob(fmt.Sprintf("%s.%d*", path, os.Getpid()))
		for _, f := range left {
			_ = os.Remove(f)
		}
		return err
	}
	return os.Rename(tmp, path)
}

// found says whether path is there, and that it was used.
func found(path string) bool {
	now := time.Now()
	return os.Chtimes(path, now, now) == nil
}

// prune removes what nobody has used for a week.
func prune(cache string) {
	old := time.Now().Add(-7 * 24 * time.Hour)
	_ = filepath.WalkDir(cache, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "lock" {
			if info, err := d.Info(); err == nil && info.ModTime().Before(old) {
				_ = os.Remove(path)
			}
		}
		return nil
	})
}
