package driver

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// scripted is a card that says what it was told, sample by sample.
type scripted struct {
	at    int
	busy  []float64 // negative: it does not tell
	asked chan struct{}
}

func (c *scripted) Utilization() (float64, float64, error) {
	v := c.busy[min(c.at, len(c.busy)-1)]
	if c.at++; c.at == len(c.busy) {
		close(c.asked)
	}
	if v < 0 {
		return 0, 0, errors.New("not now")
	}
	return v, v / 2, nil
}

func (c *scripted) Memory() (int64, int64, error)     { return int64(c.at), 100, nil }
func (c *scripted) Throughput() (int64, int64, error) { return 0, 0, errors.ErrUnsupported }

func TestSampler(t *testing.T) {
	c := &scripted{busy: []float64{.5, -1, 1, 0}, asked: make(chan struct{})}
	s := watch(c, true, time.Millisecond)
	s.Usage()
	<-c.asked
	u := s.Stop()
	if u.Samples < 3 || u.Failed != 1 || u.ComputeMax != 1 || u.MemoryMax != .5 || u.UsedMax < 4 || u.Over < 4*time.Millisecond {
		t.Errorf("%+v", u)
	}
	// What comes after the script is idle.
	if want := 1.5 / float64(u.Samples); u.Compute != want || u.Memory != want/2 {
		t.Errorf("%+v: mean is not %v", u, want)
	}
	if again := s.Stop(); again != u {
		t.Errorf("%+v, then %+v", u, again)
	}
	if !strings.Contains(u.String(), "at most 100%") {
		t.Error(u)
	}
	if u := watch(c, false, time.Hour).Stop(); u.Samples != 0 || u.Compute != 0 {
		t.Errorf("no sample: %+v", u)
	}
}
