package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pkg/profile"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/outfile"
)

// measure starts what --profile and --offheap-profile ask for; the function
// that it returns ends and writes it.
func (a *app) measure() (stop func() error, err error) {
	var stops []func() error
	if mode := a.flags.Profile; mode != "" {
		end, err := startProfile(mode, a.flags.ProfileDir)
		if err != nil {
			return nil, err
		}
		stops = append(stops, func() error { end(); return nil })
	}
	if path := a.flags.OffheapProfile; path != "" {
		stops = append(stops, func() error {
			return outfile.Stream(path, func(w io.Writer) error { return alloc.Default().WriteProfile(w) })
		})
	}
	return func() error {
		for _, f := range stops {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// startProfile begins a profile of Go's runtime in dir. The library behind it
// ends the process when it cannot write, so that is tried before.
func startProfile(mode, dir string) (stop func(), err error) {
	kinds := map[string]struct {
		option func(*profile.Profile)
		file   string
	}{
		"cpu": {profile.CPUProfile, "cpu.pprof"}, "mem": {profile.MemProfile, "mem.pprof"}, "trace": {profile.TraceProfile, "trace.out"},
	}
	kind, ok := kinds[mode]
	if !ok {
		return nil, usagef("--profile %s: want cpu, mem or trace", mode)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, kind.file), os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	p := profile.Start(kind.option, profile.ProfilePath(dir), profile.Quiet, profile.NoShutdownHook)
	return p.Stop, nil
}
