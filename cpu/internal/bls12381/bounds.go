package bls12381

import (
	"math/bits"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// QuotientScratch bounds what Quotient draws on a domain of n. Neither the
// basis nor folding changes it.
func (e *Engine) QuotientScratch(n int, _ curve.Basis, _ bool) alloc.Amount {
	if n <= 0 {
		return alloc.Amount{}
	}
	n = 1 << bits.Len(uint(n-1))
	return alloc.HostBytes(curve.ScalarBytes * int64(e.quotientLen(n)))
}

// MSMScratch bounds what MSMG1 or MSMG2 of n terms draws, and SumG1 of n points.
func (e *Engine) MSMScratch(g curve.Group, n int) alloc.Amount {
	if g == curve.InG2 {
		return alloc.HostBytes(e.msmBytesG2(n))
	}
	return alloc.HostBytes(max(e.msmBytesG1(n), e.sumBytes(n)))
}
