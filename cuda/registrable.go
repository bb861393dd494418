//go:build !race

package cuda

// registrable says that host buffers lie outside of Go's heap.
const registrable = true
