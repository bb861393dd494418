package democircuit

import (
	"crypto/sha256"
	"testing"

	"github.com/consensys/gnark/frontend"

	"github.com/snarkline/snarkline/curve"
)

func TestSumIsSHA256(t *testing.T) {
	for _, n := range []int{0, 1, 55, 56, 119} {
		msg := make([]byte, n)
		for i := range msg {
			msg[i] = byte(3*i + 1)
		}
		if got, want := sum(pad(msg, (n+9+63)/64), blockRounds), sha256.Sum256(msg); got != want {
			t.Errorf("sum of %d bytes = %x, want %x", n, got, want)
		}
	}
}

func TestSolved(t *testing.T) {
	for _, id := range curve.All() {
		for name, make := range map[string]func() (*Circuit, error){
			"bit-heavy": func() (*Circuit, error) { return BitHeavy(id, 12) },
			"dense":     func() (*Circuit, error) { return Dense(id, 8) },
			"whole":     func() (*Circuit, error) { return sha(id, "whole", 1, blockRounds) },
		} {
			c, err := make()
			if err != nil {
				t.Fatal(err)
			}
			for part := range 2 {
				w, err := c.Witness(part)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.CCS.IsSolved(w); err != nil {
					t.Errorf("%v %s, partition %d (%s): %v", id, name, part, c.Describe(part), err)
				}
			}
			a, b := c.Describe(0), c.Describe(1)
			if a == b {
				t.Errorf("partitions prove the same: %s", a)
			}
		}
	}
}

func TestWrongDigestIsNotSolved(t *testing.T) {
	c, err := BitHeavy(curve.BN254, 11)
	if err != nil {
		t.Fatal(err)
	}
	good := c.assign
	c.assign = func(part int) frontend.Circuit {
		chain := good(part).(*sha256Chain)
		chain.Digest[1] = 7
		return chain
	}
	w, err := c.Witness(0)
	if err != nil {
		t.Fatal(err)
	}
	if c.CCS.IsSolved(w) == nil {
		t.Error("a wrong digest satisfies the circuit")
	}
}

func TestSizes(t *testing.T) {
	for log := MinLog; log <= 17; log++ {
		c, err := BitHeavy(curve.BN254, log)
		if err != nil {
			t.Fatal(err)
		}
		n, most := c.CCS.GetNbConstraints(), 1<<log
		t.Logf("2^%d: %d constraints (%.3f)", log, n, float64(n)/float64(most))
		if n > most || n < most*3/4 {
			t.Errorf("bit-heavy 2^%d has %d constraints", log, n)
		}
	}
	for _, log := range []int{2, 8, 13} {
		c, err := Dense(curve.BLS12381, log)
		if err != nil {
			t.Fatal(err)
		}
		if n := c.CCS.GetNbConstraints(); n > 1<<log || n <= 1<<(log-1) {
			t.Errorf("dense 2^%d has %d constraints", log, n)
		}
	}
	if _, err := BitHeavy(curve.BN254, MinLog-1); err == nil {
		t.Error("a bit-heavy circuit of 2^(MinLog-1) was made")
	}
}

func TestDemoIsSHA256(t *testing.T) {
	c, err := Demo()
	if err != nil {
		t.Fatal(err)
	}
	n := c.CCS.GetNbConstraints() + c.CCS.GetNbPublicVariables()
	if n > 1<<16 || n <= 1<<15 {
		t.Errorf("demo has %d constraints, want a domain of 2^16", n)
	}
}
