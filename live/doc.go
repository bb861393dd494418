// Package live keeps what somebody wants to see of a graph while it runs: where
// items are, how busy each stage is, whose the memory is and how it went in the
// last minutes.
//
// A State listens to a run and samples its report; whoever shows the run asks
// for a Snapshot and for the History. The packages below show it, each with the
// dependencies of its own: live/tui in a terminal, live/web in a browser,
// live/metrics to Prometheus; live/spans makes spans for OpenTelemetry of the
// same events and needs no State.
//
//	s := live.New(live.Options{Total: len(jobs)})
//	g := pipeline.New("prove", pipeline.Listen(s))
//	…
//	s.Watch(g)
//	report, err := g.Run(ctx)
//	s.End(report, err)
//
// What a State keeps is bounded: the last points of the history, events,
// failures and notes, and the places of the first MaxItems items in flight.
// Hearing an event costs well below a microsecond, and nobody who asks for a
// snapshot keeps the run waiting.
package live
