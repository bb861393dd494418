// Package gputest is a gpu.Device for tests, in plain Go: memory as byte
// slices with a limit, the two pools that do not see each other, streams that
// really run later, page-locking that refuses a page twice, sticky errors,
// generations, and faults on demand. Kernels are Go functions.
//
// It checks what a driver would not: a page that is unregistered while a copy
// of it is queued is a violation.
package gputest
