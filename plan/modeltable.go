package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// modelReader takes tables apart and notes what is wrong, with its line.
type modelReader struct {
	lines map[string]int // of keys and headers, by path
	errs  []error
}

// table is a TOML table and where it stands. A path is keys joined by a zero byte,
// with a number behind the name of an array of tables.
type table struct {
	rd   *modelReader
	path string
	m    map[string]any
	used map[string]bool
}

func below(path, key string) string {
	if path == "" {
		return key
	}
	return path + "\x00" + key
}

// fault notes an error about a key of the table, or about the table if key is
// empty.
func (t *table) fault(key string, err error) {
	path := t.path
	if key != "" {
		path = below(path, key)
	}
	line := 1
	for p := path; ; {
		if l, ok := t.rd.lines[p]; ok {
			line = l
			break
		}
		i := strings.LastIndexByte(p, 0)
		if i < 0 {
			break
		}
		p = p[:i]
	}
	t.rd.errs = append(t.rd.errs, fmt.Errorf("line %d: key %s: %w", line, strings.ReplaceAll(path, "\x00", "."), err))
}

func (t *table) get(key string) (any, bool) {
	if t.used == nil {
		t.used = make(map[string]bool)
	}
	t.used[key] = true
	v, ok := t.m[key]
	return v, ok
}

// rest finds the keys that nobody asked for.
func (t *table) rest() {
	for _, k := range slices.Sorted(maps.Keys(t.m)) {
		if !t.used[k] {
			t.fault(k, fmt.Errorf("unknown key"))
		}
	}
}

func (t *table) float(key string) float64 {
	v, ok := t.get(key)
	if !ok {
		return 0
	}
	var f float64
	switch v := v.(type) {
	case int64:
		f = float64(v)
	case float64:
		f = v
	default:
		t.fault(key, fmt.Errorf("%v is not a number", v))
		return 0
	}
	if notNumber(f) {
		t.fault(key, fmt.Errorf("%v is negative or not finite", f))
		return 0
	}
	return f
}

// part is a number from 0 to 1.
func (t *table) part(key string) float64 {
	f := t.float(key)
	if f > 1 {
		t.fault(key, fmt.Errorf("%v is more than 1", f))
		return 0
	}
	return f
}

func (t *table) text(key string) string {
	v, ok := t.get(key)
	s, is := v.(string)
	if ok && !is {
		t.fault(key, fmt.Errorf("%v is not a text", v))
	}
	return s
}

func (t *table) flag(key string) bool {
	v, ok := t.get(key)
	b, is := v.(bool)
	if ok && !is {
		t.fault(key, fmt.Errorf("%v is neither true nor false", v))
	}
	return b
}

func (t *table) texts(key string) (out []string) {
	v, ok := t.get(key)
	list, is := v.([]any)
	if ok && !is {
		t.fault(key, fmt.Errorf("%v is not a list", v))
	}
	for _, x := range list {
		s, is := x.(string)
		if !is {
			t.fault(key, fmt.Errorf("%v is not a text", x))
			continue
		}
		out = append(out, s)
	}
	return out
}

func (t *table) size(key string) int64 {
	v, ok := t.get(key)
	if !ok {
		return 0
	}
	var s pipeline.Size
	if err := s.UnmarshalTOML(v); err != nil {
		t.fault(key, err)
		return 0
	}
	return int64(s)
}

func (t *table) space(key string) alloc.Space {
	v, ok := t.get(key)
	if !ok {
		return alloc.Host
	}
	name, _ := v.(string)
	s, err := alloc.ParseSpace(name)
	if err != nil {
		t.fault(key, err)
		return alloc.Host
	}
	return s
}

// amount is a table of sizes by space.
func (t *table) amount(key string) (a alloc.Amount) {
	at := t.table(key)
	if at == nil {
		return a
	}
	for _, name := range slices.Sorted(maps.Keys(at.m)) {
		s, err := alloc.ParseSpace(name)
		if err != nil {
			at.fault(name, err)
			continue
		}
		a[s] = at.size(name)
	}
	return a
}

// table is a table in the table; nil if it is not there.
func (t *table) table(key string) *table {
	v, ok := t.get(key)
	if !ok {
		return nil
	}
	m, is := v.(map[string]any)
	if !is {
		t.fault(key, fmt.Errorf("%v is not a table", v))
		return nil
	}
	return &table{rd: t.rd, path: below(t.path, key), m: m}
}

// tables are those of an array, written with headers or in line.
func (t *table) tables(key string) (out []*table) {
	v, ok := t.get(key)
	if !ok {
		return nil
	}
	var list []any
	switch v := v.(type) {
	case []map[string]any:
		for _, m := range v {
			list = append(list, m)
		}
	case []any:
		list = v
	default:
		t.fault(key, fmt.Errorf("%v is not a list of tables", v))
	}
	for i, x := range list {
		m, is := x.(map[string]any)
		if !is {
			t.fault(key, fmt.Errorf("%v is not a table", x))
			continue
		}
		out = append(out, &table{rd: t.rd, path: below(below(t.path, key), strconv.Itoa(i+1)), m: m})
	}
	return out
}

// linesOf are the lines, from 1, on which keys and headers of a TOML text stand
// that is well-formed. The decoder does not tell.
func linesOf(text string) map[string]int {
	out := make(map[string]int)
	count := make(map[string]int)
	var header string
	var sc scanner
	for i, line := range strings.Split(text, "\n") {
		fresh := sc.depth == 0 && sc.quote == ""
		sc.scan(line)
		s := strings.TrimSpace(line)
		if !fresh || s == "" || s[0] == '#' {
			continue
		}
		if s[0] != '[' {
			path := header
			for _, k := range dotted(s) {
				path = below(path, k)
				if _, known := out[path]; !known {
					out[path] = i + 1
				}
			}
			continue
		}
		many := strings.HasPrefix(s, "[[")
		header = ""
		keys := dotted(strings.TrimLeft(s, "["))
		for n, k := range keys {
			header = below(header, k)
			if many && n == len(keys)-1 {
				count[header]++
			}
			if c := count[header]; c > 0 {
				header = below(header, strconv.Itoa(c))
			}
			if _, known := out[header]; !known {
				out[header] = i + 1
			}
		}
		out[header] = i + 1
	}
	return out
}

// dotted is the dotted key that a line begins with, without its quotes.
func dotted(s string) (keys []string) {
	for {
		s = strings.TrimLeft(s, " \t")
		var key string
		if s != "" && (s[0] == '"' || s[0] == '\'') {
			end := strings.IndexByte(s[1:], s[0])
			if end < 0 {
				return keys
			}
			key, s = s[1:1+end], s[2+end:]
		} else {
			end := strings.IndexAny(s, " \t.=]")
			if end < 0 {
				end = len(s)
			}
			key, s = s[:end], s[end:]
		}
		keys = append(keys, key)
		if s = strings.TrimLeft(s, " \t"); s == "" || s[0] != '.' {
			return keys
		}
		s = s[1:]
	}
}

// scanner follows strings and brackets over lines.
type scanner struct {
	depth int
	quote string // the delimiter of a string that is open
}

func (s *scanner) scan(line string) {
	header := s.depth == 0 && s.quote == "" && strings.HasPrefix(strings.TrimSpace(line), "[")
	for i := 0; i < len(line); i++ {
		rest := line[i:]
		switch {
		case s.quote != "" && line[i] == '\\' && s.quote[0] == '"':
			i++
		case s.quote != "":
			if strings.HasPrefix(rest, s.quote) {
				i += len(s.quote) - 1
				s.quote = ""
			}
		case line[i] == '#':
			return
		case strings.HasPrefix(rest, `"""`), strings.HasPrefix(rest, `'''`):
			s.quote = rest[:3]
			i += 2
		case line[i] == '"', line[i] == '\'':
			s.quote = rest[:1]
		case header:
		case line[i] == '[', line[i] == '{':
			s.depth++
		case line[i] == ']', line[i] == '}':
			s.depth--
		}
	}
	if len(s.quote) == 1 {
		s.quote = ""
	}
}
