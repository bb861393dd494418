//go:build race

package cuda

// registrable says that host buffers lie outside of Go's heap: under the race
// detector they do not.
const registrable = false
