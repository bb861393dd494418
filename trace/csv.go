package trace

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"time"
)

// WriteItemsCSV writes a line for each attempt at an item. Times are seconds since
// the run began; what did not happen is empty.
func (t *Trace) WriteItemsCSV(w io.Writer) error {
	return writeCSV(w, "items", []string{"item", "job", "part", "attempt", "arrived_s", "admitted_s", "left_s", "error"}, len(t.Items), func(i int) []string {
		it := &t.Items[i]
		return []string{strconv.Itoa(i), it.Key.Job, strconv.Itoa(it.Key.Part), strconv.Itoa(it.Attempt),
			seconds(it.Arrived), seconds(it.Admitted), seconds(it.Left), it.Err}
	})
}

// WriteCallsCSV writes a line for each call, with the bytes that it read and made.
func (t *Trace) WriteCallsCSV(w io.Writer) error {
	return writeCSV(w, "calls", []string{"call", "item", "stage", "worker", "device", "queued_s", "begin_s", "end_s", "out_s", "repeated",
		"read_bytes", "made_bytes", "error", "waited_s"}, len(t.Calls), func(i int) []string {
		c := &t.Calls[i]
		device := ""
		if c.Device >= 0 && c.Device < len(t.Meta.Devices) {
			device = t.Meta.Devices[c.Device].Name
		}
		var read, made int64
		for _, r := range c.Reads {
			read += t.Buffers[r.Buffer].Bytes
		}
		for _, b := range c.Makes {
			made += t.Buffers[b].Bytes
		}
		return []string{strconv.Itoa(i), index(c.Item), t.nodeName(c.Node), strconv.Itoa(c.Worker), device, seconds(c.Queued), seconds(c.Begin),
			seconds(c.End), seconds(c.Out), strconv.Itoa(c.Attempt), strconv.FormatInt(read, 10), strconv.FormatInt(made, 10), c.Err, seconds(c.Waited)}
	})
}

// WriteBuffersCSV writes a line for each buffer.
func (t *Trace) WriteBuffersCSV(w io.Writer) error {
	return writeCSV(w, "buffers", []string{"buffer", "space", "stage", "purpose", "kind", "bytes", "item", "call", "born_s", "died_s"}, len(t.Buffers), func(i int) []string {
		b := &t.Buffers[i]
		died := ""
		if b.Died > 0 {
			died = seconds(b.Died)
		}
		return []string{strconv.Itoa(i), b.Space.String(), b.Stage, b.Purpose, b.Kind.String(), strconv.FormatInt(b.Bytes, 10),
			index(b.Item), index(b.Call), seconds(b.Born), died}
	})
}

func writeCSV(w io.Writer, what string, head []string, n int, line func(int) []string) error {
	out := csv.NewWriter(w)
	err := out.Write(head)
	for i := 0; i < n && err == nil; i++ {
		err = out.Write(line(i))
	}
	out.Flush()
	if err == nil {
		err = out.Error()
	}
	if err != nil {
		return fmt.Errorf("write the %s of a recording as CSV: %w", what, err)
	}
	return nil
}

// seconds is a time in seconds, to the nanosecond; empty for Never.
func seconds(d time.Duration) string {
	if d == Never {
		return ""
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 9, 64)
}

func index(i int) string {
	if i == None {
		return ""
	}
	return strconv.Itoa(i)
}
