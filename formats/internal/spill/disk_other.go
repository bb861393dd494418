//go:build unix && !linux

package spill

import (
	"errors"
	"os"
)

// diskOf knows nothing here: only a folder that the user chose is taken.
func diskOf(string) (disk, error) { return disk{kind: unknown, free: -1}, nil }

func nameless(string) (*os.File, error) { return nil, errors.ErrUnsupported }
