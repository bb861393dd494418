// Package trace records runs of a graph and reads what was recorded.
//
// A [Recorder] is a listener of a [pipeline.Graph] and an observer of alloc. It
// writes what happens into a compact file while the graph runs; [Read] makes a
// [Trace] of that, also of the file of a run that was killed. From a Trace come
// the levels of memory by stage and state, the peak and whose it was, queue
// lengths and summaries of stages, and exports for other tools: Perfetto, pprof
// and CSV.
package trace
