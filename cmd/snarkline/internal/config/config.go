// Package config reads a settings file: the flags of the command under their
// own names, the flags of one subcommand in a table named after it, and the
// workers and capacities of stages in tables [stages.NAME]. Every value keeps
// the line it came from, so that an error can name it.
package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/BurntSushi/toml"
)

// Value is one setting.
type Value struct {
	Key  []string // path of names, outermost first
	Data any      // string, int64, float64, bool or []any
	Line int
}

// File is a settings file.
type File struct {
	Path   string
	Values []Value // in the order of the file
}

// Error is a fault of a settings file.
type Error struct {
	Path string
	Line int
	Msg  string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.Path, e.Msg)
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Msg)
}

// Errorf is a fault of the setting v.
func (f *File) Errorf(v Value, format string, args ...any) *Error {
	return &Error{Path: f.Path, Line: v.Line, Msg: fmt.Sprintf(format, args...)}
}

// Load reads the settings file at path.
func Load(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, string(text))
}

// Parse reads settings from text; path is for errors.
func Parse(path, text string) (*File, error) {
	var whole map[string]any
	if _, err := toml.Decode(text, &whole); err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			return nil, &Error{Path: path, Line: pe.Position.Line, Msg: pe.Message}
		}
		return nil, &Error{Path: path, Msg: strings.TrimPrefix(err.Error(), "toml: ")}
	}
	lines := keyLines(text)
	f := &File{Path: path}
	md, _ := toml.Decode(text, &whole)
	for _, key := range md.Keys() {
		data, ok := find(whole, key)
		if !ok {
			continue // inside an array of tables; the array itself is reported
		}
		if _, table := data.(map[string]any); table {
			continue
		}
		f.Values = append(f.Values, Value{Key: key, Data: data, Line: lines[key.String()]})
	}
	return f, nil
}

func find(m map[string]any, key toml.Key) (any, bool) {
	var at any = m
	for _, k := range key {
		t, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = t[k]; !ok {
			return nil, false
		}
	}
	return at, true
}

// keyLines finds the line on which each key of a valid document is defined: it
// cuts the text into the shortest runs of lines that are documents of their
// own, each a table header or one assignment.
func keyLines(text string) map[string]int {
	at := map[string]int{}
	var prefix toml.Key
	var chunk strings.Builder
	start := 1
	for i, line := range strings.Split(text, "\n") {
		if chunk.Len() == 0 {
			start = i + 1
		}
		chunk.WriteString(line)
		chunk.WriteByte('\n')
		var any map[string]any
		md, err := toml.Decode(chunk.String(), &any)
		if err != nil {
			continue // a value goes on over the next line
		}
		header := strings.HasPrefix(strings.TrimSpace(chunk.String()), "[")
		chunk.Reset()
		for n, key := range md.Keys() {
			if header {
				if n == len(md.Keys())-1 {
					prefix = key
				}
				continue
			}
			full := append(append(toml.Key{}, prefix...), key...)
			if _, seen := at[full.String()]; !seen {
				at[full.String()] = start
			}
		}
	}
	return at
}
