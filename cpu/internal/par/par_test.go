package par

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
)

func TestBlocksCoverTheRangeOnce(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 11, 1000} {
		for _, workers := range []int{1, 3, 50} {
			seen := make([]atomic.Int32, n)
			err := Blocks(context.Background(), workers, n, 10, func(_, from, to int) error {
				for i := from; i < to; i++ {
					seen[i].Add(1)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for i := range seen {
				if seen[i].Load() != 1 {
					t.Fatalf("n %d, %d workers: %d seen %d times", n, workers, i, seen[i].Load())
				}
			}
		}
	}
}

func TestBlocksStop(t *testing.T) {
	bad := errors.New("bad")
	var ran atomic.Int32
	err := Blocks(context.Background(), 4, 1<<20, 1, func(_, from, _ int) error {
		ran.Add(1)
		if from == 100 {
			return bad
		}
		return nil
	})
	if !errors.Is(err, bad) {
		t.Errorf("error %v", err)
	}
	if ran.Load() == 1<<20 {
		t.Error("ran to the end")
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = Blocks(ctx, 4, 1<<20, 1, func(_, from, _ int) error {
		if from == 50 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestPanicBecomesAnError(t *testing.T) {
	for _, workers := range []int{1, 4} {
		err := Run(workers, func(w int) error {
			if w == workers-1 {
				panic("oops")
			}
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "oops") {
			t.Errorf("%d workers: %v", workers, err)
		}
	}
}
