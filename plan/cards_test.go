package plan_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
)

// predicted is the run of a point, all of which went well.
func predicted(t *testing.T, s *plan.Simulated, choices map[string]string) *plan.Prediction {
	t.Helper()
	p, err := s.Predict(plan.Point{Choices: choices})
	if err != nil {
		t.Fatal(err)
	}
	if p.Err != "" || p.Killed != nil {
		t.Fatalf("%v: %q %v", choices, p.Err, p.Killed)
	}
	return p
}

// oneCard is a simulation of a run on one card, as a model file or a fit has it.
func oneCard(t *testing.T, hostSeconds, cardSeconds float64, sent int64) *plan.Simulated {
	t.Helper()
	c := cards(1, hostSeconds, cardSeconds, sent, true)
	c.Machine.Devices[0].Pool, c.Machine.Devices[0].Name = "", "cards"
	c.Machine.Base, c.Machine.Memory = alloc.BytesIn(alloc.Device(0), 100), alloc.BytesIn(alloc.Device(0), 150)
	n := c.Nodes["b"]
	n.Lanes = 0
	c.Nodes["b"] = n
	set := plan.Settings{Items: 40}
	if err := set.Set("budget.device0=50"); err != nil {
		t.Fatal(err)
	}
	s, err := plan.NewSimulated(pair().Topology(), c, set)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCards: what-ifs with more cards, other links and other memory, from one card.
func TestCards(t *testing.T) {
	gain := func(s *plan.Simulated, choices map[string]string, want float64) {
		t.Helper()
		base := predicted(t, s, nil)
		p := predicted(t, s, choices)
		if got := p.Throughput / base.Throughput; math.Abs(got-want) > 0.1*want {
			t.Errorf("%v gives %.2f times as much, want %v\n%+v", choices, got, want, p.Use)
		}
	}
	card := oneCard(t, 0.1, 1, 10)
	gain(card, map[string]string{"devices": "1"}, 1)
	gain(card, map[string]string{"devices": "2"}, 2)
	gain(card, map[string]string{"devices": "4"}, 4)
	gain(card, map[string]string{"link": "5B"}, 0.5)
	gain(oneCard(t, 1, 0.1, 10), map[string]string{"devices": "2"}, 1)
	link := oneCard(t, 0.1, 0.1, 100)
	gain(link, map[string]string{"devices": "2"}, 2)
	gain(link, map[string]string{"devices": "2", "links": "1"}, 1)
	gain(link, map[string]string{"devices": "4", "links": "2"}, 2)
	gain(link, map[string]string{"devices": "2", "links": "1", "link": "200B"}, 2)

	p := predicted(t, card, map[string]string{"devices": "2"})
	for s := range 2 {
		if p.Peak[alloc.Device(s)] == 0 || p.Reserved[alloc.Device(s)] > 50 {
			t.Errorf("card %d: peak %v, reserved %v", s, p.Peak, p.Reserved)
		}
	}
	busy := 0
	for _, u := range p.Use {
		if u.Kind == "device" && u.Fraction > 0.9 {
			busy++
		}
	}
	if busy != 2 {
		t.Errorf("%+v", p.Use)
	}
	// An item takes 15 of a card, and the key 100.
	if p = predicted(t, card, map[string]string{"device-memory": "131B"}); p.Reserved[alloc.Device(0)] != 30 {
		t.Errorf("with 31 bytes for items %v are reserved", p.Reserved)
	}
	if p = predicted(t, card, map[string]string{"device-memory": "119B", "devices": "2"}); p.Reserved[alloc.Device(1)] != 15 || p.Reserved[alloc.Device(0)] != 15 {
		t.Errorf("with 19 bytes for items %v are reserved", p.Reserved)
	}
}

// TestCardsWrong: what makes no sense is told.
func TestCardsWrong(t *testing.T) {
	card := oneCard(t, 1, 1, 0)
	none, err := plan.NewSimulated(pair().Topology(), &plan.Costs{}, plan.Settings{Items: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		s           *plan.Simulated
		axis, value string
		want        string
	}{
		{card, "devices", "0", "1 at least"},
		{card, "devices", "two", "1 at least"},
		{card, "devices", "99", "spaces for"},
		{card, "device-memory", "100B", "keys alone"},
		{card, "link", "0", "more than 0"},
		{none, "devices", "2", "without devices"},
		{none, "link", "2GiB", "without devices"},
	} {
		_, err := x.s.Predict(plan.Point{Choices: map[string]string{x.axis: x.value}})
		if err == nil || !strings.Contains(err.Error(), x.want) || !strings.HasPrefix(err.Error(), x.axis+": ") {
			t.Errorf("%s=%s: %v, want %q", x.axis, x.value, err, x.want)
		}
	}
}

// TestCardsSweep: the number of cards is an axis, and a setting of workers is shared
// out among them.
func TestCardsSweep(t *testing.T) {
	s := oneCard(t, 0.05, 1, 0)
	space, err := plan.ParseSpace([]string{"a", "b", "c"}, pipeline.Settings{}, "devices=1,2", "b.workers=1,2")
	if err != nil {
		t.Fatal(err)
	}
	r, err := plan.Sweep(context.Background(), space, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		if st := row.Outcome().Stage("b"); st == nil || st.Workers > 2 || st.Workers < 1 {
			t.Errorf("%s: %+v", row.Key(), st)
		}
	}
}
