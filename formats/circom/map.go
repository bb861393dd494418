package circom

import (
	"errors"
	"fmt"
	"os"

	"github.com/snarkline/snarkline/alloc"
)

// mapFile maps a regular file; mappings are accounted to the stage "files".
func mapFile(path string) ([]byte, *alloc.Mapping, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("open: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, &FormatError{File: path, Offset: -1, Err: errors.New("not a regular file: it cannot be mapped")}
	}
	m, err := alloc.MapFile(alloc.NewScope(alloc.StageOf("files"), alloc.Host, nil), path)
	if err != nil {
		return nil, nil, fmt.Errorf("open: %w", err)
	}
	return m.Data(), m, nil
}
