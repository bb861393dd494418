// Package report draws a recorded run, or a sweep over settings, as one HTML
// page that needs nothing else: no network, no script of others, no file beside
// it.
//
// [Write] draws a [trace.Trace]: what ran, the graph with its queues and how busy
// its stages were, who worked on what when, memory by stage and by state with the
// moment of the peak explained, and a table of the stages. [Sweep] draws what a
// sweep found. The pages follow the reader's light or dark scheme, and fit a
// telephone as well as a desk.
//
// Charts are gonum/plot's, drawn on a canvas of this package whose colours are
// classes of the page's style sheet; what is no chart (the graph, the lanes of
// the workers) is SVG of its own.
package report
