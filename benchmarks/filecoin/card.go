package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
)

// cardRun is a worker's call in parts: what is done before the lock of the card is
// taken, under it, and after it. The vectors are on the card from a moment to a
// moment of it, in seconds.
type cardRun struct {
	before, under, after float64
	aFrom, aUntil        float64
	bcFrom, bcUntil      float64
}

// workers is the published engine with a worker's call cut like this.
func (c cardRun) workers(e engine) engine {
	total := c.before + c.under + c.after
	n := plan.Node{Steps: []plan.Step{onCores("before the lock", c.before, 1), exclusive("under the lock", c.under), onCores("after the lock", c.after, 1)}}
	buffer := func(name string, bytes int64, from, until float64) {
		n.Scratch = append(n.Scratch, plan.Buffer{Name: name, Space: alloc.Device(0), Bytes: bytes, From: from / total, Until: until / total})
	}
	buffer("d_a", 4*alloc.GiB, c.aFrom, c.aUntil)
	buffer("d_bc", 8*alloc.GiB, c.bcFrom, c.bcUntil)
	return e.with(map[string]plan.Node{"prove": n})
}

// cardMemory is F1 and F2, and what keeps them from happening.
func cardMemory(e engine) (tale, error) {
	t := tale{title: "F1, F2: two workers of a card of 16 GiB, of which 1.5 are taken",
		text: "d_a is 4 GiB and d_bc 8. A call is 1.3 s before the lock, ntt and h-msm (690 ms) and the sums (733) under it, 0.7 s after it."}
	const before, ntt, sums, after = 1.3, 0.690, 0.733, 0.7
	lock, free := before, before+ntt+sums
	for _, s := range []struct {
		what, published string
		c               cardRun
		budget          int64
		killed          bool
	}{
		{"F1: both allocate before the lock", "out of memory: 12 + 12", cardRun{before, ntt + sums, after, 0, before + ntt, 0, before + ntt}, 0, true},
		{"allocated under the lock", "runs", cardRun{before, ntt + sums, after, lock, lock + ntt, lock, lock + ntt}, 0, false},
		{"F2: d_bc kept until the call returns", "out of memory: 8 + 12", cardRun{before, ntt + sums, after, lock, lock + ntt, lock, free + after}, 0, true},
		{"both allocate before the lock, admitted by the card's budget of 14 GiB", "–", cardRun{before, ntt + sums, after, 0, before + ntt, 0, before + ntt}, 14 * alloc.GiB, false},
	} {
		w := s.c.workers(e)
		set := plan.Settings{Items: 10 * perProof, Settings: pipeline.Settings{Stages: map[string]pipeline.StageSetting{
			"synthesize": {Workers: 12}, "prove": {Workers: 2, Capacity: 12}}}}
		if s.budget > 0 {
			set.Budget = map[string]pipeline.Size{alloc.Device(0).String(): pipeline.Size(s.budget)}
		}
		p, err := w.simulate(set)
		if err != nil {
			return t, err
		}
		peak := p.Peak[alloc.Device(0)] + w.costs.Machine.Base[alloc.Device(0)]
		if p.Killed != nil {
			if p.Killed.Space != alloc.Device(0) {
				return t, fmt.Errorf("%s: killed for %v memory", s.what, p.Killed.Space)
			}
			peak = p.Killed.Bytes
		}
		t.scenes = append(t.scenes, scene{s.what, s.published, s.killed, p, gib(peak), ""})
	}
	return t, nil
}

// tiers is what Snarkline's planner of device memory says to two partitions that
// come to that card one after the other, before the first has left.
func tiers() [2]gpu.Decision {
	const vector, taken = 4 * alloc.GiB, 1536 * alloc.MiB
	r := gpu.Vectors(vector, false, 0)
	first := r.Fit(16*alloc.GiB-taken, gpu.DefaultMargin)
	return [2]gpu.Decision{first, r.Fit(16*alloc.GiB-taken-first.Chosen().Bytes, gpu.DefaultMargin)}
}

// ours prints what Snarkline does on that machine, and on one with another card.
func ours(w io.Writer) error {
	d := tiers()
	if _, err := fmt.Fprintf(w, "\nSnarkline's planner, to a first partition: %v\nand to a second that comes meanwhile: %v\n\n## The eight stages of Snarkline on that machine\n\n20 proofs, porep-32gib.toml.\n\n", d[0], d[1]); err != nil {
		return err
	}
	e, err := standardEngine()
	if err != nil {
		return err
	}
	large := e.on(func(m *plan.Machine) { m.Memory[alloc.Device(0)] = 80 * alloc.GiB })
	rows := [][]string{{"", "s/proof", "host, GiB", "device, GiB", "busiest"}}
	for _, r := range []struct {
		e          engine
		card, text string
	}{
		{e, "16 GiB", ""},
		{e, "16 GiB", "synthesize.workers=12"},
		{e, "16 GiB", "synthesize.workers=12 budget.device0=14GiB"},
		{large, "80 GiB", "synthesize.workers=12 budget.device0=78GiB"},
		{large, "80 GiB", "synthesize.workers=12"},
		{large, "80 GiB", "synthesize.workers=24"},
		{large, "80 GiB", "synthesize.workers=24 budget.host=230GiB"},
	} {
		p, err := r.e.whatIf(r.text, 20)
		if err != nil {
			return err
		}
		rate := fmt.Sprintf("%.1f", perProofOf(p))
		device := p.Peak[alloc.Device(0)] + e.costs.Machine.Base[alloc.Device(0)]
		if k := p.Killed; k != nil {
			rate = fmt.Sprintf("killed at %.0f s for %v memory", k.At.Seconds(), k.Space)
			if k.Space == alloc.Device(0) {
				device = k.Bytes
			}
		}
		use := slices.MaxFunc(p.Stages, func(a, b plan.StagePrediction) int { return cmp.Compare(a.Use, b.Use) })
		rows = append(rows, []string{"card of " + r.card + "; " + r.text, rate, fmt.Sprintf("%.0f", e.rss(p)), fmt.Sprintf("%.1f", gib(device)), fmt.Sprintf("%s %.0f%%", use.Name, 100*use.Use)})
	}
	return lines(w, rows)
}

// theLink prints what one PCIe link has to do with two workers: a worker that
// prepares on the host, and a card that is locked for its part alone, with
// syntheses that are never short.
func theLink(w io.Writer, e engine) error {
	if _, err := fmt.Fprintf(w, "\nIf only the card's part were locked, and partitions never short: 12.5 GB of vectors and 41.0 GB of points a partition over the link.\n\n"); err != nil {
		return err
	}
	rows := [][]string{{"link", "one worker", "two", "three", "link in use by two"}}
	for _, speed := range []float64{54e9, 25e9, 12e9} {
		line := []string{fmt.Sprintf("%g GB/s", speed/1e9)}
		var use float64
		for gw := 1; gw <= 3; gw++ {
			card := exclusive("card", 0.690+0.650+0.083)
			card.Link, card.LinkBytes = "pcie", 3*vectorBytes+38*alloc.GiB+alloc.GiB/5
			v := e.worker(onCores("prepare", 1.897, 1), card).with(map[string]plan.Node{"synthesize": {}})
			v = v.on(func(m *plan.Machine) { m.Links = append(m.Links, plan.Link{Name: "pcie", BytesPerSecond: speed}) })
			p, err := v.predict(run{pw: 4, gw: gw, proofs: 20})
			if err != nil {
				return err
			}
			line = append(line, fmt.Sprintf("%.1f s/proof", perProofOf(p)))
			for _, u := range p.Use {
				if u.Name == "pcie" && gw == 2 {
					use = u.Fraction
				}
			}
		}
		rows = append(rows, append(line, fmt.Sprintf("%.0f%%", 100*use)))
	}
	return lines(w, rows)
}

// vectorBytes are those of a, b or c.
const vectorBytes = (130_278_541 + 328) * 32

// whatIf simulates settings as text.
func (e engine) whatIf(text string, proofs int) (*plan.Prediction, error) {
	set := plan.Settings{Items: proofs * perProof}
	for word := range strings.FieldsSeq(text) {
		if err := set.Set(word); err != nil {
			return nil, err
		}
	}
	return e.simulate(set)
}
