package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
)

func sweepText(t testing.TB, s *plan.SweepResult) string {
	t.Helper()
	var b bytes.Buffer
	if err := Sweep(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSweepSaysWhatIsBest(t *testing.T) {
	s := sampleSweep(t)
	html := sweepText(t, s)
	best := s.Best()
	if best == nil || best.Measured == nil {
		t.Fatal("the sample has no measured best")
	}
	for _, want := range []string{
		"240 settings: 240 simulated and 12 run for real", "60 settings came to no end",
		pointText(s, best), digits(best.Measured.Throughput) + " items a second",
		"off by 4.2% in the median", // 1/0.96
		"an item needs 2.0 GiB &lt;more&gt;", "sha256 &lt;chain&gt;",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if got := strings.Count(html, `<th scope="row">best</th>`); got != 1 {
		t.Errorf("%d rows are the best", got)
	}
}

// TestSweepFront: the line joins exactly the Pareto rows, and all of them are in
// the table.
func TestSweepFront(t *testing.T) {
	s := sampleSweep(t)
	html := sweepText(t, s)
	front := s.Pareto(alloc.Host)
	rings := strings.Count(html, `class="pt ring`)
	if rings != len(front)*len(sizes) {
		t.Errorf("%d rings in %d drawings, the front has %d", rings, len(sizes), len(front))
	}
	if got := strings.Count(html, `<th scope="row">front</th>`) + strings.Count(html, `<th scope="row">best</th>`); got < len(front) {
		t.Errorf("%d rows of the table are on the front, want %d", got, len(front))
	}
}

func TestOddSweeps(t *testing.T) {
	one := plan.Axis{Name: "ntt.workers", Values: []string{"1"}}
	fails := &plan.Outcome{Failure: &plan.Failure{Kind: plan.Killed, Text: "no memory"}}
	for name, s := range map[string]*plan.SweepResult{
		"nothing":    {},
		"no outcome": {Space: plan.Space{Axes: []plan.Axis{one}}, Rows: []plan.Row{{Point: plan.Point{Values: []string{"1"}}}}},
		"all failed": {Space: plan.Space{Axes: []plan.Axis{one}}, Rows: []plan.Row{{Point: plan.Point{Values: []string{"1"}}, Measured: fails}}},
		"one point":  {Rows: []plan.Row{{Measured: &plan.Outcome{Items: 1, Throughput: 2, Peak: alloc.HostBytes(5)}}}},
		"no memory":  {Rows: []plan.Row{{Simulated: &plan.Outcome{Items: 1, Throughput: 2}}}},
	} {
		html := sweepText(t, s)
		if strings.Contains(html, "NaN") || strings.Contains(html, "Inf") {
			t.Errorf("%s: the page holds a number that is none", name)
		}
		if name == "all failed" && !strings.Contains(html, "killed: no memory") {
			t.Errorf("%s: the page does not say why", name)
		}
	}
}

// TestLargeSweep: a sweep of very many points stays a page that opens at once.
func TestLargeSweep(t *testing.T) {
	s := &plan.SweepResult{Space: plan.Space{Axes: []plan.Axis{{Name: "a.workers"}}}}
	for i := range 50_000 {
		s.Rows = append(s.Rows, plan.Row{Point: plan.Point{Values: []string{"1"}, Settings: pipeline.Settings{}},
			Simulated: &plan.Outcome{Throughput: float64(i*7919%50_000) + 1, Peak: alloc.HostBytes(int64(i*104_729%50_000+1) << 20)}})
	}
	html := sweepText(t, s)
	if len(html) > 5<<20 {
		t.Errorf("a page of %d bytes", len(html))
	}
	if !strings.Contains(html, "points off the front are drawn") || !strings.Contains(html, "slower settings are not listed") {
		t.Error("the page does not say what it leaves out")
	}
}

// TestHeatSpan: values that are nearly the same have nearly the same colour.
func TestHeatSpan(t *testing.T) {
	h := &heat{Cells: []plan.Cell{{Value: 18.03}, {Value: 18.02}, {Row: -1}}}
	if lo, hi, ok := h.span(); !ok || hi != 18.03 || lo > 16.3 {
		t.Errorf("%v to %v", lo, hi)
	}
	h.Cells[0].Value = 5
	if lo, hi, ok := h.span(); !ok || lo != 5 || hi != 18.02 {
		t.Errorf("%v to %v", lo, hi)
	}
	if _, _, ok := (&heat{Cells: []plan.Cell{{Row: -1}}}).span(); ok {
		t.Error("a span of nothing")
	}
}
