package bls12381

import (
	"fmt"
	"sync"

	"github.com/snarkline/snarkline/cpu/internal/ifma"
	"github.com/snarkline/snarkline/curve"
)

// tables keeps the twiddles of the vector transforms over the domains used
// last: a prover has one domain, or a few. They are public, on Go's heap, and
// grow with the square root of the domain: 2 MiB at 2^20, 15 MiB at 2^26.
type tables struct {
	mu   sync.Mutex
	last [2]*tablesOf // the latest first
}

type tablesOf struct {
	domain curve.Domain
	ntt    *ifma.NTT
}

// of makes the tables for d, or has them.
func (t *tables) of(d curve.Domain) (*ifma.NTT, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, have := range t.last {
		if have != nil && have.domain == d {
			t.last[0], t.last[i] = have, t.last[0]
			return have.ntt, nil
		}
	}
	ntt, err := ifma.NewNTT(id, d, make([]byte, ifma.NTTBytes(d.Log)))
	if err != nil {
		return nil, err
	}
	if ntt == nil {
		return nil, fmt.Errorf("no vector kernels for a domain of 2^%d", d.Log)
	}
	t.last[0], t.last[1] = &tablesOf{d, ntt}, t.last[0]
	return ntt, nil
}
