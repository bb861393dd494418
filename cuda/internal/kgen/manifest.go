package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func sumPath(dir, family string) string { return filepath.Join(dir, "ptx", family+".sum") }
func ptxPath(dir, family string, t target) string {
	return filepath.Join(dir, "ptx", family+"_"+t.name+".ptx.gz")
}
func wrapperPath(dir, family string) string { return filepath.Join(dir, family+"_wrapper.go") }

// sums is the text of ptx/<family>.sum: a line for each thing that the PTX
// comes from, and for the PTX.
func sums(dir, version string, made []*compiled) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("# What the PTX of this family comes from; go generate ./cuda/kernels writes it.\n")
	fmt.Fprintf(&b, "compiler clang %s\n", version)
	fmt.Fprintf(&b, "flags %s\n", strings.Join(flags, " "))
	var sources []string
	for i, m := range made {
		fmt.Fprintf(&b, "ptx %s %x\n", targets[i].name, sha256.Sum256(m.ptx))
		sources = append(sources, m.sources...)
	}
	slices.Sort(sources)
	for _, s := range slices.Compact(sources) {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(s)))
		if err != nil {
			return nil, fmt.Errorf("sum the sources: %w", err)
		}
		fmt.Fprintf(&b, "source %s %x\n", s, sha256.Sum256(data))
	}
	return b.Bytes(), nil
}

// verifySums holds sources and PTX of a family against its committed sums. It
// needs no compiler.
func verifySums(dir, family string) error {
	text, err := os.ReadFile(sumPath(dir, family))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s.cu was never generated: %w", family, errStale)
	}
	if err != nil {
		return fmt.Errorf("read the sums: %w", err)
	}
	var wrong []error
	seen := map[string]int{}
	for line := range strings.Lines(string(text)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		seen[word]++
		name, sum, _ := strings.Cut(rest, " ")
		var data []byte
		switch word {
		case "flags":
			if rest != strings.Join(flags, " ") {
				wrong = append(wrong, fmt.Errorf("compiled with other flags than kgen's: %w", errStale))
			}
			continue
		case "ptx":
			i := slices.IndexFunc(targets, func(t target) bool { return t.name == name })
			if i < 0 {
				wrong = append(wrong, fmt.Errorf("sums of an unknown curve %q: %w", name, errStale))
				continue
			}
			name = ptxPath(dir, family, targets[i])
			if data, err = os.ReadFile(name); err == nil {
				data, err = unpack(data)
			}
		case "source":
			data, err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		default:
			continue
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
		} else if fmt.Sprintf("%x", sha256.Sum256(data)) != sum {
			wrong = append(wrong, fmt.Errorf("%s has changed since the PTX was compiled: %w", name, errStale))
		}
	}
	if seen["flags"] != 1 || seen["ptx"] != len(targets) || seen["source"] == 0 {
		wrong = append(wrong, fmt.Errorf("%s is incomplete: %w", sumPath(dir, family), errStale))
	}
	return errors.Join(wrong...)
}

// build compiles a family for both curves and writes its wrapper.
func build(cc compiler, dir, family string, warn io.Writer) (made []*compiled, goFile []byte, err error) {
	for _, t := range targets {
		m, err := cc.compile(dir, family, t, warn)
		if err != nil {
			return nil, nil, err
		}
		made = append(made, m)
	}
	kernels, err := merge(made[0].kernels, made[1].kernels)
	if err != nil {
		return nil, nil, fmt.Errorf("%s.cu: %w", family, err)
	}
	goFile, err = wrapper(family, kernels)
	return made, goFile, err
}

// generate writes all that belongs to a family and says what it wrote.
func generate(cc compiler, dir, family string, warn io.Writer) (string, error) {
	made, goFile, err := build(cc, dir, family, warn)
	if err != nil {
		return "", err
	}
	list, err := sums(dir, cc.version, made)
	if err != nil {
		return "", err
	}
	var said strings.Builder
	if err := os.MkdirAll(filepath.Join(dir, "ptx"), 0o755); err != nil {
		return "", err
	}
	for i, m := range made {
		path := ptxPath(dir, family, targets[i])
		if old, err := os.ReadFile(path); err == nil {
			// another version of Go may compress the same PTX to other bytes
			if plain, err := unpack(old); err == nil && bytes.Equal(plain, m.ptx) {
				continue
			}
		}
		packed, err := pack(m.ptx)
		if err != nil {
			return "", fmt.Errorf("compress %s: %w", path, err)
		}
		if err := write(path, packed); err != nil {
			return "", err
		}
		fmt.Fprintf(&said, "%s: %d bytes of PTX, %d packed, %d uses of local memory\n", path, len(m.ptx), len(packed), bytes.Count(m.ptx, []byte(".local")))
	}
	if err := write(wrapperPath(dir, family), goFile); err != nil {
		return "", err
	}
	return said.String(), write(sumPath(dir, family), list)
}

// write replaces a file as a whole, so that who reads it beside us sees the
// old one or the new one.
func write(path string, data []byte) error {
	// go:embed leaves out names that begin with a dot
	tmp := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d", filepath.Base(path), os.Getpid()))
	if err := os.WriteFile(tmp, data, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// checkFamily compiles again and compares with what is committed.
func checkFamily(cc compiler, dir, family string, warn io.Writer) error {
	if err := verifySums(dir, family); err != nil {
		return err
	}
	made, goFile, err := build(cc, dir, family, warn)
	if err != nil {
		return err
	}
	var wrong []error
	for i, m := range made {
		path := ptxPath(dir, family, targets[i])
		data, err := os.ReadFile(path)
		if err == nil {
			data, err = unpack(data)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", path, err))
		} else if !bytes.Equal(data, m.ptx) {
			wrong = append(wrong, fmt.Errorf("%s is not what clang %s makes of the sources: %w", path, cc.version, errStale))
		}
	}
	committed, err := os.ReadFile(wrapperPath(dir, family))
	if err != nil {
		wrong = append(wrong, err)
	} else if !bytes.Equal(committed, goFile) {
		wrong = append(wrong, fmt.Errorf("%s is not what kgen writes: %w", wrapperPath(dir, family), errStale))
	}
	list, err := sums(dir, cc.version, made)
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(sumPath(dir, family)); err == nil && !bytes.Equal(withoutCompiler(old), withoutCompiler(list)) {
		wrong = append(wrong, fmt.Errorf("%s lists other sources: %w", sumPath(dir, family), errStale))
	}
	return errors.Join(wrong...)
}

// withoutCompiler drops the line that may differ between patch releases whose
// PTX is the same.
func withoutCompiler(text []byte) []byte {
	var kept [][]byte
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte("compiler ")) {
			kept = append(kept, line)
		}
	}
	return bytes.Join(kept, nil)
}
