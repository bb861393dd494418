package main

import "github.com/snarkline/snarkline/cmd/snarkline/internal/inputs"

// file is a path with the flag or argument that gave it.
type file struct{ flag, path string }

// claims are the files that a command reads, and those that the global flags
// have written. A clash is an error of usage.
func (a *app) claims(read ...file) (*inputs.Claims, error) {
	c := &inputs.Claims{}
	for _, f := range read {
		if err := c.Read(f.path, f.flag); err != nil {
			return nil, usagef("%w", err)
		}
	}
	return c, claimWrites(c, file{"--report", a.flags.Report}, file{"--offheap-profile", a.flags.OffheapProfile})
}

// claimWrites claims files for results.
func claimWrites(c *inputs.Claims, written ...file) error {
	for _, f := range written {
		if err := c.Write(f.path, f.flag); err != nil {
			return usagef("%w", err)
		}
	}
	return nil
}
