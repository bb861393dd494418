package arith

import (
	"context"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254"
)

// A check that panics is an error, and never a vector that has passed.
func TestChecksThatPanic(t *testing.T) {
	ctx := context.Background()
	for _, n := range []int{1, 5 * chunk} {
		bad, err := firstBad(ctx, n, func(from, to int) (int, error) {
			if from <= n-1 && n-1 < to {
				panic("oops")
			}
			return -1, nil
		})
		if bad >= 0 || err == nil || !strings.Contains(err.Error(), "oops") {
			t.Errorf("%d points: %d, %v", n, bad, err)
		}
	}
	v := new(vector[bn254.G2Affine, *bn254.G2Affine, bn254.G2Jac, *bn254.G2Jac])
	ok, err := v.batch(ctx, []checker{(*vector[bn254.G2Affine, *bn254.G2Affine, bn254.G2Jac, *bn254.G2Jac])(nil)}, func(int) {})
	if ok || err == nil || !strings.Contains(err.Error(), "panic") {
		t.Errorf("batch: %v, %v", ok, err)
	}
	if ok, err := v.batch(ctx, []checker{other{}}, func(int) {}); ok || err == nil {
		t.Error("vectors of different curves are checked together")
	}
}

type other struct{ checker }
