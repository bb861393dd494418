// Package alloc owns every large buffer of a program: memory outside Go's heap,
// counted by space, stage and purpose from its birth to its return.
//
// A [Buffer] is made in a [Scope] (who allocates, where, and against which
// [Reservation]), is shared by reference counts and [Lease]s, and is freed in
// the goroutine that releases its last reference. The [Tracker] counts live,
// peak, allocated, freed and pooled bytes with atomic counters that a query
// reads without a lock. A [Budget] admits work in order of arrival by
// reservations over several spaces, which shrink as less is needed.
//
// Built with the tag snarkdebug, or with -race, the package also poisons freed
// memory, reports writes after free, panics at use after free and at double
// release with both places, and lists leaks by allocation site.
//
// # Panics
//
// Input never makes this package panic. Broken reference counting does, in
// every build: a Release without a reference and a use of a freed buffer are
// bugs of the caller that must not turn into wrong results. The values thrown
// are *[DoubleReleaseError], *[UseAfterFreeError] and (debug only)
// *[WriteAfterFreeError].
package alloc
