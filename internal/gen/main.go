// Gen writes the copies of code that exists once for every curve or group: Go
// generics with method constraints call through dictionaries, which the
// arithmetic cannot afford, so the copies are made by substitution of names.
//
// Without arguments it makes all copies listed in table.go, from anywhere in
// the module. With -check it writes nothing and fails if a copy differs from
// what it would write.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	check := flag.Bool("check", false, "write nothing, fail if a copy is out of date")
	from := flag.String("from", "", "make only the copies from this folder (relative to the module)")
	flag.Parse()
	if err := run(*from, *check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(from string, check bool) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	for _, c := range copies {
		if from != "" && filepath.Clean(from) != c.From {
			continue
		}
		files, err := c.make(root)
		if err != nil {
			return fmt.Errorf("copy %s to %s: %w", c.From, c.To, err)
		}
		if check {
			err = c.compare(root, files)
		} else {
			err = c.write(root, files)
		}
		if err != nil {
			return fmt.Errorf("copy %s to %s: %w", c.From, c.To, err)
		}
	}
	return nil
}

// moduleRoot is the nearest folder at or above the current one with a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.mod here or above")
		}
		dir = up
	}
}
