package cuda

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestBusy: what is counted is the length of the union of all spans, in whatever
// order they come.
func TestBusy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b busy
		var at [300]bool
		for range rapid.IntRange(0, 40).Draw(t, "spans") {
			from := rapid.IntRange(0, 299).Draw(t, "from")
			to := rapid.IntRange(from, min(from+30, 299)).Draw(t, "to")
			b.count(span{float64(from), float64(to)})
			for i := from; i < to; i++ {
				at[i] = true
			}
		}
		want := 0.0
		for _, on := range at {
			if on {
				want++
			}
		}
		if got := b.ms(); math.Abs(got-want) > 1e-9 {
			t.Fatalf("%v ms are counted of %v: %v", got, want, b.spans)
		}
	})
}

// TestBusyFolds: old spans are added up, and not counted twice.
func TestBusyFolds(t *testing.T) {
	var b busy
	const n = 5 * busySpans
	for i := range n {
		b.count(span{float64(2 * i), float64(2*i + 1)})
	}
	if len(b.spans) > busySpans || b.ms() != n {
		t.Errorf("%d spans, %v ms of %d", len(b.spans), b.ms(), n)
	}
}
