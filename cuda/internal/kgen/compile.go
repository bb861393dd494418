package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// target is a curve as the sources and the entry points name it.
type target struct{ define, name string }

var targets = []target{{"381", "bls12381"}, {"254", "bn254"}}

// flags make the PTX depend on the sources and the compiler alone: the headers
// are the compiler's own, and its idea of the host is fixed.
var flags = []string{
	"-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_80", "--cuda-feature=+ptx78",
	"-nocudainc", "-nocudalib", "--target=x86_64-unknown-linux-gnu", "-ffreestanding", "-nostdlibinc",
	"-std=c++17", "-O3", "-Wall", "-Wno-unused-function", "-Wno-unknown-pragmas", "-Wno-pass-failed", "-I.",
}

// compiler is a clang of version 19.
type compiler struct{ path, version string }

var versionLine = regexp.MustCompile(`clang version (19\.\d+\.\d+)`)

// findCompiler takes $CLANG, clang-19 or clang, the first whose version is 19:
// other versions write other PTX.
func findCompiler() (compiler, error) {
	var tried []string
	for _, name := range []string{os.Getenv("CLANG"), "clang-19", "clang"} {
		if name == "" {
			continue
		}
		path, err := exec.LookPath(name)
		if err != nil {
			tried = append(tried, name+": not found")
			continue
		}
		text, err := exec.Command(path, "--version").Output()
		if err != nil {
			tried = append(tried, fmt.Sprintf("%s: %v", path, err))
			continue
		}
		if m := versionLine.FindSubmatch(text); m != nil {
			return compiler{path, string(m[1])}, nil
		}
		line, _, _ := bytes.Cut(text, []byte("\n"))
		tried = append(tried, fmt.Sprintf("%s is %s", path, line))
	}
	return compiler{}, fmt.Errorf("no clang of version 19 (%s)", strings.Join(tried, "; "))
}

// run calls the compiler in dir, so that no path gets into its output.
func (c compiler) run(dir string, warn io.Writer, args ...string) ([]byte, error) {
	var out, errs bytes.Buffer
	cmd := exec.Command(c.path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
	cmd.Env = append(os.Environ(), "LC_ALL=C", "CPATH=", "CPLUS_INCLUDE_PATH=")
	if err := cmd.Run(); err != nil {
		if errs.Len() > 0 {
			return nil, errors.New(strings.TrimSpace(errs.String()))
		}
		return nil, fmt.Errorf("%s: %w", c.path, err)
	}
	if _, err := warn.Write(errs.Bytes()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// compiled is one family for one curve.
type compiled struct {
	ptx     []byte
	sources []string // in dir, sorted
	kernels []kernel
}

// compile makes the PTX of a family and reads its kernels' signatures.
func (c compiler) compile(dir, family string, t target, warn io.Writer) (*compiled, error) {
	file, define := family+".cu", "-DCURVE="+t.define
	tmp, err := os.MkdirTemp("", "kgen")
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", file, err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	deps := filepath.Join(tmp, "deps")
	var out compiled
	if out.ptx, err = c.run(dir, warn, append(slices.Clone(flags), define, "-MD", "-MF", deps, "-S", "-o", "-", file)...); err != nil {
		return nil, fmt.Errorf("compile for %s:\n%w", t.name, err)
	}
	rule, err := os.ReadFile(deps)
	if err != nil {
		return nil, fmt.Errorf("read what %s includes: %w", file, err)
	}
	out.sources = dependencies(string(rule))
	text, err := c.run(dir, io.Discard, append(slices.Clone(flags), define, "-E", file)...)
	if err != nil {
		return nil, fmt.Errorf("preprocess for %s:\n%w", t.name, err)
	}
	if out.kernels, err = readKernels(string(text), t.name); err != nil {
		return nil, err
	}
	if err := takeSizes(out.kernels, string(out.ptx), t.name); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &out, nil
}

// dependencies are the files of a make rule that lie in the folder of the
// kernels; the compiler's own headers have absolute names.
func dependencies(rule string) []string {
	_, list, _ := strings.Cut(rule, ":")
	var files []string
	for _, f := range strings.Fields(strings.ReplaceAll(list, "\\\n", " ")) {
		if !filepath.IsAbs(f) {
			files = append(files, filepath.ToSlash(filepath.Clean(f)))
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// pack is gzip with nothing in its header that varies.
func pack(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func unpack(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
