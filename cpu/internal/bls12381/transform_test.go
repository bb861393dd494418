package bls12381

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sync/semaphore"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// transformInputs are vectors of n elements: fresh ones, and the ends of the range.
func transformInputs(rng *rand.Rand, n int) map[string][]curve.Scalar {
	var last fr.Element
	last.SetInt64(-1)
	top, unit := make([]curve.Scalar, n), make([]curve.Scalar, n)
	for i := range top {
		top[i] = curve.Scalar(last)
	}
	unit[n-1] = curve.Scalar(last)
	return map[string][]curve.Scalar{
		"random": randomVector(rng, n), "zero": make([]curve.Scalar, n), "r - 1": top, "one place": unit,
	}
}

// TestTransform compares each kind with gnark-crypto, bit for bit, with and
// without vector kernels, from 2^0 on.
func TestTransform(t *testing.T) {
	ctx, rng := context.Background(), newRand(t)
	logs := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14}
	for _, vectors := range []bool{false, true} {
		e := New(2, semaphore.NewWeighted(1), vectors)
		for _, log := range logs {
			gd := fft.NewDomain(1 << log)
			d := curve.Domain{Log: log, Generator: curve.Scalar(gd.Generator), Shift: curve.Scalar(gd.FrMultiplicativeGen)}
			for name, in := range transformInputs(rng, 1<<log) {
				for kind := range 8 {
					inverse, coset, reversed := kind&1 != 0, kind&2 != 0, kind&4 != 0
					got, want := append([]curve.Scalar(nil), in...), append([]curve.Scalar(nil), in...)
					if err := e.Transform(ctx, nil, d, got, inverse, coset, reversed); err != nil {
						t.Fatal(err)
					}
					order, f := fft.DIF, gd.FFT
					if reversed {
						order = fft.DIT
					}
					if inverse {
						f = gd.FFTInverse
					}
					var opts []fft.Option
					if coset {
						opts = append(opts, fft.OnCoset())
					}
					f(elements(want), order, opts...)
					for i := range want {
						if got[i] != want[i] {
							t.Fatalf("vectors %v, 2^%d, %s, inverse %v, coset %v, reversed %v: element %d differs", vectors, log, name, inverse, coset, reversed, i)
						}
					}
				}
			}
		}
	}
}

func TestTransformRefuses(t *testing.T) {
	defer alloc.CheckLeaks(t)
	e := New(2, semaphore.NewWeighted(1), true)
	gd := fft.NewDomain(1 << 9)
	d := curve.Domain{Log: 9, Generator: curve.Scalar(gd.Generator)}
	for name, err := range map[string]error{
		"too short": e.Transform(context.Background(), nil, d, make([]curve.Scalar, 1<<8), false, false, false),
		"no root": e.Transform(context.Background(), nil, curve.Domain{Log: 8, Generator: curve.Scalar(gd.Generator)},
			make([]curve.Scalar, 1<<8), false, false, false),
	} {
		if err == nil {
			t.Error(fmt.Sprint(name, ": no error"))
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if e.Transform(ctx, nil, d, make([]curve.Scalar, 1<<9), true, true, false) == nil {
		t.Error("cancelled: no error")
	}
}
