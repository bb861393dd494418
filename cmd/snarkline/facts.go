package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
)

// facts are what is said of a file: names with values for a program and texts
// for a reader, in an order.
type facts struct{ list []fact }

type fact struct {
	name  string // of the JSON field
	label string // for the reader
	value any
	text  string

	hidden bool // from the program: a detail of another fact
}

// add says a value under a name; the reader sees the text, or the value itself
// when there is none.
func (f *facts) add(name, label string, value any, text ...string) {
	t := fmt.Sprint(value)
	if len(text) > 0 {
		t = text[0]
	}
	f.list = append(f.list, fact{name: name, label: label, value: value, text: t})
}

// count says a number of things.
func (f *facts) count(name, label string, n int, note ...string) {
	t := humanize.Comma(int64(n))
	if len(note) > 0 {
		t += note[0]
	}
	f.add(name, label, n, t)
}

// size says a number of bytes.
func (f *facts) size(name, label string, n int64) {
	f.add(name, label, n, sizeText(n))
}

func sizeText(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// MarshalJSON is an object with the values in order.
func (f *facts) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, x := range f.list {
		if x.hidden {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(x.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(x.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// write prints a line a fact, the labels in a column.
func (f *facts) write(w io.Writer) error {
	width := 0
	for _, x := range f.list {
		width = max(width, utf8.RuneCountInString(x.label))
	}
	for _, x := range f.list {
		if x.label == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "  %s%*s  %s\n", x.label, width-utf8.RuneCountInString(x.label), "", x.text); err != nil {
			return err
		}
	}
	return nil
}

// percent is a share for the reader.
func percent(part, whole int) string {
	if whole == 0 {
		return "0%"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}
