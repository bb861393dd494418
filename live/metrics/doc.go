// Package metrics tells Prometheus of a run: counters, gauges and histograms by
// stage, memory by space, stage and state, the budget. Names begin with
// "snarkline_", times are seconds, sizes bytes.
//
// What the engine counts anyway is read when somebody scrapes; the listener adds
// the histograms of how long calls and items take.
package metrics
