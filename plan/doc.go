// Package plan answers what-ifs: how fast a graph would be, and how much memory it
// would take, with other workers, capacities and budgets, on another machine.
//
// [Simulate] runs a graph in virtual time, by the rules that the real engine runs
// by (admission, queues, joins, order, repetitions, release of buffers), with
// [Costs] that say what an item costs in each stage: from a recording, from a model
// file ([ReadModel]), or from code. A [Simulator] does that thousands of times a
// second. [Sweep] and [Tune] search with it, or with real runs.
//
// # What the model assumes
//
// Time. A call is steps, one after another; each takes the seconds that it would
// take alone on the machine, times a lognormal factor of its own, drawn by seed,
// item, node and step: an item costs the same under all settings. Factors of
// different steps are independent, though in truth a large item is slow everywhere
// ([Class] is for that). The engine's own work, about half a microsecond an item and
// stage, costs nothing, and so do joins, sources and sinks without costs.
//
// Cores. While more cores are asked for than there are, every step that asks is
// slowed by the same factor, in every moment. There are no caches, no memory
// bandwidth, no hyper-threads, no clock that falls under load, no garbage
// collector: where these matter, Seconds have to be measured under a load like the
// one that is predicted. A step of p cores goes on at its speed with p, whatever it
// could do with more.
//
// Links and devices. Transfers share a link equally and lose nothing by it; a link
// has one direction. A step's transfer and its seconds run side by side. An
// exclusive step waits for its device in order of asking, and keeps it for an
// exclusive step behind it; others share its speed equally. Which of several like devices a step gets has no bearing on where its
// buffers are: those are counted in the space that is stated.
//
// Memory. A buffer is there from a fraction of its maker's call until the last of
// its readers is done with it, and belongs to no one else: pools, fragmentation, page
// tables and stacks are in Base or nowhere. A buffer without named readers is read
// by all direct consumers, as in [pipeline.Need]. The real engine, which knows
// nothing of a reader behind a join before the tuple is complete, keeps all that a
// value carries while the value waits in a join; where a consumer behind a join reads
// less, name it as a reader all the same. What a failed item holds is freed when its
// last call has ended; the real engine frees what waits at once.
//
// Admission. What an item is charged is the larger of what it may still need and
// what it uses, as in alloc. A budget that is shared with others is taken as the
// graph's own. A run in which an item uses more than was stated goes on here, and
// says so (Overdrawn); the real engine fails the item.
//
// Failures are errors that may be tried again, by chance, independently of each
// other. Items are not made again from their source's value (pipeline.Restart).
//
// Order. What happens at the same moment in truth happens in some order; here it
// is a fixed one, first come, first served. A goroutine that comes just in time may
// overtake one that waits for room in a queue; here none does.
package plan
