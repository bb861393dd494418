package driver

import (
	"testing"

	"pgregory.net/rapid"
)

// TestLedgerKeepsLiveMemory lets owners of several generations free the same
// addresses in any order: what is live is given back exactly once, when its
// owner and all late ones have freed it.
func TestLedgerKeepsLiveMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l ledger
		owners := map[uintptr]int{} // frees to come
		live := map[uintptr]bool{}
		var drawn []uintptr
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				p := rapid.Uintptr().Draw(t, "address")%4 + 1
				if !live[p] { // a driver hands out what is free
					l.add(p, int64(p))
					live[p] = true
					owners[p]++
					drawn = append(drawn, p)
				}
			case 1, 2:
				if len(drawn) == 0 {
					continue
				}
				p := rapid.SampledFrom(drawn).Draw(t, "freed")
				c := l.claim(p, false)
				n, do, known := c.size, c.do, c.known
				if known != (owners[p] > 0) {
					t.Fatalf("%d: known %v with %d owners", p, known, owners[p])
				}
				if !known {
					continue
				}
				owners[p]--
				if want := live[p] && owners[p] == 0; do != want || n != int64(p) {
					t.Fatalf("%d: do %v, want %v; %d bytes", p, do, want, n)
				}
				if do && rapid.Bool().Draw(t, "fails") {
					l.put(p, c)
					owners[p]++
				} else if do {
					live[p] = false
				}
			case 3:
				l.pass()
				clear(live)
			}
			for p := range live {
				if !live[p] {
					delete(live, p)
				}
			}
			if got := l.live(); len(got) != len(live) {
				t.Fatalf("live %v, want %v", got, live)
			}
		}
		for p, n := range owners {
			for range n {
				l.claim(p, true)
			}
		}
		if len(l.m) != 0 {
			t.Fatalf("left: %v", l.m)
		}
	})
}
