package emulator

import (
	"testing"
	"time"

	"github.com/snarkline/snarkline/cuda/driver"
)

// TestSlowCard: a launch on a card that is told to be slow takes as long as that
// at least, and counts as time that the card is busy; other cards do not wait.
func TestSlowCard(t *testing.T) {
	const slow = 300 * time.Millisecond
	c := fresh(t, Config{Cards: []Card{{Total: 16 * mib}, {Total: 16 * mib, Launch: slow.Microseconds()}}})
	d, err := driver.Open(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	devices, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	for _, dev := range devices {
		since := time.Now()
		if got := double(t, c, dev); got != 42 {
			t.Errorf("got %d", got)
		}
		if took := time.Since(since); dev == devices[1] && took < slow {
			t.Errorf("a launch of %v took %v", slow, took)
		}
	}
	s, err := c.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if busy := time.Duration(s.Cards[1].BusyNs); busy < slow {
		t.Errorf("the slow card was busy for %v", busy)
	}
	if busy := time.Duration(s.Cards[0].BusyNs); busy >= slow {
		t.Errorf("the other card was busy for %v", busy)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}
