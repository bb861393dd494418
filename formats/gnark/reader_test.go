package gnark

import (
	"context"
	"strings"
	"testing"
)

func TestPiecesThatPanic(t *testing.T) {
	for _, n := range []int{1, 20 * piece} {
		at := (n - 1) / piece * piece
		bad, err := pieces(context.Background(), n, func(from, _ int) (int, error) {
			if from == at {
				panic("oops")
			}
			return from, nil
		})
		if bad != at || err == nil || !strings.Contains(err.Error(), "oops") {
			t.Errorf("%d points: %d, %v", n, bad, err)
		}
	}
}
