package emulator

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// unit is a source to compile, once for each curve if it holds kernels.
type unit struct {
	name   string
	file   string
	flags  []string
	hash   string // of all that the object depends on
	object string
	bytes  int // of source
}

func (o *Options) units(c compiler) ([]unit, error) {
	kernels, src := filepath.Join(o.Root, "cuda", "kernels"), filepath.Join(o.Root, "cuda", "emulator", "src")
	flags := append([]string{"-x", "c++", "-std=c++17", "-fPIC", "-fvisibility=hidden", "-pthread",
		"-DSNARKLINE_EMULATOR=1", "-Wno-unknown-pragmas"}, o.Flags...)
	var units []unit
	add := func(name, file string, more ...string) error {
		u := unit{name: name, file: file, flags: append(slices.Clone(flags), more...)}
		h := sha256.New()
		_, _ = fmt.Fprintf(h, "%s\n%s\n%q\n", c.path, c.version, u.flags)
		files := map[string][]byte{}
		if err := closure(file, kernels, files); err != nil {
			return err
		}
		names := make([]string, 0, len(files))
		for n := range files {
			names = append(names, n)
		}
		slices.Sort(names)
		for _, n := range names {
			_, _ = fmt.Fprintf(h, "%s %d\n", filepath.Base(n), len(files[n]))
			_, _ = h.Write(files[n])
			u.bytes += len(files[n])
		}
		u.hash = hex.EncodeToString(h.Sum(nil))[:32]
		u.object = filepath.Join(o.Cache, "objects", u.hash+".o")
		units = append(units, u)
		return nil
	}
	for _, f := range []struct{ name, level string }{
		{"block.cc", "-O2"}, {"fiber.cc", "-O2"}, {"unity_api.cc", "-O1"}, {"unity_core.cc", "-O1"},
	} {
		if err := add(f.name, filepath.Join(src, f.name), f.level); err != nil {
			return nil, err
		}
	}
	for _, f := range o.Kernels {
		for _, curve := range []string{"381", "254"} {
			err := add(fmt.Sprintf("%s, CURVE=%s", filepath.Base(f), curve), f, "-O2", "-DCURVE="+curve, "-I"+kernels)
			if err != nil {
				return nil, err
			}
		}
	}
	return units, nil
}

var include = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|([A-Za-z_]\w*))`)

// closure reads file and what it includes by name in quotes, from its own
// folder or from dir. Where a name is made by a macro, every header of dir
// counts.
func closure(file, dir string, files map[string][]byte) error {
	if _, ok := files[file]; ok {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	files[file] = text
	for _, m := range include.FindAllSubmatch(text, -1) {
		if len(m[2]) > 0 {
			all, err := filepath.Glob(filepath.Join(dir, "*.*h"))
			if err != nil {
				return err
			}
			for _, f := range all {
				if err := closure(f, dir, files); err != nil {
					return err
				}
			}
			continue
		}
		for _, at := range []string{filepath.Dir(file), dir} {
			f := filepath.Join(at, string(m[1]))
			if _, err := os.Stat(f); err == nil {
				if err := closure(f, dir, files); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}
