package kernels

//go:generate go run ../internal/frgen
