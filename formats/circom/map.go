package circom

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/snarkline/snarkline/alloc"
)

// mapFile maps a regular file; mappings are accounted to the stage "files".
func mapFile(path string) ([]byte, *alloc.Mapping, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, openError(err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, &FormatError{File: path, Offset: -1, Err: errors.New("not a regular file: it cannot be mapped")}
	}
	m, err := alloc.MapFile(alloc.NewScope(alloc.StageOf("files"), alloc.Host, nil), path)
	if err != nil {
		return nil, nil, err
	}
	return m.Data(), m, nil
}

// openError is an error of os with the one word that says what was wanted, in
// place of the call that failed.
func openError(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return &fs.PathError{Op: "open", Path: p.Path, Err: p.Err}
	}
	return fmt.Errorf("open: %w", err)
}
