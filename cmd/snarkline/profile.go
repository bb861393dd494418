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
// that it returns ends and writes it. A command that was called wrongly has done
// nothing to measure, and may not mean the name that it gave: stop(true) leaves
// that file alone.
func (a *app) measure() (stop func(leave bool) error, err error) {
	end := func() {}
	if mode := a.flags.Profile; mode != "" {
		if end, err = startProfile(mode, a.flags.ProfileDir); err != nil {
			return nil, err
		}
	}
	return func(leave bool) error {
		end()
		path := a.flags.OffheapProfile
		if path == "" || leave {
			return nil
		}
		return outfile.Stream(path, func(w io.Writer) error { return alloc.Default().WriteProfile(w) })
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
