// Package pipeline runs typed dataflow graphs: stages linked by sized channels,
// through which items with keys flow. It knows nothing of what the stages
// compute; it knows which buffers ([alloc.Ref]) a value carries, and frees each
// as soon as its last reader is done.
//
// # Composing
//
// A [Graph] is made with [New]. A source ([From], [FromSlice], [FromSeq],
// [FromChan], [FromFunc]) gives a [Port]; [Via] runs a [Stage] on a port and
// gives the stage's port; [Join2] to [Join5] pair the values of several ports
// by key; [To], [ToFunc] and [Collect] end a port. Using a port several times
// is a fan-out: each use is a consumer with a queue of its own. What is wrong
// with a graph is collected and returned by [Graph.Run].
//
// # Items, keys and order
//
// What a source yields is an item with a [Key]. Stages yield one value a value,
// so at every join an item meets itself. Keys need only differ among the items
// that are in flight at the same time; a second item with the key of one in
// flight is a duplicate, reported as *[JoinError] where a graph has joins.
// Values leave a stage with several workers as they finish, unless it is
// [Ordered].
//
// # Ownership of buffers
//
// A value carries buffers if it is an [alloc.Ref] or a [Holder]. A value that a
// stage returns brings one reference on each of its buffers, which the engine
// owns from then on. It retains them once more for each further consumer; a
// consumer whose stage has Uses gets references to those buffers alone. A
// stage's input is a lease that ends when Run returns, or earlier with [Done],
// or for one buffer with [Drop]. A stage that passes a buffer of its input on
// in its output retains it first. A stage that returns an error has freed what
// it made. A sink function borrows its value in the same way; a go-streams sink
// and the caller of [Collected.Values] own the value they are given.
//
// # Memory
//
// A graph with a [Budget] admits an item when the most that it can need at any
// one moment, over all spaces, fits beside what the items in flight have
// reserved; see [Need]. The reservation shrinks with what the remaining path
// needs, and closes when the item has left the graph. Stages draw from it
// through alloc.ScopeOf(ctx) and never wait for memory, so that no budget can
// deadlock a graph by itself: every item in flight can finish without the next
// one. What can starve it is memory that outlives its item: a buffer that a sink
// retains stays charged until it is released. Values of [Collect] are never
// given back during the run, so an item that does not fit beside them fails with
// an *[AdmitError] at once; what a sink of [To] or [ToFunc] keeps may be given
// back at any time, so an item waits for it, for as long as the graph's
// [Patience] lasts.
// A source's own values are made before admission and are not counted, so
// sources should yield descriptions of work. With a budget, the inputs of a
// join descend from one source.
//
// # Errors
//
// An error or panic of a stage becomes a *[StageError]. Under [StopAll] the
// first one cancels the run and Run returns it. Under [FailKey] the item alone
// fails: its buffers are freed in every queue and join, its context is
// cancelled, [OnFail] hears of it, and the others go on. When Run returns, no
// goroutine of the graph is left and every buffer the engine owned is freed.
//
// An error may also say that the item has to be made again from its source's
// value, since what was made of it is lost or cannot be trusted. Where the source
// allows that ([Restart]) the item is taken back and admitted anew before anybody
// has seen it fail: it is answered once, and keeps its place in the order.
package pipeline
