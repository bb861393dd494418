package kernels

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"

	"github.com/snarkline/snarkline/curve"
)

// ptx holds the compiled kernels: <family>_<curve>.ptx.gz for any device, and
// <family>_<curve>_sm<capability>.cubin.gz where one exists for a device.
//
//go:embed ptx
var ptx embed.FS

// suffix is how entry points and files name a curve.
func suffix(id curve.ID) string {
	switch id {
	case curve.BLS12381:
		return "bls12381"
	case curve.BN254:
		return "bn254"
	}
	return "unknown"
}

// image is one compiled module.
type image struct {
	name string // the file's, without .gz
	data []byte
}

// images are those that a device of the capability can load, the best first.
// Data is read on load: unpack does that.
func images(family string, id curve.ID, major, minor int) []string {
	base := "ptx/" + family + "_" + suffix(id)
	var names []string
	for _, name := range []string{fmt.Sprintf("%s_sm%d%d.cubin.gz", base, major, minor), base + ".ptx.gz"} {
		if f, err := ptx.Open(name); err == nil {
			_ = f.Close()
			names = append(names, name)
		}
	}
	return names
}

// unpack reads an embedded image.
func unpack(name string) (image, error) {
	packed, err := ptx.ReadFile(name)
	if err != nil {
		return image{}, fmt.Errorf("read embedded %s: %w", name, err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return image{}, fmt.Errorf("unpack embedded %s: %w", name, err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return image{}, fmt.Errorf("unpack embedded %s: %w", name, err)
	}
	return image{name: name[len("ptx/") : len(name)-len(".gz")], data: data}, nil
}
