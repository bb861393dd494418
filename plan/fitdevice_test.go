package plan_test

import (
	"strings"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/plan"
)

// cardRun is the recording of a run on n cards, with as much to do for them as
// to saturate them and noise as real calls have.
func cardRun(t *testing.T, n int, change func(*plan.Costs)) *plan.Prediction {
	t.Helper()
	c := cards(n, 0.05, 1, 0, false)
	b := c.Nodes["b"]
	b.Lanes, b.Steps[0].Spread, b.Steps[0].Cores = 2, 0.02, 0.1
	c.Nodes["b"] = b
	if change != nil {
		change(c)
	}
	set := plan.Settings{Items: 40}
	for _, s := range []string{"b.workers=2", "a.capacity=8"} {
		if n == 1 || !strings.HasPrefix(s, "b") {
			if err := set.Set(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := simulate(t, pair(), c, set, plan.Record())
	if p.Err != "" {
		t.Fatal(p.Err)
	}
	return p
}

// whatIf simulates what was recorded, and then with other cards.
func whatIf(t *testing.T, p *plan.Prediction, choices map[string]string) (as, other *plan.Prediction) {
	t.Helper()
	c, err := plan.FromTrace(p.Trace)
	if err != nil {
		t.Fatal(err)
	}
	s, err := plan.NewSimulated(p.Trace.Graph, c, plan.Settings{Items: 40})
	if err != nil {
		t.Fatal(err)
	}
	return predicted(t, s, nil), predicted(t, s, choices)
}

func near(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if off(got, want) > part {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestFitCard: of one card, two cards are told; of two cards, one and four. Where the
// host limits, another card brings nothing.
func TestFitCard(t *testing.T) {
	one, two := cardRun(t, 1, nil), cardRun(t, 2, nil)
	as, other := whatIf(t, one, map[string]string{"devices": "2"})
	near(t, "one card as it is", as.Throughput, one.Throughput, 0.05)
	near(t, "two cards from one", other.Throughput, two.Throughput, 0.05)
	near(t, "two cards from one", other.Throughput, 2*one.Throughput, 0.1)
	as, other = whatIf(t, two, map[string]string{"devices": "1"})
	near(t, "two cards as they are", as.Throughput, two.Throughput, 0.05)
	near(t, "one card from two", other.Throughput, one.Throughput, 0.05)
	for s := range 2 {
		near(t, "memory of a card", float64(as.Peak[alloc.Device(s)]), float64(two.Peak[alloc.Device(s)]), 0.05)
	}
	if other.Peak[alloc.Device(1)] != 0 {
		t.Errorf("one card: %v", other.Peak)
	}
	slow := func(c *plan.Costs) { c.Nodes["a"] = takes(2) }
	bound := cardRun(t, 1, slow)
	as, other = whatIf(t, bound, map[string]string{"devices": "2"})
	near(t, "two cards that wait for the host", other.Throughput, as.Throughput, 0.05)
}

// TestFitCards: what the costs of two cards are: a pool with lanes, and speeds.
func TestFitCards(t *testing.T) {
	p := cardRun(t, 2, func(c *plan.Costs) { c.Machine.Devices[1].Speed = 0.5 })
	c, err := plan.FromTrace(p.Trace)
	if err != nil {
		t.Fatal(err)
	}
	d := c.Machine.Devices
	if len(d) != 2 || d[0].Pool == "" || d[0].Pool != d[1].Pool || d[0].Space != alloc.Device(0) || d[1].Space != alloc.Device(1) || d[0].Places == 0 {
		t.Fatalf("%+v", d)
	}
	near(t, "the speed of the slow card", d[1].Speed, 0.5, 0.1)
	b := c.Nodes["b"]
	if b.Lanes != 2 || len(b.Steps) != 1 || b.Steps[0].Device != d[0].Pool {
		t.Fatalf("%+v", b)
	}
	near(t, "a call", b.Steps[0].Seconds, 1, 0.1)
	for _, x := range append(b.Makes, b.Scratch...) {
		if x.Space != alloc.Device(0) || x.Bytes < 5 || x.Bytes > 10 {
			t.Errorf("%+v", x)
		}
	}
}

// TestFitWidth: a card that does two calls as fast as one is told from one that does not.
func TestFitWidth(t *testing.T) {
	for _, width := range []float64{1, 2} {
		p := cardRun(t, 1, func(c *plan.Costs) {
			c.Machine.Devices[0].Width = width
			n := c.Nodes["a"]
			n.Steps[0].Seconds, n.Steps[0].Spread = 0.8/width, 0.5 // so that there are one or two at a time
			c.Nodes["a"] = n
		})
		c, err := plan.FromTrace(p.Trace)
		if err != nil {
			t.Fatal(err)
		}
		if w := max(c.Machine.Devices[0].Width, 1); w != width {
			t.Errorf("width %v, want %v", w, width)
		}
		near(t, "a call", c.Nodes["b"].Steps[0].Seconds, 1, 0.05)
	}
}

// TestFitLink: what went to the cards is sent by the stages that read it.
func TestFitLink(t *testing.T) {
	p := cardRun(t, 1, func(c *plan.Costs) {
		n := c.Nodes["a"]
		n.Makes = []plan.Buffer{{Name: "w", Bytes: 70}}
		c.Nodes["a"] = n
	})
	p.Trace.Meta.Devices[0].Up = 40 * 60
	as, other := whatIf(t, p, map[string]string{"link": "30B"})
	near(t, "as it is", as.Throughput, 1, 0.06)
	near(t, "on half a link", other.Throughput, 0.5, 0.06)
	p.Trace.Meta.Links[0].BytesPerSecond = 0
	f, err := plan.FitTrace(p.Trace)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Costs.Machine.Links) != 0 || f.Costs.Nodes["b"].Steps[0].LinkBytes != 0 || !strings.Contains(strings.Join(f.Notes, "\n"), "does not say how much pcie a carries") {
		t.Errorf("%+v %q", f.Costs.Machine, f.Notes)
	}
}
