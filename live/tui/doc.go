// Package tui shows a run in a terminal while it goes on: how busy each stage
// is and what waits before it, memory against the budget, rate and time left,
// what happened last.
//
// The view stands below whatever else is printed, which scrolls up above it: it
// takes no other screen, and stays where it is when the run has ended. Colours
// follow NO_COLOR and what the terminal can do.
package tui
