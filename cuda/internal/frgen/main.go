package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	dir := flag.String("dir", ".", "directory of the headers")
	flag.Parse()
	for _, f := range fields() {
		if err := os.WriteFile(filepath.Join(*dir, f.file+".cuh"), []byte(f.header()), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "frgen:", err)
			os.Exit(1)
		}
	}
}
