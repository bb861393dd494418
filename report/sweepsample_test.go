package report

import (
	"context"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
)

// formula is a runner whose outcomes come from a formula.
type formula struct {
	simulates bool
	off       float64 // measured by predicted
}

func (f formula) Simulates() bool          { return f.simulates }
func (formula) Meaning() map[string]string { return map[string]string{"circuit": "sha256 <chain>"} }
func (formula) Check(plan.Space) error     { return nil }
func (formula) Parallel() int              { return 1 }
func (f formula) Run(_ context.Context, p plan.Point) (*plan.Outcome, error) {
	s := p.Settings.Stages
	w, h, c := float64(s["synthesize"].Workers), float64(s["h-msm"].Workers), float64(s["ntt"].Capacity)
	rate := min(w*0.9, h*1.3, 2.6) * (1 - 0.2/c)
	peak := int64((w*1.2 + h*0.5 + c*0.35) * float64(alloc.GiB))
	if b := p.Settings.Budget["host"]; b > 0 && peak > int64(b) {
		rate *= float64(b) / float64(peak)
		peak = int64(b)
	}
	if b := p.Settings.Budget["host"]; b > 0 && int64(b) < 2*alloc.GiB {
		return &plan.Outcome{Failure: &plan.Failure{Kind: plan.TooLarge, Text: "an item needs 2.0 GiB <more>"}}, nil
	}
	rate *= f.off
	return &plan.Outcome{Items: 16, Wall: time.Duration(16 / rate * float64(time.Second)), Throughput: rate,
		Latency: time.Duration(4 / rate * float64(time.Second)), Peak: alloc.HostBytes(peak)}, nil
}

// sampleSweep is a sweep of 240 points, the best 12 measured.
func sampleSweep(t testing.TB) *plan.SweepResult {
	t.Helper()
	space, err := plan.ParseSpace([]string{"synthesize", "ntt", "h-msm"}, pipeline.Settings{},
		"synthesize.workers=1..5", "h-msm.workers=1..3", "ntt.capacity=1,2,4,8", "budget.host=1GiB,4GiB,6GiB,12GiB")
	if err != nil {
		t.Fatal(err)
	}
	s, err := plan.Sweep(t.Context(), space, formula{true, 1}, plan.Verify(12, formula{false, 0.96}), plan.Within(alloc.HostBytes(8*alloc.GiB)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
