// Kgen compiles the device kernels of cuda/kernels to PTX and writes the Go
// wrappers that launch them. `go generate ./cuda/kernels` runs it.
//
// For each family F (a file F.cu) it writes
//
//	ptx/F_<curve>.ptx.gz   the PTX for both curves, the same bytes on any machine
//	ptx/F.sum              which sources, flags and compiler it comes from, as sha256
//	F_wrapper.go           a method with typed arguments for each kernel
//
// A family whose sources did not change since is left alone. -families names
// some, so that a half-written file beside them is no hindrance; without it, one
// family's failure does not stop the others either. -verify needs no compiler: it
// says which families have changed without being generated. -check compiles all of
// them again and compares.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "kgen:", err)
		os.Exit(1)
	}
}

// errStale is in the chain of errors about files that do not belong together.
var errStale = errors.New("run go generate ./cuda/kernels and commit what it writes")

func run(args []string, out, warn io.Writer) error {
	fs := flag.NewFlagSet("kgen", flag.ContinueOnError)
	fs.SetOutput(warn)
	dir := fs.String("dir", defaultDir(), "folder of the kernels")
	only := fs.String("families", "", "families to generate, by commas (default: all)")
	check := fs.Bool("check", false, "compile again and compare; write nothing")
	verify := fs.Bool("verify", false, "compare sums of sources with the committed ones; needs no compiler")
	force := fs.Bool("force", false, "compile families that did not change too")
	if err := fs.Parse(args); err != nil {
		return err
	}
	names, err := families(*dir, *only)
	if err != nil {
		return err
	}
	if *verify {
		return each(names, func(f string) error { return verifySums(*dir, f) })
	}
	cc, err := findCompiler()
	if err != nil {
		if *check && os.Getenv("SNARKLINE_NEED_CLANG") != "1" {
			_, err = fmt.Fprintf(warn, "kgen: SKIPPED, NOT CHECKED whether the embedded PTX belongs to the sources: %v\n", err)
		}
		return err
	}
	return each(names, func(f string) error {
		if *check {
			return checkFamily(cc, *dir, f, warn)
		}
		if !*force && verifySums(*dir, f) == nil && exists(wrapperPath(*dir, f)) {
			return nil
		}
		lines, err := generate(cc, *dir, f, warn)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(out, lines)
		return err
	})
}

// defaultDir is this folder when it holds kernels, as under go generate, and
// the one of the repository otherwise.
func defaultDir() string {
	if exists("rt.cuh") {
		return "."
	}
	return filepath.Join("cuda", "kernels")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// families lists the names before .cu in dir, or those of only.
func families(dir, only string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.cu"))
	if err != nil {
		return nil, fmt.Errorf("list the kernels of %s: %w", dir, err)
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".cu"))
	}
	if only != "" {
		wanted := strings.Split(only, ",")
		for _, w := range wanted {
			if !slices.Contains(names, w) {
				return nil, fmt.Errorf("no family %q: there is no %s", w, filepath.Join(dir, w+".cu"))
			}
		}
		names = wanted
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no kernels (*.cu) in %q", dir)
	}
	return names, nil
}

// each does f for every name, as many at a time as there are processors, and
// joins the errors in the order of the names.
func each(names []string, f func(string) error) error {
	errs := make([]error, len(names))
	slots := make(chan struct{}, runtime.NumCPU())
	var wg sync.WaitGroup
	for i, name := range names {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := f(name); err != nil {
				errs[i] = fmt.Errorf("%s: %w", name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
