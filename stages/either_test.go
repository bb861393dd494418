package stages

import (
	"testing"
	"time"
)

// TestEitherDecides: the rules by which the place of a sum is chosen, on given
// measurements.
func TestEitherDecides(t *testing.T) {
	known := func(d time.Duration) mean { return mean{d, 2} }
	for name, c := range map[string]struct {
		e    *either
		want bool
	}{
		"nothing is known":                     {&either{}, false},
		"the first one had kernels compiled":   {&either{sums: 1, onDevice: mean{9, 1}}, false},
		"the host is to be measured":           {&either{sums: 2, onDevice: known(2)}, true},
		"it is being measured":                 {&either{sums: 3, onDevice: known(2), tried: true}, false},
		"the host is faster than the rest":     {&either{onHost: known(5), onDevice: known(2), rest: known(4), period: known(4)}, true},
		"the host is slower than all":          {&either{onHost: known(7), onDevice: known(2), rest: known(4), period: known(4)}, false},
		"jobs wait for the host":               {&either{onHost: known(5), onDevice: known(2), rest: known(4), period: known(4), waiting: eitherLag + 1}, false},
		"the host synthesizes, device is idle": {&either{onHost: known(5), onDevice: known(2), rest: known(4), period: known(10), synth: 1}, false},
		"nothing wants the host":               {&either{onHost: known(5), onDevice: known(2), rest: known(4), period: known(10)}, true},
		"the device is busy all the time":      {&either{onHost: known(5), onDevice: known(2), rest: known(40), period: known(41), synth: 1}, true},
	} {
		if got := c.e.better(); got != c.want {
			t.Errorf("%s: on the host %v", name, got)
		}
	}
}

// TestMean: what is made once spoils no mean.
func TestMean(t *testing.T) {
	var m mean
	for _, d := range []time.Duration{8000, 40, 80} {
		m.add(d)
	}
	if m.d != 50 {
		t.Errorf("the mean is %v", m.d)
	}
}

// TestEitherMeasures: the device is busy as long as any stage is on it.
func TestEitherMeasures(t *testing.T) {
	now := time.Unix(0, 0)
	e := &either{now: func() time.Time { return now }}
	at := func(n int64) { now = time.Unix(n, 0) }
	one := func(from int64) {
		at(from)
		ntt := e.enter(t.Context(), NameNTT)
		at(from + 2)
		add := e.enter(t.Context(), NameBatchAdd)
		at(from + 3)
		ntt()
		h := e.enter(t.Context(), NameHMSM)
		at(from + 5)
		add()
		at(from + 6)
		h()
	}
	one(0)
	if e.rest.d != 6*time.Second || e.period.n > 0 {
		t.Errorf("one job takes %v", e.rest.d)
	}
	one(10)
	if e.rest.d != 6*time.Second || e.period.d != 10*time.Second {
		t.Errorf("the next takes %v, every %v", e.rest.d, e.period.d)
	}
	done := e.enter(t.Context(), NameSynthesize)
	if e.synth != 1 {
		t.Error("nobody synthesizes")
	}
	done()
	e.enter(t.Context(), NameAssemble)()
	if e.synth != 0 || e.working != 0 || e.waiting != 0 {
		t.Errorf("%d, %d and %d are left", e.synth, e.working, e.waiting)
	}
}
