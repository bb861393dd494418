package main

import (
	"fmt"
	"strings"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/inputs"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/outfile"
)

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

// writable makes sure, before the work, that its results can be written where
// the flags say, those of the global flags among them.
func (a *app) writable(files ...file) error {
	for _, f := range append(files, file{"--report", a.flags.Report}, file{"--offheap-profile", a.flags.OffheapProfile}) {
		if f.path == "" {
			continue
		}
		if err := outfile.Check(f.path); err != nil {
			a.unwritable = true
			if f.flag == "" { // an argument, which the error names
				return err
			}
			return fmt.Errorf("%s: %w", f.flag, err)
		}
	}
	return nil
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

// planned is a recording or a model that a command reads, and what names it in
// errors: the flag, or for an argument what it is.
func planned(flag, path string) file {
	switch {
	case flag != "":
		return file{flag, path}
	case strings.HasSuffix(path, ".toml"):
		return file{"the model", path}
	}
	return file{"the recording", path}
}

// configFile is the settings file of --config, which is read.
func (a *app) configFile() file {
	if f := a.flags.Config.file; f != nil {
		return file{"--config", f.Path}
	}
	return file{"--config", ""}
}
