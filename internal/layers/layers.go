// Package layers reads the table of ARCHITECTURE.md that says which package
// may import what, and finds the imports that break it. The page is the rule:
// there is no second list to keep in step.
package layers

import (
	"bufio"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Module is this module's import path.
const Module = "github.com/snarkline/snarkline"

// Rules maps a room (a top-level folder, or a deeper one that the table names)
// to the rooms it may import. A room may always import itself.
type Rules map[string][]string

// Everything, in the third column, stands for any room.
const Everything = "everything"

var code = regexp.MustCompile("`([^`]+)`")

// Read takes the rules from the table in the Markdown file at path: rows whose
// first column holds one or more names in backquotes.
func Read(path string) (Rules, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the layer rules: %w", err)
	}
	defer func() { _ = f.Close() }()
	rules := Rules{}
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		cols := strings.Split(sc.Text(), "|")
		if len(cols) != 5 {
			continue
		}
		var may []string
		switch third := strings.TrimSpace(cols[3]); third {
		case "nothing of ours":
		case Everything:
			may = []string{Everything}
		default:
			for name := range strings.SplitSeq(third, ",") {
				may = append(may, strings.TrimSpace(name))
			}
		}
		for _, m := range code.FindAllStringSubmatch(cols[1], -1) {
			rules[m[1]] = may
		}
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("read the layer rules: %w", err)
	}
	if len(rules) == 0 {
		return nil, fmt.Errorf("read the layer rules: no table in %s", path)
	}
	return rules, nil
}

// Check parses the imports of every Go file below root that is not a test and
// returns a line for each import that the rules forbid and for each folder of
// Go code that the rules do not know.
func (r Rules) Check(root string) ([]string, error) {
	var broken []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || hasModule(path)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		lines, err := r.checkFile(path, filepath.ToSlash(rel))
		broken = append(broken, lines...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("check the layers: %w", err)
	}
	return broken, nil
}

func (r Rules) checkFile(path, rel string) ([]string, error) {
	from := r.room(filepath.ToSlash(filepath.Dir(rel)))
	if from == "" {
		return []string{rel + ": its folder is not in the table"}, nil
	}
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var broken []string
	for _, imp := range f.Imports {
		target, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			return nil, err
		}
		inner, ours := strings.CutPrefix(target, Module+"/")
		if !ours {
			continue
		}
		to := r.room(inner)
		if to != from && !slices.Contains(r[from], to) && !slices.Contains(r[from], Everything) {
			broken = append(broken, fmt.Sprintf("%s: %s may not import %s", rel, from, inner))
		}
	}
	return broken, nil
}

// room is the longest name in the rules that dir lies in.
func (r Rules) room(dir string) string {
	for ; dir != "." && dir != "/"; dir = filepath.ToSlash(filepath.Dir(dir)) {
		if _, ok := r[dir]; ok {
			return dir
		}
	}
	return ""
}

func hasModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
