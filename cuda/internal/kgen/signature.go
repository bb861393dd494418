package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// kernel is an entry point: its name without the curve, and its parameters.
type kernel struct {
	name   string
	params []param
}

// param is one parameter. Words is the size of a struct passed by value, in
// words of 32 bits, and 0 for the other kinds.
type param struct {
	name  string
	kind  kind
	words int
}

type kind uint8

const (
	pointer kind = iota
	word32
	word64
	block // a struct by value
)

var (
	entryHead  = regexp.MustCompile(`extern "C" __attribute__\(\(global\)\)`)
	entryName  = regexp.MustCompile(`^\s*(?:__attribute__\(\(launch_bounds\([^)]*\)\)\)\s*)?void (\w+)\(`)
	lineMarker = regexp.MustCompile(`^# (\d+) "([^"]*)"`)
	lastName   = regexp.MustCompile(`^(.*?)(\w+)$`)
	qualifier  = regexp.MustCompile(`\b(const|volatile|__restrict__|__restrict|struct)\b`)
)

// readKernels finds the entry points in preprocessed source, so that kernels
// may come out of macros. An error names file and line.
func readKernels(text, curve string) ([]kernel, error) {
	var all []kernel
	for _, at := range entryHead.FindAllStringIndex(text, -1) {
		rest := text[at[1]:]
		m := entryName.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("%s: a kernel is not of the form KERNEL(name)(parameters) { … }", place(text, at[0]))
		}
		name, ok := strings.CutSuffix(m[1], "_"+curve)
		if !ok {
			return nil, fmt.Errorf("%s: kernel %s is not named by KERNEL", place(text, at[0]), m[1])
		}
		list, ok := balanced(rest[len(m[0]):])
		if !ok {
			return nil, fmt.Errorf("%s: the parameters of kernel %s do not end", place(text, at[0]), name)
		}
		k := kernel{name: name}
		for _, p := range splitTop(list) {
			one, err := readParam(p)
			if err != nil {
				return nil, fmt.Errorf("%s: kernel %s: %w", place(text, at[0]), name, err)
			}
			k.params = append(k.params, one)
		}
		all = append(all, k)
	}
	return all, nil
}

// balanced is the text before the parenthesis that closes one opened before.
func balanced(s string) (string, bool) {
	depth := 1
	for i, r := range s {
		switch r {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return s[:i], true
			}
		}
	}
	return "", false
}

// splitTop splits at commas outside of <> and (); line markers are dropped.
func splitTop(s string) []string {
	var clean []string
	for line := range strings.Lines(s) {
		if !strings.HasPrefix(line, "#") {
			clean = append(clean, line)
		}
	}
	s = strings.Join(strings.Fields(strings.Join(clean, " ")), " ")
	if s == "" || s == "void" {
		return nil
	}
	var parts []string
	depth, from := 0, 0
	for i, r := range s {
		switch r {
		case '(', '<':
			depth++
		case ')', '>':
			depth--
		case ',':
			if depth == 0 {
				parts, from = append(parts, s[from:i]), i+1
			}
		}
	}
	return append(parts, s[from:])
}

func readParam(decl string) (param, error) {
	decl = strings.TrimSpace(qualifier.ReplaceAllString(decl, ""))
	m := lastName.FindStringSubmatch(decl)
	if m == nil {
		return param{}, fmt.Errorf("parameter %q has no name", decl)
	}
	typ := strings.Join(strings.Fields(m[1]), "")
	p := param{name: m[2]}
	switch {
	case typ == "":
		return param{}, fmt.Errorf("parameter %q has no name", decl)
	case strings.HasSuffix(typ, "&"):
		return param{}, fmt.Errorf("parameter %q is a reference: take a pointer", decl)
	case strings.HasSuffix(typ, "*"):
		p.kind = pointer
	case typ == "u32" || typ == "uint32_t":
		p.kind = word32
	case typ == "u64" || typ == "uint64_t":
		p.kind = word64
	case typ == "int" || typ == "unsigned" || typ == "bool" || typ == "size_t" || typ == "long" || typ == "float" || typ == "double":
		return param{}, fmt.Errorf("parameter %q: take u32 or u64", decl)
	default:
		p.kind = block
	}
	return p, nil
}

// place is the file and line of an offset in preprocessed text.
func place(text string, at int) string {
	file, line := "?", 0
	for l := range strings.Lines(text[:at]) {
		if m := lineMarker.FindStringSubmatch(l); m != nil {
			file = m[2]
			line, _ = strconv.Atoi(m[1])
			continue
		}
		if strings.HasSuffix(l, "\n") {
			line++
		}
	}
	return fmt.Sprintf("%s:%d", strings.TrimPrefix(file, "./"), line)
}

var (
	ptxEntry = regexp.MustCompile(`\.entry (\w+)\(([^)]*)\)`)
	ptxParam = regexp.MustCompile(`\.param (?:\.align \d+ )?\.(\w+) \w+(?:\[(\d+)\])?`)
)

// takeSizes reads the sizes of structs from the PTX and holds every parameter
// against what the compiler made of it.
func takeSizes(kernels []kernel, ptx, curve string) error {
	lists := map[string][][]string{}
	for _, m := range ptxEntry.FindAllStringSubmatch(ptx, -1) {
		name, ok := strings.CutSuffix(m[1], "_"+curve)
		if !ok {
			return fmt.Errorf("the PTX has an entry %s that no KERNEL names", m[1])
		}
		lists[name] = ptxParam.FindAllStringSubmatch(m[2], -1)
	}
	if len(lists) != len(kernels) {
		return fmt.Errorf("the source has %d kernels, its PTX %d", len(kernels), len(lists))
	}
	for _, k := range kernels {
		list, ok := lists[k.name]
		if !ok || len(list) != len(k.params) {
			return fmt.Errorf("kernel %s: %d parameters in the source, %d in the PTX", k.name, len(k.params), len(list))
		}
		for i, m := range list {
			p := &k.params[i]
			want := [...]string{pointer: "u64", word32: "u32", word64: "u64", block: "b8"}[p.kind]
			if m[1] != want {
				return fmt.Errorf("kernel %s: parameter %s is .%s in the PTX, not .%s", k.name, p.name, m[1], want)
			}
			if p.kind == block {
				size, err := strconv.Atoi(m[2])
				if err != nil || size%4 != 0 {
					return fmt.Errorf("kernel %s: struct %s of %q bytes is not made of words", k.name, p.name, m[2])
				}
				p.words = size / 4
			}
		}
	}
	return nil
}
