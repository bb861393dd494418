package main

import (
	"io"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/outfile"
	"github.com/snarkline/snarkline/trace"
)

// writeTrace writes a recording to a file.
func writeTrace(a *app, path string, t *trace.Trace) error {
	return outfile.Stream(path, a.until(func(w io.Writer) error { return trace.Write(w, t) }))
}
