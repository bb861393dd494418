package main

import "testing"

func TestHostWorkers(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 3: 3, 4: 3, 8: 6, 16: 12} {
		if got := hostWorkers(n); got != want {
			t.Errorf("%d of %d, want %d", got, n, want)
		}
	}
}
