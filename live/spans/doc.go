// Package spans makes OpenTelemetry spans of a run: an item is a root span, each
// call of a stage a child of it. Any TracerProvider takes them; the command
// sends them to a collector by OTLP.
package spans
