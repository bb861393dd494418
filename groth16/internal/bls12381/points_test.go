package bls12381

import (
	"context"
	"strings"
	"testing"
)

// A panic in one piece is an error, on one worker and on several.
func TestParallelPanics(t *testing.T) {
	for _, n := range []int{1, 100} {
		err := parallel(context.Background(), n, 1, func(from, _ int) error {
			if from == n/2 {
				panic("oops")
			}
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "oops") {
			t.Errorf("%d pieces: %v", n, err)
		}
	}
}
