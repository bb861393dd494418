package trace

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/snarkline/snarkline/pipeline"
)

// reframed is the records of a file in frames that are not compressed, so that a
// fuzzer that changes a byte changes a record.
func reframed(t testing.TB, file []byte) []byte {
	t.Helper()
	var all []byte
	for _, records := range framesOf(t, file) {
		all = append(all, records...)
	}
	return all
}

func framesOf(t testing.TB, file []byte) (out [][]byte) {
	t.Helper()
	in := &frameReader{r: newBuffered(bytes.NewReader(file))}
	if err := in.magic(); err != nil {
		t.Fatal(err)
	}
	dec, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	for {
		frame, err := in.next(dec)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, bytes.Clone(frame))
	}
}

// FuzzRead reads any file: it is read, or is a *FormatError.
func FuzzRead(f *testing.F) {
	_, _, file := recordRun(f, func(opts ...pipeline.Option) *pipeline.Graph { return diamond(3, opts...) })
	f.Add(file)
	f.Add(file[:len(file)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := Read(bytes.NewReader(data))
		judge(t, tr, err)
	})
}

// FuzzRecords reads any records in a sound frame.
func FuzzRecords(f *testing.F) {
	_, _, file := recordRun(f, func(opts ...pipeline.Option) *pipeline.Graph { return diamond(3, opts...) })
	f.Add(reframed(f, file))
	f.Fuzz(func(t *testing.T, records []byte) {
		w, err := newFrameWriter(io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		out := w.encode([]byte(magic), records)
		if err := w.enc.Close(); err != nil {
			t.Fatal(err)
		}
		tr, err := Read(bytes.NewReader(out))
		judge(t, tr, err)
	})
}

// judge: what was read can be looked at and exported, whatever it says.
func judge(t *testing.T, tr *Trace, err error) {
	t.Helper()
	if err != nil {
		var bad *FormatError
		if !errors.As(err, &bad) || bad.Section == "" {
			t.Fatalf("%T: %v", err, err)
		}
		return
	}
	for _, s := range tr.Spaces() {
		tr.Levels(s)
		tr.Peak(s)
		tr.CountTracked(s)
	}
	tr.Stages()
	for i := range tr.Graph.Nodes {
		tr.QueueLengths(i)
	}
	exportAll(t, tr)
}
