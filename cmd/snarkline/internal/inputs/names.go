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
	pattern string
	taken   map[string]string // path → the input it was made from
}

// NewNamer reads the value a user gave for an output. suffix goes with a
// folder (".proof.json"). An empty value means the folder "." for a batch, and
// the file fallback otherwise.
func NewNamer(value, suffix, fallback string, batch bool) (*Namer, error) {
	n := &Namer{taken: map[string]string{}}
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
		return nil, fmt.Errorf("a batch needs an existing folder, a name that ends in %q, or a pattern with {name} or {n}; %q is one file", "/", value)
	default:
		n.pattern = value
	}
	return n, nil
}

// Path is the name for the item. Two items that would get the same name are an
// error for the second. It is not safe for concurrent use.
func (n *Namer) Path(it Item) (string, error) {
	path := strings.NewReplacer("{name}", it.Name, "{n}", strconv.Itoa(it.Index)).Replace(n.pattern)
	if first, ok := n.taken[path]; ok {
		return "", fmt.Errorf("%s and %s would both be written to %s (use a pattern with {n})", first, it.Path, path)
	}
	n.taken[path] = it.Path
	return path, nil
}

// Dir is the folder that the names are in, or "" when that varies.
func (n *Namer) Dir() string {
	if dir := filepath.Dir(n.pattern); !strings.Contains(dir, "{") {
		return dir
	}
	return ""
}
