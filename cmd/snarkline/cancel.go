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
