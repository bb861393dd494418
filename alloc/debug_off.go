//go:build !snarkdebug && !race

package alloc

// Debug reports whether this build checks the use of memory: it was built with
// the tag snarkdebug or with -race.
const Debug = false
