package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// measured is a batch, as a line of -json.
type measured struct {
	Curve    string  `json:"curve"`
	Log      int     `json:"log"`
	Batch    int     `json:"batch"`
	On       string  `json:"on"`
	Host     bool    `json:"host_evaluation"` // asked for
	There    int     `json:"evaluated_there"` // proofs that a card evaluated a, b and c for
	Set      string  `json:"set"`
	B2       string  `json:"b2"`
	Seconds  float64 `json:"seconds"`
	Each     float64 `json:"seconds_each"`
	Up       int64   `json:"up_each"` // bytes over PCIe a proof
	Down     int64   `json:"down_each"`
	HostPeak int64   `json:"host_peak"`
	Cards    []usage `json:"cards"`
}

// record writes a batch to the files of -json and -trace.
func (b *bench) record(w *watch, set string, wall time.Duration, up, down int64, cards []usage) error {
	n := int64(b.batch)
	m := measured{
		Curve: b.id.String(), Log: b.log, Batch: b.batch, On: b.p.Arith.Name(), Host: b.p.HostEvaluation, There: b.there, Set: set, B2: b.b2,
		Seconds: wall.Seconds(), Each: wall.Seconds() / float64(n), Up: up / n, Down: down / n, HostPeak: peaks()[0], Cards: cards,
	}
	err := appendTo(b.json, func(f io.Writer) error { return json.NewEncoder(f).Encode(m) })
	if err != nil {
		return err
	}
	return appendTo(b.trace, func(f io.Writer) error {
		_, err := fmt.Fprintf(f, "# 2^%d, host evaluation %v, -b2 %s, %s; the card's window is %.1f to %.1f ms\n# item stage from to waited, ms\n",
			b.log, b.p.HostEvaluation, b.b2, set, w.since(w.first), w.since(w.last))
		for _, r := range w.rows {
			if err == nil {
				_, err = fmt.Fprintf(f, "%d %-10s %8.1f %8.1f %7.1f\n", r.part, r.stage, ms(r.from), ms(r.to), ms(r.waited))
			}
		}
		for i, all := range w.samples {
			for _, s := range all {
				if err == nil {
					_, err = fmt.Fprintf(f, "nvml %d %8.1f %3.0f%%\n", i, w.since(s.at), 100*s.busy)
				}
			}
		}
		return err
	})
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// appendTo has write add to a file; nothing is done without a name.
func appendTo(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
