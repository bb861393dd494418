package kernels

// The directive is in a file of its own, whose name comes after those of the
// field arithmetic's: generated headers come before what includes them.
//go:generate go run ../internal/kgen
