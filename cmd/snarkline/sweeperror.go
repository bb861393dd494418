package main

import (
	"errors"

	"github.com/snarkline/snarkline/plan"
)

// sweepError gives errors of sweeps and tunings their exit codes.
func sweepError(err error) error {
	var meaning *plan.MeaningError
	var failure *plan.FailureError
	switch {
	case errors.As(err, &meaning):
		return usagef("--results: %w", err)
	case errors.Is(err, plan.ErrNotResults):
		return inputErrorf("--results: %w", err)
	case errors.As(err, &failure) && failure.Failure.Kind != plan.Broken:
		return &codedError{codeMemory, err}
	}
	return err
}
