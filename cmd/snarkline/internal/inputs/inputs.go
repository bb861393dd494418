// Package inputs finds the files of a batch (named one by one, in a folder, or
// listed on standard input) and says what the files made from them are called.
package inputs

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Item is one input of a batch.
type Item struct {
	Path  string
	Name  string // the file's name without folder and extension
	Index int    // place in the batch, from 1
}

// Args are the arguments a user gave for an input.
type Args []string

// IsBatch reports whether the arguments mean several items, in the sense that
// results go to a folder or a pattern rather than to one file.
func (a Args) IsBatch() bool {
	if len(a) != 1 {
		return len(a) > 1
	}
	return a[0] == "-" || isDir(a[0])
}

// ReadsStdin reports whether one of the arguments is "-".
func (a Args) ReadsStdin() bool { return slices.Contains(a, "-") }

// Count is the number of items, or -1 when only standard input knows.
func (a Args) Count(exts ...string) (int, error) {
	n := 0
	for _, arg := range a {
		switch {
		case arg == "-":
			return -1, nil
		case isDir(arg):
			files, err := list(arg, exts)
			if err != nil {
				return 0, err
			}
			n += len(files)
		default:
			n++
		}
	}
	return n, nil
}

// All yields the items in order. A folder stands for the files in it that have
// one of the extensions, by name; "-" for the paths on stdin, one a line, as
// they arrive. It ends early when ctx is done, also while stdin is silent. An
// error ends it.
func (a Args) All(ctx context.Context, stdin io.Reader, exts ...string) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		n := 0
		emit := func(path string) bool {
			n++
			return yield(Item{Path: path, Name: Stem(path), Index: n}, nil)
		}
		for _, arg := range a {
			switch {
			case arg == "-":
				for path, err := range lines(ctx, stdin) {
					if err != nil {
						yield(Item{}, err)
						return
					}
					if !emit(path) {
						return
					}
				}
			case isDir(arg):
				files, err := list(arg, exts)
				if err != nil {
					yield(Item{}, err)
					return
				}
				for _, f := range files {
					if !emit(f) {
						return
					}
				}
			default:
				if !emit(arg) {
					return
				}
			}
		}
	}
}

// Stem is the file's name without folder and last extension.
func Stem(path string) string {
	base := filepath.Base(path)
	if stem := strings.TrimSuffix(base, filepath.Ext(base)); stem != "" {
		return stem
	}
	return base
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

func list(dir string, exts []string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains(exts, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no %s file in this folder", dir, strings.Join(exts, " or "))
	}
	return files, nil
}

// lines reads r in a goroutine of its own, so that a silent r does not hold up
// the end of ctx. That goroutine ends with r, or with the next line after ctx.
func lines(ctx context.Context, r io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		type line struct {
			text string
			err  error
		}
		ch := make(chan line)
		go func() {
			defer close(ch)
			sc := bufio.NewScanner(r)
			send := func(l line) bool {
				select {
				case ch <- l:
					return true
				case <-ctx.Done():
					return false
				}
			}
			for sc.Scan() {
				text := strings.TrimSuffix(sc.Text(), "\r")
				if strings.TrimSpace(text) != "" && !send(line{text: text}) {
					return
				}
			}
			if err := sc.Err(); err != nil {
				send(line{err: fmt.Errorf("read the list on standard input: %w", err)})
			}
		}()
		for {
			select {
			case <-ctx.Done():
				return
			case l, ok := <-ch:
				if !ok || !yield(l.text, l.err) || l.err != nil {
					return
				}
			}
		}
	}
}
