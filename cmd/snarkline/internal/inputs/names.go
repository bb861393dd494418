package inputs

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Namer says what the file made from an item is called. Its three forms are a
// folder (name + suffix in it), a pattern with {name} or {n} in it, and one
// plain file for a batch of one.
type Namer struct {
	flag    string
	pattern string
	batch   bool
}

// NewNamer reads the value a user gave for an output, under a flag whose name is
// for errors. suffix goes with a folder (".proof.json"). An empty value means
// the folder "." for a batch, and the file fallback otherwise.
func NewNamer(flag, value, suffix, fallback string, batch bool) (*Namer, error) {
	n := &Namer{flag: flag, batch: batch}
	switch {
	case value == "" && batch:
		n.pattern = "{name}" + suffix
	case value == "":
		n.pattern = fallback
	case strings.Contains(value, "{name}") || strings.Contains(value, "{n}"):
		n.pattern = value
	case isDir(value) || strings.HasSuffix(value, string(filepath.Separator)):
		n.pattern = filepath.Join(value, "{name}"+suffix)
	case batch:
		return nil, fmt.Errorf("%s: a batch needs an existing folder, a name that ends in %q, or a pattern with {name} or {n}; %q is one file", flag, "/", value)
	default:
		n.pattern = value
	}
	return n, nil
}

// Path is the name for the item. A file that is claimed already is an error;
// else it is claimed for the item.
func (n *Namer) Path(it Item, claims *Claims) (string, error) {
	path := strings.NewReplacer("{name}", it.Name, "{n}", strconv.Itoa(it.Index)).Replace(n.pattern)
	what := n.flag
	if n.batch {
		what += " of " + it.Path
	}
	if err := claims.Write(path, what); err != nil {
		if n.batch && !strings.Contains(n.pattern, "{n}") {
			err = fmt.Errorf("%w (use a pattern with {n})", err)
		}
		return "", err
	}
	return path, nil
}

// Dir is the folder that the names are in, or "" when that varies.
func (n *Namer) Dir() string {
	if dir := filepath.Dir(n.pattern); !strings.Contains(dir, "{") {
		return dir
	}
	return ""
}

// Clash is an error if n and m give every item the same name.
func (n *Namer) Clash(m *Namer) error {
	if filepath.Clean(n.pattern) == filepath.Clean(m.pattern) {
		return fmt.Errorf("%s and %s would both be written to %s", n.flag, m.flag, n.pattern)
	}
	return nil
}
