package main

import (
	"errors"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/formats/circom"
	"github.com/snarkline/snarkline/formats/gnark"
	"github.com/snarkline/snarkline/formats/native"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// codeByType is the exit code of errors that other packages define; 0 if err
// has none of them in its chain.
func codeByType(err error) int {
	var (
		tooLarge *alloc.TooLargeError
		noMemory *alloc.NoMemoryError
		admit    *pipeline.AdmitError
		circomF  *circom.FormatError
		curveOf  *circom.CurveError
		inputOf  *circom.InputError
		circuit  *circom.CircuitError
		gnarkF   *gnark.FormatError
		nativeF  *native.FormatError
	)
	switch {
	case errors.As(err, &tooLarge), errors.As(err, &noMemory), errors.As(err, &admit), errors.Is(err, gpu.ErrNoMemory):
		return codeMemory
	case errors.Is(err, groth16.ErrUnsatisfied), errors.Is(err, circom.ErrAssert):
		return codeUnsatisfied
	case errors.As(err, &circomF), errors.As(err, &curveOf), errors.As(err, &inputOf), errors.As(err, &circuit), errors.As(err, &gnarkF), errors.As(err, &nativeF):
		return codeInput
	}
	return 0
}
