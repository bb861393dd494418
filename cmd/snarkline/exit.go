package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/config"
	"github.com/snarkline/snarkline/groth16"
)

// The exit codes. They are part of the command's interface: docs/cli.md and
// the help text list them.
const (
	codeOK          = 0
	codeInternal    = 1
	codeUsage       = 2
	codeInput       = 3
	codeUnsatisfied = 4
	codeInvalid     = 5
	codeMemory      = 6
	codeInterrupted = 130
)

const exitCodeHelp = `Exit codes:
  0    done
  1    an internal error, or a result that could not be written
  2    wrong usage: a flag, a settings file, a device that cannot be used
  3    an input file is missing, damaged, or does not belong to the others
  4    the witness does not satisfy the circuit
  5    the proof is not valid
  6    the memory or the budget is too small
  130  interrupted
In a batch it is the code of the failed item that comes first among the inputs.`

// codedError is an error with the exit code it stands for.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// usagef is an error in how the command was called.
func usagef(format string, args ...any) error {
	return &codedError{codeUsage, fmt.Errorf(format, args...)}
}

// inputError marks err as the fault of an input file. Errors that have a code
// of their own, and cancellation, keep theirs.
func inputError(err error) error {
	if err == nil || exitCode(err) != codeInternal {
		return err
	}
	return &codedError{codeInput, err}
}

// inputErrorf is inputError of a formatted error.
func inputErrorf(format string, args ...any) error {
	return inputError(fmt.Errorf(format, args...))
}

// exitCode is the code that err ends the command with. Of several reasons in
// one error the more specific counts: an interruption, which may look like
// anything to the work that it ended, then memory and unsatisfied witnesses,
// then codes attached by this command, then the rest.
func exitCode(err error) int {
	if err == nil {
		return codeOK
	}
	if errors.Is(err, errInterrupted) {
		return codeInterrupted
	}
	if code := codeByType(err); code != 0 {
		return code
	}
	var c *codedError
	if errors.As(err, &c) {
		return c.code
	}
	var parse *kong.ParseError
	var conf *config.Error
	switch {
	case errors.As(err, &parse), errors.As(err, &conf):
		return codeUsage
	case errors.Is(err, groth16.ErrInvalidProof):
		return codeInvalid
	case errors.Is(err, syscall.ENOMEM):
		return codeMemory
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return codeInterrupted
	}
	return codeInternal
}
