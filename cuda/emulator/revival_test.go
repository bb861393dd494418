package emulator

import "testing"

// A card that is not revived answers whoever makes a context with what ended
// the last one, whatever is released or reset; another card is as it was.
func TestNoRevival(t *testing.T) {
	for _, code := range []int32{illegalAddress, launchFailed} {
		m := start(t, Config{NoRevival: true, Cards: []Card{{}, {}}})
		p := m.alloc(64)
		m.Fault("copy", 1, int(code), true)
		m.must(m.DtoDAsync(p, p+32, 4, m.stream))
		m.want(code, "the copy", m.StreamSynchronize(m.stream))
		var ctx, x uint64
		m.want(code, "another reference", m.PrimaryRetain(&ctx, 0))
		old := m.context
		for range 3 {
			m.must(m.PrimaryReset(0))
			m.want(code, "a context after a reset", m.PrimaryRetain(&ctx, 0))
		}
		m.want(destroyed, "the old context", m.CtxSetCurrent(old))
		m.want(destroyed, "an allocation in it", m.MemAlloc(&x, 1))
		if c := m.stats().Cards[0]; c.Live() || c.Context != 0 {
			t.Errorf("left on the card: %+v", c)
		}
		m.must(m.PrimaryRetain(&ctx, 1))
		m.must(m.CtxSetCurrent(ctx))
		m.must(m.MemAlloc(&x, 1))
		m.must(m.MemFree(x))
		m.must(m.PrimaryRelease(1))
		if err := m.Configure(Config{}); err != nil { // as a new process
			t.Fatal(err)
		}
		m.must(m.Init(0))
		m.must(m.PrimaryRetain(&ctx, 0))
		m.must(m.PrimaryRelease(0))
	}
}
