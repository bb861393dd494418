//go:build !unix

package emulator

import (
	"context"
	"errors"
)

func lockFile(context.Context, string) (func(), error) {
	return nil, errors.New("the emulator is for Linux and macOS")
}
