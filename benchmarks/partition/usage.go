package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/snarkline/snarkline/cuda"
	"github.com/snarkline/snarkline/cuda/driver"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// onCard are the stages that compute on a card, or bring to it.
var onCard = []string{stages.NamePrestage, stages.NameNTT, stages.NameHMSM, stages.NameBatchAdd, stages.NameTailMSM, stages.NameBG2MSM}

// ask is how often NVML is asked how busy a card is.
const ask = 20 * time.Millisecond

// tooShort is a window of which NVML's mean tells little, since a part of it that
// counts is from before.
const tooShort = 3 * time.Second

// watch sees how busy cards are during a batch. What it tells is of one window:
// from the beginning of the first stage that has to do with a card to the end of
// the last one. Synthesis before it and assembly after it are not in it.
type watch struct {
	engines []*cuda.Engine
	cards   []*driver.Card
	busy    []float64 // ms, at the beginning
	stop    chan struct{}
	wg      sync.WaitGroup

	mu          sync.Mutex
	first, last time.Time
	samples     [][]sample // of each card
	zero        time.Time  // when the run began
	rows        []row
}

// sample is the share of time in which a kernel ran, as NVML has it: over its own
// last period, which is between 1/6 s and 1 s.
type sample struct {
	at   time.Time
	busy float64
}

// row is a stage's work on an item, in ms since the run began.
type row struct {
	part     int
	stage    string
	from, to time.Duration
	waited   time.Duration // for a worker
}

func newWatch(engines []*cuda.Engine, cards []*driver.Card) *watch {
	w := &watch{engines: engines, cards: cards, stop: make(chan struct{}), samples: make([][]sample, len(cards))}
	for _, e := range engines {
		w.busy = append(w.busy, e.Stats().BusyMS)
	}
	for i, c := range cards {
		w.wg.Go(func() { w.sample(i, c) })
	}
	return w
}

func (w *watch) sample(i int, c *driver.Card) {
	t := time.NewTicker(ask)
	defer t.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-t.C:
		}
		if compute, _, err := c.Utilization(); err == nil {
			w.mu.Lock()
			w.samples[i] = append(w.samples[i], sample{time.Now(), compute})
			w.mu.Unlock()
		}
	}
}

// option makes a graph tell the watch of its stages.
func (w *watch) option() pipeline.Option {
	return pipeline.Listen(pipeline.ListenerFunc(func(e pipeline.Event) {
		if e.Kind != pipeline.Begin && e.Kind != pipeline.End {
			return
		}
		now := time.Now()
		w.mu.Lock()
		defer w.mu.Unlock()
		if slices.Contains(onCard, e.Stage) {
			if w.first.IsZero() {
				w.first = now
			}
			w.last = now
		}
		w.zero = now.Add(-e.At)
		if e.Kind == pipeline.Begin {
			w.rows = append(w.rows, row{part: e.Key.Part, stage: e.Stage, from: e.At, waited: e.Wait})
			return
		}
		for i := range w.rows {
			if r := &w.rows[i]; r.part == e.Key.Part && r.stage == e.Stage && r.to == 0 {
				r.to = e.At
			}
		}
	}))
}

// since is a time in ms since the run began.
func (w *watch) since(t time.Time) float64 { return ms(t.Sub(w.zero)) }

// usage is what a watch saw of a card.
type usage struct {
	Card    string  `json:"card"`
	Window  float64 `json:"window_s"`
	Busy    float64 `json:"busy"` // share of the window in which an operation was under way, by the card's clock
	NVML    float64 `json:"nvml"` // mean of the samples in the window
	NVMLMax float64 `json:"nvml_max"`
	Samples int     `json:"samples"`
}

// String is one line for people.
func (u usage) String() string {
	s := fmt.Sprintf("%s: an operation was under way in %.1f%% of %.3f s, from the first stage on the card to the end of the last", u.Card, 100*u.Busy, u.Window)
	if u.Samples > 0 {
		s += fmt.Sprintf("; NVML %.0f%% in the mean of %d samples of that time, at most %.0f%%", 100*u.NVML, u.Samples, 100*u.NVMLMax)
		if u.Window < tooShort.Seconds() {
			s += "; its samples are means of up to a second before them, so the first ones tell of the time before, too"
		}
	}
	return s
}

// done ends the watch.
func (w *watch) done() (all []usage) {
	close(w.stop)
	w.wg.Wait()
	window := w.last.Sub(w.first)
	for i, e := range w.engines {
		u := usage{Card: e.Name(), Window: window.Seconds()}
		u.Busy = (e.Stats().BusyMS - w.busy[i]) / 1e3 / max(window.Seconds(), 1e-9)
		if i < len(w.samples) {
			for _, s := range w.samples[i] {
				if s.at.Before(w.first) || s.at.After(w.last) {
					continue
				}
				u.Samples++
				u.NVML += s.busy
				u.NVMLMax = max(u.NVMLMax, s.busy)
			}
			u.NVML /= float64(max(u.Samples, 1))
		}
		all = append(all, u)
	}
	return all
}
