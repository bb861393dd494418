package stages

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/snarkline/snarkline/pipeline"
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
		"the first one had kernels compiled":   {&either{onDevice: mean{9, 1}}, false},
		"the host is to be measured":           {&either{onDevice: known(2)}, true},
		"it is being measured":                 {&either{onDevice: known(2), tried: true}, false},
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

// TestEitherProbes: how many of the sums, of which all belong on one processor,
// go to the other one to measure it.
func TestEitherProbes(t *testing.T) {
	const sums = 3*eitherProbe + eitherProbe/2
	device := func(onHost time.Duration, n, left int) *either {
		return &either{onHost: mean{onHost, n}, onDevice: mean{2, 9}, hostThen: 2, rest: mean{1, 9}, tried: true, left: left}
	}
	for name, c := range map[string]struct {
		e    *either
		want int
	}{
		"jobs enough are in flight":               {device(5, 2, 5), 3},
		"it would end after all others":           {device(5, 2, 4), 0},
		"a batch's last":                          {device(5, 2, 1), 0},
		"the host is far slower":                  {device(7, 2, 9), 0},
		"it was so once":                          {device(7, 1, 9), 3},
		"as slow, and the device is slower now":   {&either{onHost: mean{70, 2}, onDevice: mean{20, 9}, hostThen: 9, rest: mean{1, 9}, left: 70}, 3},
		"as slow, and the device is faster now":   {&either{onHost: mean{70, 2}, onDevice: mean{20, 9}, hostThen: 41, rest: mean{1, 9}, left: 70}, 3},
		"the host is used":                        {&either{onHost: mean{5, 9}, onDevice: mean{6, 9}, deviceThen: 5, rest: mean{6, 9}, left: 1, was: true}, 3},
		"the host is used, the device far slower": {&either{onHost: mean{5, 9}, onDevice: mean{16, 9}, deviceThen: 5, rest: mean{6, 9}, left: 9, was: true}, 0},
	} {
		probes := 0
		for range sums {
			better := c.e.better()
			if better != c.e.was {
				t.Fatalf("%s: better on the host: %v", name, better)
			}
			if c.e.decide() != better {
				probes++
			}
		}
		if probes != c.want {
			t.Errorf("%s: %d of %d sums are probes, want %d", name, probes, sums, c.want)
		}
	}
	late := device(5, 2, 1)
	for range sums {
		late.decide()
	}
	if late.left = 5; !late.decide() {
		t.Error("a probe that had to wait is not made up for")
	}
	// What the probe finds: the host is far slower, and is left alone.
	late.took(true, 80*time.Nanosecond)
	for range sums {
		if late.left = 100; late.decide() {
			t.Fatal("the host is measured again")
		}
	}
	late.took(false, 20) // the mean is 6 now
	if !late.decide() {
		t.Error("the host is not measured when the device has become slower")
	}
}

// TestEitherCounts: jobs are in flight for the device from their first stage to
// the end of h-msm, or to their own end.
func TestEitherCounts(t *testing.T) {
	e := &either{now: time.Now}
	count := func() (left, waiting int) {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.left, e.waiting
	}
	type seen struct{ left, waiting int }
	var at []seen
	stage := func(name string) pipeline.Stage[int, int] {
		return pipeline.NewStage(name, func(ctx context.Context, i int) (int, error) {
			leave := e.enter(ctx, name)
			left, waiting := count()
			at = append(at, seen{left, waiting})
			leave()
			if i == 1 && name == NameBatchAdd {
				return 0, errors.New("it fails")
			}
			return i, nil
		})
	}
	for i := range 2 {
		g := pipeline.New("either")
		p := pipeline.FromSlice(g, []int{i}, func(int) pipeline.Key { return pipeline.Key{Job: "a"} })
		for _, name := range []string{NameSynthesize, NameBatchAdd, NameHMSM, NameTailMSM} {
			p = pipeline.Via(p, stage(name))
		}
		pipeline.ToFunc(p, func(context.Context, pipeline.Key, int) error { return nil })
		if _, err := g.Run(t.Context()); (err != nil) != (i == 1) {
			t.Fatal(err)
		}
		if left, waiting := count(); left != 0 || waiting != 0 {
			t.Errorf("job %d: %d are left, %d wait", i, left, waiting)
		}
	}
	want := []seen{{1, 0}, {1, 1}, {1, 1}, {0, 1}, {1, 0}, {1, 1}}
	if len(at) != len(want) {
		t.Fatalf("%v", at)
	}
	for i := range want {
		if at[i] != want[i] {
			t.Errorf("stage %d: %v, want %v", i, at[i], want[i])
		}
	}
}
