package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// The decoder does not tell where in a text an unknown key stands, nor in which
// of several tables of the same name; this finds it.

// place is where a key or a table's header stands.
type place struct {
	path []string
	nth  int // which of the tables of an array it is in; −1 outside of one
	line int // from 1
}

// places lists the keys and headers of a TOML text that is well-formed.
func places(text string) (out []place) {
	var table []string
	nth := -1
	seen := make(map[string]int)
	var sc tomlScanner
	for i, line := range strings.Split(text, "\n") {
		fresh := sc.depth == 0 && sc.quote == ""
		sc.scan(line)
		t := strings.TrimSpace(line)
		if !fresh || t == "" || t[0] == '#' {
			continue
		}
		switch {
		case strings.HasPrefix(t, "[["):
			table, _ = splitKey(t[2:])
			name := strings.Join(table, "\x00")
			nth = seen[name]
			seen[name]++
			out = append(out, place{table, nth, i + 1})
		case t[0] == '[':
			table, _ = splitKey(t[1:])
			if len(table) < 2 || seen[table[0]] == 0 {
				nth = -1
			}
			out = append(out, place{table, nth, i + 1})
		default:
			key, _ := splitKey(t)
			out = append(out, place{append(slices.Clone(table), key...), nth, i + 1})
		}
	}
	return out
}

// tomlScanner follows strings and brackets over lines.
type tomlScanner struct {
	depth int
	quote string // the delimiter of a string that is open
}

func (s *tomlScanner) scan(line string) {
	header := s.depth == 0 && s.quote == "" && strings.HasPrefix(strings.TrimSpace(line), "[")
	for i := 0; i < len(line); i++ {
		rest := line[i:]
		if s.quote != "" {
			switch {
			case line[i] == '\\' && s.quote[0] == '"':
				i++
			case strings.HasPrefix(rest, s.quote):
				i += len(s.quote) - 1
				s.quote = ""
			}
			continue
		}
		switch {
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

// splitKey reads a dotted key with its quotes, up to what ends it.
func splitKey(s string) (path []string, rest string) {
	for {
		s = strings.TrimLeft(s, " \t")
		var part string
		if s != "" && (s[0] == '"' || s[0] == '\'') {
			end := strings.IndexByte(s[1:], s[0])
			if end < 0 {
				return path, ""
			}
			part, s = s[1:1+end], s[2+end:]
		} else {
			end := strings.IndexAny(s, " \t.=]")
			if end < 0 {
				end = len(s)
			}
			part, s = s[:end], s[end:]
		}
		path = append(path, part)
		s = strings.TrimLeft(s, " \t")
		if s == "" || s[0] != '.' {
			return path, s
		}
		s = s[1:]
	}
}

// lineOf is the line of a key, or of what it is in if it stands in a table that
// is written in one line. nth says in which table of an array; −1 for any.
func lineOf(text string, nth int, path ...string) int {
	best, line := -1, 1
	for _, p := range places(text) {
		if nth >= 0 && p.nth != nth {
			continue
		}
		if n := len(p.path); n <= len(path) && n > best && slices.Equal(p.path, path[:n]) {
			best, line = n, p.line
		}
	}
	return line
}

// keyError is an error about a key of a table.
type keyError struct {
	key toml.Key
	err error
}

func (e *keyError) Error() string { return e.err.Error() }
func (e *keyError) Unwrap() error { return e.err }

// strict decodes a table that was read before into a value, and takes nothing
// that the value has no field for. Errors are *keyError where a key is to blame.
func strict(table map[string]any, into any) error {
	var b strings.Builder
	if err := toml.NewEncoder(&b).Encode(table); err != nil {
		return err
	}
	md, err := toml.Decode(b.String(), into)
	if err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) && pe.LastKey != "" {
			key, _ := splitKey(pe.LastKey)
			return &keyError{key, fmt.Errorf("key %s: %s", pe.LastKey, pe.Message)}
		}
		// Errors of types are texts that name the key, and a line of the text
		// that was decoded, which nobody has seen.
		if _, rest, ok := strings.Cut(err.Error(), "(last key \""); ok {
			if name, why, ok := strings.Cut(rest, "\"): "); ok {
				key, _ := splitKey(name)
				return &keyError{key, fmt.Errorf("key %s: %s", name, why)}
			}
		}
		return err
	}
	if unknown := md.Undecoded(); len(unknown) > 0 {
		return &keyError{unknown[0], fmt.Errorf("unknown key %s", unknown[0])}
	}
	return nil
}
