package kernels

import (
	"fmt"
	"math/big"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// The quotient of Quotient with one vector in device memory at a time, where
// there is no room for all: each is prepared by itself, then they meet in pieces.
//
//	b, c, a: Prepare, each on its own
//	a = a·b − c: Meet, piece by piece; for the monomial basis without c
//	monomial: Finish a, and Part, piece by piece, with c

// InParts reports whether the quotient can be made so: for all but a folded key
// of the monomial basis.
func (t *Tables) InParts(folded bool) bool { return t.basis == curve.Coset || !folded }

// Prepare queues the transforms of one vector; last says that it is c.
func (n *NTT) Prepare(st gpu.Stream, a *gpu.Args, t *Tables, v gpu.Ptr, last bool) error {
	err := n.inverse(st, a, t, v, false, t.log, 0)
	if err == nil && (t.basis == curve.Coset || !last) {
		err = n.forward(st, a, t, v, v, true, 0, 0)
	}
	return partError(t, err)
}

// Meet queues out = x·y − z for count places of prepared vectors; z is 0 for a
// folded key, and for the monomial basis.
func (n *NTT) Meet(st gpu.Stream, a *gpu.Args, t *Tables, out, x, y, z gpu.Ptr, count int) error {
	return partError(t, n.places(st, a, out, x, y, z, count, nil))
}

// Finish queues the transform of the product, for the monomial basis.
func (n *NTT) Finish(st gpu.Stream, a *gpu.Args, t *Tables, v gpu.Ptr) error {
	return partError(t, n.inverse(st, a, t, v, true, t.log, 0))
}

// Part queues out = the quotient, from the finished product v and c, for count
// places, for the monomial basis. Quotient says why.
func (n *NTT) Part(st gpu.Stream, a *gpu.Args, t *Tables, out, v, c gpu.Ptr, count int) error {
	if !t.odd {
		return partError(t, n.places(st, a, out, v, 0, c, count, &t.vanishInv))
	}
	f := newScalarField(n.set.Curve())
	half := f.words(f.inv(big.NewInt(2)))
	return partError(t, n.places(st, a, out, c, 0, v, count, &half))
}

// places is out = (x·y − z)·k, where y, z and k may be missing.
func (n *NTT) places(st gpu.Stream, a *gpu.Args, out, x, y, z gpu.Ptr, count int, k *[8]uint32) error {
	times := uint32(1)
	if k == nil {
		times, k = 0, new([8]uint32)
	}
	return n.k.NttPointwise(st, gpu.Linear(int64(count), nttPointThreads), a, out, x, y, z, uint32(count), times, k)
}

func partError(t *Tables, err error) error {
	if err != nil {
		return fmt.Errorf("quotient in parts on a domain of 2^%d: %w", t.log, err)
	}
	return nil
}
