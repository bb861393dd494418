package cuda

import (
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/kernels"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// parts is a quotient for which the card has no room for all vectors at once:
// one is transformed after the other in the same memory and goes back to the
// host, then they meet in pieces. It takes a vector of memory, or one beside a
// where that is on the card already, and each of b and c goes there three times.
type parts struct {
	work  bool // memory of its own is needed for the transforms of b and c
	piece int  // scalars
	bytes int64
}

// partsOf is what the quotient of x takes in parts; more than anything has where
// it cannot be made so.
func (e *Engine) partsOf(x *evaluations) parts {
	if x.basis == curve.Monomial && x.c == nil || x.b.onDevice() != nil || x.c != nil && x.c.onDevice() != nil {
		return parts{bytes: 1 << 60}
	}
	p := parts{work: x.a.onDevice() != nil, piece: min(x.a.n, int(e.o.chunk/curve.ScalarBytes))}
	p.bytes = aligned(x.a.bytes()) + 4*aligned(int64(p.piece)*curve.ScalarBytes)
	return p
}

// quotientInParts is the quotient of x, of which at most a is on the card.
func (t *task) quotientInParts(ntt *kernels.NTT, tab *kernels.Tables, x *evaluations, p parts) error {
	pieces := aligned(int64(p.piece) * curve.ScalarBytes)
	size := 4 * pieces
	if p.work {
		size += aligned(x.a.bytes())
	}
	mem, err := t.take(size, alloc.Scratch)
	if err != nil {
		return err
	}
	cut := carved{mem, mem + gpu.Ptr(size)}
	var half [2][2]gpu.Ptr
	for i := range half {
		half[i] = [2]gpu.Ptr{cut.carve(pieces), cut.carve(pieces)}
	}
	var a, work gpu.Ptr
	if p.work {
		if a, err = x.a.ready(t.ctx, t.st); err != nil {
			return err
		}
		work = cut.carve(x.a.bytes())
	} else {
		b, err := t.stand(x.a.bytes(), alloc.Evaluation)
		if err != nil {
			return err
		}
		x.a.place(b)
		a, work = b.ptr(), b.ptr()
	}
	t.touched = true // b and c are overwritten where they are
	for _, v := range x.vectors()[1:] {
		host := v.onHost()
		if host == nil {
			return &gpu.StaleError{Device: t.e.card.name, What: "a vector"}
		}
		if err := t.bounceIn(work, curve.Bytes(host.Slice()), host.Space() == alloc.Pinned); err != nil {
			return err
		}
		if err := ntt.Prepare(t.st, t.args, tab, work, v == x.c); err != nil {
			return err
		}
		if err := t.takeBack(curve.Bytes(host.Slice()), work); err != nil {
			return err
		}
	}
	if !p.work {
		host := x.a.onHost()
		if host == nil {
			return &gpu.StaleError{Device: t.e.card.name, What: "a vector"}
		}
		if err := t.bounceIn(a, curve.Bytes(host.Slice()), host.Space() == alloc.Pinned); err != nil {
			return err
		}
	}
	if err := ntt.Prepare(t.st, t.args, tab, a, false); err != nil {
		return err
	}
	return t.meet(ntt, tab, x, p, a, half)
}

// meet puts the prepared vectors together in a.
func (t *task) meet(ntt *kernels.NTT, tab *kernels.Tables, x *evaluations, p parts, a gpu.Ptr, half [2][2]gpu.Ptr) error {
	carry := func(dst gpu.Ptr, v *vector, from, n int) error {
		host := v.onHost()
		if host == nil {
			return fmt.Errorf("%w", &gpu.StaleError{Device: t.e.card.name, What: "a vector"})
		}
		return t.l.belt.carry(t.ctx, dst, curve.Bytes(host.Slice()[from:from+n]))
	}
	monomial := x.basis == curve.Monomial
	err := t.inPieces(x.a.n, p.piece, true, func(h, from, n int) error {
		if err := carry(half[h][0], x.b, from, n); err != nil || x.c == nil || monomial {
			return err
		}
		return carry(half[h][1], x.c, from, n)
	}, func(i, from, n int) error {
		at := a + gpu.Ptr(from*curve.ScalarBytes)
		z := half[i%2][1]
		if x.c == nil || monomial {
			z = 0
		}
		return ntt.Meet(t.st, t.args, tab, at, at, half[i%2][0], z, n)
	})
	if err != nil || !monomial {
		return err
	}
	if err := ntt.Finish(t.st, t.args, tab, a); err != nil {
		return err
	}
	return t.inPieces(x.a.n, p.piece, true, func(h, from, n int) error {
		return carry(half[h][0], x.c, from, n)
	}, func(i, from, n int) error {
		at := a + gpu.Ptr(from*curve.ScalarBytes)
		return ntt.Part(t.st, t.args, tab, at, at, half[i%2][0], n)
	})
}
