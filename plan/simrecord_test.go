package plan_test

import (
	"io"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
	"github.com/snarkline/snarkline/trace"
)

// TestRecord: the trace of a simulated run tells what the prediction does.
func TestRecord(t *testing.T) {
	g := groth16(2, 2, pipeline.Budget(alloc.Host, 400<<20))
	p := simulate(t, g, groth16Costs(0.2), plan.Settings{Items: 16, Seed: 5}, plan.Record())
	tr := p.Trace
	if _, bytes, _ := tr.Peak(alloc.Host); bytes != p.Peak[alloc.Host] {
		t.Errorf("a peak of %d in the trace, %v predicted", bytes, p.Peak)
	}
	if tr.Wall != p.Wall || len(tr.Items) != 16 || len(tr.Items[0].Needs) != 9 || tr.Meta.Budget != host(400<<20) {
		t.Errorf("%v, %d items, %+v", tr.Wall, len(tr.Items), tr.Meta)
	}
	var last time.Duration
	for _, it := range tr.Items {
		if it.Admitted < last || it.Left < it.Admitted || it.Arrived > it.Admitted || it.Err != "" {
			t.Errorf("%+v", it)
		}
		last = it.Admitted
	}
	busy := make(map[string]time.Duration)
	seats := make(map[[2]int]time.Duration) // until when a worker is taken
	for _, c := range tr.Calls {
		n := tr.Graph.Nodes[c.Node]
		busy[n.Name] += c.End - c.Begin
		if c.Queued > c.Begin || c.Out < c.End || c.Worker >= n.Workers || c.Err != "" {
			t.Errorf("%s: %+v", n.Name, c)
		}
		k := [2]int{c.Node, c.Worker}
		if c.Begin < seats[k] {
			t.Errorf("%s: worker %d begins at %v, and is taken until %v", n.Name, c.Worker, c.Begin, seats[k])
		}
		seats[k] = c.Out
		for _, r := range c.Reads {
			if b := tr.Buffers[r.Buffer]; b.Born > c.Begin || b.Died < r.Until || r.Until < c.Begin || r.Until > c.End {
				t.Errorf("%s reads %+v until %v: %+v", n.Name, b, r.Until, c)
			}
		}
	}
	for _, s := range p.Stages {
		if d := busy[s.Name] - s.Busy; d.Abs() > time.Microsecond {
			t.Errorf("%s is busy for %v in the trace, %v predicted", s.Name, busy[s.Name], s.Busy)
		}
	}
	for i, b := range tr.Buffers {
		if c := tr.Calls[b.Call]; b.Died == 0 || b.Item != c.Item || i > 0 && b.Born < tr.Buffers[i-1].Born || tr.Graph.Nodes[c.Node].Name != b.Stage {
			t.Errorf("%+v", b)
		}
	}
	if err := tr.WritePerfetto(io.Discard); err != nil {
		t.Error(err)
	}
}

// TestRecordKilled: what is in flight when a run is killed is in its trace.
func TestRecordKilled(t *testing.T) {
	g, c := f7(0)
	c.Machine.Memory = host(75)
	c.Nodes["synthesize"].Steps[0].Spread = 0.5 // so that not all begin at the moment of the kill
	set := plan.Settings{Items: 60, Rules: plan.Rules{Semaphore: 4, Until: "synthesize"}}
	p := simulate(t, g, c, set, plan.Record())
	if p.Killed == nil || p.Trace.Err == "" {
		t.Fatalf("%+v", p)
	}
	if _, bytes, _ := p.Trace.Peak(alloc.Host); bytes != p.Killed.Bytes-10 { // without the last, which there was no room for
		t.Errorf("a peak of %d in the trace, killed at %d", bytes, p.Killed.Bytes)
	}
	open := 0
	for _, c := range p.Trace.Calls {
		if c.Err == trace.Unended {
			open++
		}
	}
	if open == 0 {
		t.Error("no call is open")
	}
}
