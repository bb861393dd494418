package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// versionCmd prints what this binary was made of.
type versionCmd struct{}

type versionResult struct {
	Version  string            `json:"version"`
	Revision string            `json:"revision,omitempty"`
	Modified bool              `json:"modified,omitempty"`
	Go       string            `json:"go"`
	Platform string            `json:"platform"`
	Uses     map[string]string `json:"uses,omitempty"`
}

// buildVersion reads what the Go tool recorded in the binary.
func buildVersion() versionResult {
	v := versionResult{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	v.Uses = map[string]string{}
	for _, d := range info.Deps {
		switch d.Path {
		case "github.com/consensys/gnark", "github.com/consensys/gnark-crypto":
			v.Uses[d.Path] = d.Version
		}
	}
	return v
}

// Run prints it.
func (*versionCmd) Run(a *app) error {
	v := buildVersion()
	return a.result(v, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "snarkline %s %s %s\n", v.Version, v.Go, v.Platform)
		if err == nil && v.Revision != "" {
			_, err = fmt.Fprintf(w, "revision %s\n", v.Revision)
		}
		return err
	})
}
