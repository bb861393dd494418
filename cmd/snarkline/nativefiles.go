package main

import (
	"context"
	"errors"
	"io"

	"github.com/snarkline/snarkline/groth16"
)

func (m *material) native(ctx context.Context, f *keyFlags, check func(done, total int)) error {
	return errors.New("not yet")
}
func readNativeVK(ctx context.Context, path string) (*groth16.VerifyingKey, error) {
	return nil, errors.New("not yet")
}
func writeNative(ctx context.Context, w io.Writer, key *groth16.ProvingKey, vk *groth16.VerifyingKey, m *groth16.R1CS) error {
	return errors.New("not yet")
}
func inspectNative(ctx context.Context, f *facts, path string) error { return errors.New("not yet") }
