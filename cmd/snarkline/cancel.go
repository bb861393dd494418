package main

import (
	"context"
	"io"
)

// readerAt ends reading by code that takes no context.
type readerAt struct {
	ctx context.Context
	r   io.ReaderAt
}

// ReadAt reads unless the context is done.
func (r readerAt) ReadAt(p []byte, at int64) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.ReadAt(p, at)
}

// writer ends writing likewise.
type writer struct {
	ctx context.Context
	w   io.Writer
}

// Write writes unless the context is done.
func (w writer) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(p)
}

// reader ends reading likewise.
type reader struct {
	ctx context.Context
	r   io.Reader
}

// Read reads unless the context is done.
func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// until is fn with a writer that fails when the invocation is interrupted.
func (a *app) until(fn func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error { return fn(writer{a.ctx, w}) }
}
