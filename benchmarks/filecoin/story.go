package main

import (
	"fmt"
	"io"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/plan"
)

// scene is a run that was killed, or was not.
type scene struct {
	what      string
	published string
	killed    bool // whether it has to be
	p         *plan.Prediction
	rss       float64 // GiB, of the space that it is about
	note      string
}

// fault is what is wrong with a scene.
func (s scene) fault() error {
	if (s.p.Killed != nil) != s.killed {
		return fmt.Errorf("%s: killed %v, want %v", s.what, s.p.Killed != nil, s.killed)
	}
	return nil
}

// tale is a table of scenes.
type tale struct {
	title, text string
	scenes      []scene
}

func (t tale) print(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "\n## %s\n\n%s\n\n", t.title, t.text); err != nil {
		return err
	}
	rows := [][]string{{"", "published", "predicted", "peak, GiB", "s/proof", ""}}
	for _, s := range t.scenes {
		end, rate := "runs", fmt.Sprintf("%.1f", perProofOf(s.p))
		if k := s.p.Killed; k != nil {
			end, rate = fmt.Sprintf("killed at %v, after %d proofs", k.At.Round(time.Second), s.p.Items/perProof), ""
		}
		rows = append(rows, []string{s.what, s.published, end, fmt.Sprintf("%.0f", s.rss), rate, s.note})
	}
	return lines(w, rows)
}

// longRun is how many proofs the runs about the pile-up have, all at once. How many
// the published run had when it was killed is not known; 10 workers are not killed
// in any number.
const longRun = 40

// pileUp is F7 and its cures, and F8.
func pileUp(e engine) (tale, error) {
	t := tale{title: "F7: permits that come back too early, and a channel of capacity 1; F8: vectors kept to the end",
		text: fmt.Sprintf("%d proofs at once; 668 GiB are there.", longRun)}
	slow := e.with(map[string]plan.Node{"finish": {Steps: []plan.Step{onCores("b_g2_msm", 1.7*16, 2)}}})
	for _, s := range []struct {
		what, published string
		run
		killed bool
	}{
		{"10 workers, permit let go of with synthesis", "367 GiB", run{pw: 10, gw: 2, proofs: longRun, capacity: 1, early: true, late: true}, false},
		{"11 workers", "–", run{pw: 11, gw: 2, proofs: longRun, capacity: 1, early: true, late: true}, false},
		{"12 workers", "killed at 668 GiB", run{pw: 12, gw: 2, proofs: longRun, capacity: 1, early: true, late: true}, true},
		{"12, vectors let go of early, the permit as before", "–", run{pw: 12, gw: 2, proofs: longRun, capacity: 1, early: true}, true},
		{"12, permit held until the channel takes it, capacity 1", "–", run{pw: 12, gw: 2, proofs: longRun, capacity: 1, late: true}, false},
		{"12, the same, capacity 12", "–", run{pw: 12, gw: 2, proofs: longRun, late: true}, false},
		{"12, and vectors let go of early: the cure", "294.7, later 400 GiB", run{pw: 12, gw: 2, proofs: longRun}, false},
		{"24 workers, Snarkline's admission, budget 200 GiB", "–", run{pw: 24, gw: 2, proofs: longRun, budget: 200 * alloc.GiB}, false},
		{"24 workers, budget 300 GiB", "–", run{pw: 24, gw: 2, proofs: longRun, budget: 300 * alloc.GiB}, false},
		{"24 workers, budget 400 GiB", "–", run{pw: 24, gw: 2, proofs: longRun, budget: 400 * alloc.GiB}, false},
	} {
		p, err := e.predict(s.run)
		if err != nil {
			return t, err
		}
		t.scenes = append(t.scenes, scene{s.what, s.published, s.killed, p, e.rss(p), biggest(p)})
	}
	for _, late := range []bool{true, false} {
		what := "12, the cure, b_g2_msm on 2 threads (27 s)"
		if late {
			what = "F8: the same, a, b and c kept until it is done"
		}
		p, err := slow.predict(run{pw: 12, gw: 2, proofs: longRun, late: late})
		if err != nil {
			return t, err
		}
		t.scenes = append(t.scenes, scene{what, "12 GiB a partition", false, p, e.rss(p), biggest(p)})
	}
	return t, nil
}

// biggest is what held most at the peak of host memory, or at the kill.
func biggest(p *plan.Prediction) string {
	var shares []plan.Share
	for _, k := range p.Peaks {
		if k.Space == alloc.Host {
			shares = k.Shares
		}
	}
	if p.Killed != nil {
		shares = p.Killed.Shares
	}
	if len(shares) == 0 {
		return ""
	}
	s := shares[0]
	return fmt.Sprintf("%s: %.0f GiB %s", s.Stage, gib(s.Bytes), s.State)
}
