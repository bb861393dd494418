package main

import (
	"fmt"
	"math"

	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
)

// within is how far a prediction may be from what was published, as a fraction.
const within = 0.15

// row is a published figure beside the model's.
type row struct {
	what      string
	unit      string
	published float64
	predicted float64
	off       string // why it is not within 15%; empty: it is
}

// err is how far the prediction is off, as a fraction.
func (r row) err() float64 { return r.predicted/r.published - 1 }

// fault is what is wrong with a row: it does not fit, or it fits and says that it
// does not.
func (r row) fault() error {
	switch fits := math.Abs(r.err()) <= within; {
	case !fits && r.off == "":
		return fmt.Errorf("%s: published %g %s, predicted %.4g, off by %+.1f%%", r.what, r.published, r.unit, r.predicted, 100*r.err())
	case fits && r.off != "":
		return fmt.Errorf("%s fits again (%+.1f%%), though it is said not to: %s", r.what, 100*r.err(), r.off)
	}
	return nil
}

// section is a table of rows.
type section struct {
	title string
	text  string
	rows  []row
}

// measured is a published run.
type measured struct {
	run
	seconds float64 // a proof
	rss     float64 // GiB; 0: not published
	offTime string
	offRSS  string
}

// table predicts published runs.
func table(e engine, runs []measured) (rows []row, err error) {
	for _, m := range runs {
		p, err := e.predict(m.run)
		if err != nil {
			return nil, err
		}
		if p.Killed != nil {
			return nil, fmt.Errorf("%d partition workers: killed at %v, though the published run was not", m.pw, p.Killed.At)
		}
		what := fmt.Sprintf("pw %d, gw %d", m.pw, m.gw)
		rows = append(rows, row{what, "s/proof", m.seconds, perProofOf(p), m.offTime})
		if m.rss > 0 {
			rows = append(rows, row{what, "GiB", m.rss, e.rss(p), m.offRSS})
		}
	}
	return rows, nil
}

// phase12 are the published tables of partition workers.
func phase12(e engine) ([]section, error) {
	full, err := table(e, []measured{
		{run: run{pw: 10, gw: 2, proofs: 20}, seconds: 38.5, rss: 321},
		{run: run{pw: 12, gw: 2, proofs: 20}, seconds: 37.7, rss: 400},
		{run: run{pw: 14, gw: 2, proofs: 20}, seconds: 37.8, rss: 457},
		{run: run{pw: 16, gw: 2, proofs: 20}, seconds: 38.4, rss: 510},
	})
	if err != nil {
		return nil, err
	}
	low, err := table(e, []measured{
		{run: run{pw: 1, gw: 1, proofs: 5}, seconds: 290, rss: 104},
		{run: run{pw: 2, gw: 1, proofs: 5}, seconds: 152, rss: 110},
		{run: run{pw: 5, gw: 1, proofs: 5}, seconds: 68, rss: 170},
		{run: run{pw: 7, gw: 1, proofs: 5}, seconds: 53, rss: 208},
	})
	if err != nil {
		return nil, err
	}
	more, err := table(e, []measured{
		{run: run{pw: 5, gw: 2, proofs: 5}, seconds: 68.6, rss: 170},
		{run: run{pw: 7, gw: 2, proofs: 5}, seconds: 51.2, rss: 204},
		{run: run{pw: 10, gw: 1, proofs: 5}, seconds: 45.4, rss: 310},
		{run: run{pw: 10, gw: 2, proofs: 5}, seconds: 42.5, rss: 271},
		{run: run{pw: 12, gw: 2, proofs: 5}, seconds: 42.5, rss: 373},
	})
	if err != nil {
		return nil, err
	}
	return []section{
		{"Phase 12: partition workers", "20 proofs at once, the channel as long as there are partition workers.", full},
		{"Phase 12: low memory", "5 proofs at once, one worker of the card.", low},
		{"Phase 12: the rest of that sweep", "5 proofs at once.", more},
	}, nil
}

// early are the phases before, as far as their figures go.
func early(e engine) (section, error) {
	s := section{title: "Phases 2, 7, 8 and 9", text: "Channel of capacity 1, permits let go of with synthesis; from published times of the parts."}
	batch := phase2(e)
	one, err := batch.simulate(plan.Settings{Items: 1})
	if err != nil {
		return s, err
	}
	three, err := batch.simulate(plan.Settings{Items: 3, Settings: pipeline.Settings{Stages: map[string]pipeline.StageSetting{
		"synthesize": {Workers: 1}, "prove": {Workers: 1, Capacity: 1}}}})
	if err != nil {
		return s, err
	}
	s.rows = append(s.rows,
		row{"2: one at a time (the sum of what was given)", "s/proof", 88.9, one.Wall.Seconds(), ""},
		row{"2: one at a time", "GiB", 202.9, batch.rss(one), ""},
		row{"2: overlapped, 3 proofs", "s/proof", 71, three.Wall.Seconds() / 3, ""},
		row{"2: overlapped", "GiB", 203, batch.rss(three), "203 was measured one at a time; two proofs side by side are two sets of vectors (batches of two took 360 – 420)"},
	)
	add := func(what string, e engine, m measured) (*plan.Prediction, error) {
		m.early, m.capacity = true, 1
		p, err := e.predict(m.run)
		if err != nil {
			return nil, err
		}
		if m.seconds > 0 {
			s.rows = append(s.rows, row{what, "s/proof", m.seconds, perProofOf(p), m.offTime})
		}
		if m.rss > 0 {
			s.rows = append(s.rows, row{what, "GiB", m.rss, e.rss(p), m.offRSS})
		}
		return p, nil
	}
	seven, eight, nine := phase7(e), phase8(e), phase9(e)
	for _, r := range []struct {
		what string
		e    engine
		measured
	}{
		{"7: pw 20, 3 jobs", seven, measured{run: run{pw: 20, gw: 1, proofs: 5, jobs: 3}, seconds: 50.7, rss: 430, offTime: seventh, offRSS: "follows from that: more waits. 430 is published once, for phases 7 to 11 together, without the settings"}},
		{"8: pw 20, gw 2, one proof", eight, measured{run: run{pw: 20, gw: 2, proofs: 1}, seconds: 69.3}},
		{"8: pw 10, gw 2, 5 proofs, 3 jobs", eight, measured{run: run{pw: 10, gw: 2, proofs: 5, jobs: 3}, seconds: 43.5}},
		{"8: pw 12, the same", eight, measured{run: run{pw: 12, gw: 2, proofs: 5, jobs: 3}, seconds: 43.5}},
		{"8: pw 20, the same", eight, measured{run: run{pw: 20, gw: 2, proofs: 5, jobs: 3}, seconds: 44.9}},
		{"8: pw 30, the same", eight, measured{run: run{pw: 30, gw: 2, proofs: 5, jobs: 3}, seconds: 60.4, offTime: "30 syntheses take cores and memory bandwidth from what prepares the card's work; in the model only evaluations share bandwidth"}},
		{"9: gw 2, 5 proofs, 3 jobs (F12)", nine, measured{run: run{pw: 10, gw: 2, proofs: 5, jobs: 3}, seconds: 41.0}},
		{"9: gw 1, 15 proofs, 10 jobs", nine, measured{run: run{pw: 10, gw: 1, proofs: 15, jobs: 10}, seconds: 42.9}},
		{"9: gw 1, 15 proofs, 15 jobs", nine, measured{run: run{pw: 10, gw: 1, proofs: 15, jobs: 15}, seconds: 41.3}},
	} {
		p, err := add(r.what, r.e, r.measured)
		if err != nil {
			return s, err
		}
		switch r.what[0:1] + fmt.Sprint(r.pw, r.jobs) {
		case "810 3":
			steady, err := steadyOf(r.e, r.run)
			if err != nil {
				return s, err
			}
			s.rows = append(s.rows,
				row{"8: pw 10, gw 2, once it runs", "s/proof", 37.4, steady, ""},
				row{"8: pw 10: a synthesis", "s", 36.5, callOf(p, "synthesize"), ""})
		case "910 10":
			s.rows = append(s.rows, row{"9: gw 1, a call of the card's worker × 10", "s", 32.1, perProof * callOf(p, "prove"), ""})
		}
	}
	return s, nil
}

// steadyOf is what a further proof takes in a long run, in seconds.
func steadyOf(e engine, r run) (float64, error) {
	var walls [2]float64
	r.jobs = 0
	for i, n := range []int{20, 30} {
		r.proofs = n
		p, err := e.predict(r)
		if err != nil {
			return 0, err
		}
		walls[i] = p.Wall.Seconds()
	}
	return (walls[1] - walls[0]) / 10, nil
}

const seventh = "the published parts of a call, 1.3 + 3.3 + 0.7 s, are more than a partition took, 253 s / 50; what of them ran side by side is not published"

// simulate runs settings as they are.
func (e engine) simulate(set plan.Settings) (*plan.Prediction, error) {
	s, err := plan.NewSimulator(e.graph, e.costs)
	if err != nil {
		return nil, err
	}
	return s.Run(set)
}

// twoWorkers is what a second worker of the card brings, in one run of the last
// phase and in the published pair of the ninth.
func twoWorkers(e engine) (section, error) {
	s := section{title: "F12: one worker of the card or two, on one PCIe link",
		text: "A call of a worker × 10, waiting for the card included, as the published sweep of phase 12 has it beside the seconds a proof."}
	for _, m := range []struct {
		run
		call float64
		off  string
	}{
		{run: run{pw: 5, gw: 1, proofs: 5}, call: 34.0},
		{run: run{pw: 5, gw: 2, proofs: 5}, call: 58.2},
		{run: run{pw: 7, gw: 1, proofs: 5}, call: 34.0},
		{run: run{pw: 7, gw: 2, proofs: 5}, call: 59.2},
		{run: run{pw: 10, gw: 1, proofs: 5}, call: 39.5, off: "a call takes 16% longer beside ten syntheses, which share memory bandwidth with what prepares the card's work; in the model only evaluations share it"},
		{run: run{pw: 10, gw: 2, proofs: 5}, call: 68.1},
		{run: run{pw: 12, gw: 2, proofs: 5}, call: 69.8},
	} {
		p, err := e.predict(m.run)
		if err != nil {
			return s, err
		}
		s.rows = append(s.rows, row{fmt.Sprintf("pw %d, gw %d", m.pw, m.gw), "s", m.call, perProof * callOf(p, "prove"), m.off})
	}
	return s, nil
}

// piled is the memory of the fault F7 and its cure, in rows.
func piled(e engine) (section, error) {
	s := section{title: "F7 in rows", text: "Peak of memory before the cure and after it, 20 proofs."}
	for _, m := range []struct {
		what string
		run
		rss float64
		off string
	}{
		{"10 workers, before", run{pw: 10, gw: 2, proofs: 20, capacity: 1, early: true, late: true}, 367,
			"what was published may hold memory that was freed and not yet given back (F10), which the model has not"},
		{"12 workers, after", run{pw: 12, gw: 2, proofs: 20}, 400, ""},
		{"12 workers, after, as it was first published", run{pw: 12, gw: 2, proofs: 20}, 294.7,
			"two figures are published for the same; the later and larger one fits"},
	} {
		p, err := e.predict(m.run)
		if err != nil {
			return s, err
		}
		s.rows = append(s.rows, row{m.what, "GiB", m.rss, e.rss(p), m.off})
	}
	return s, nil
}
