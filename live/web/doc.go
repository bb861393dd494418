// Package web shows a run in a browser while it goes on: a read-only page,
// updated by server-sent events, that asks nothing of any network but its own
// origin.
//
// Every viewer gets the newest state at intervals, and what came between is
// left out for those who read slowly; who does not read at all is dropped. The
// run never waits for a viewer.
package web
