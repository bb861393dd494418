package kernels

import (
	"fmt"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// MaxNTT is the logarithm of the largest transform.
const MaxNTT = 28

// NTT does number theoretic transforms over the scalar field, in place, between
// values in natural order and coefficients in bit-reversed order: nothing
// reverses bits. Vectors are of curve.Scalar, reduced, in Montgomery form, and so
// are results, which are gnark-crypto's bit for bit. ntt.cu says how it works.
type NTT struct {
	set *Set
	k   *NttKernels
	// plan cuts a transform of 2^log, log > smallNTT, into passes.
	plan func(log int) nttPlan
}

// NTT loads the kernels. What it returns is valid until the device is reset.
func (s *Set) NTT() (*NTT, error) {
	k, err := s.NttKernels()
	if err != nil {
		return nil, err
	}
	return &NTT{set: s, k: k, plan: planNTT}, nil
}

const (
	smallNTT        = 10 // transforms up to 2^10 are one block of one kernel
	nttSmallThreads = 256
	nttTileLog      = 10 // a block of a larger one works on 2^10 elements
	nttThreads      = 128
	nttShared       = curve.ScalarBytes << nttTileLog
	nttPointThreads = 256
)

// nttPlan is the passes of a transform: the lowest levels, 5 to 10, in one, then
// 3·rounds[0], 3·rounds[1], … levels; rounds are 2 or 3.
type nttPlan struct {
	low    int
	rounds []int
}

// planNTT takes as few passes as there can be and, of those plans, one with the
// fewest rounds of three levels. The last pass reads most of the table, so it gets
// the most work to hide that.
func planNTT(log int) nttPlan {
	var best nttPlan
	least := 0
	for _, rounds := range [][]int{{2}, {3}, {2, 2}, {2, 3}, {3, 3}} {
		low, count := log, 0
		for _, r := range rounds {
			low, count = low-3*r, count+r
		}
		if low < 5 || low > nttTileLog || best.rounds != nil && len(rounds) > len(best.rounds) {
			continue
		}
		if count += (low + 2) / 3; best.rounds == nil || count < least {
			best, least = nttPlan{low, rounds}, count
		}
	}
	return best
}

func (n *NTT) tiles(log int) gpu.Launch {
	return gpu.Launch{Grid: [3]uint32{1 << (log - nttTileLog)}, Block: [3]uint32{nttThreads}, Shared: nttShared}
}

// heap is a table with the factors of a transform.
type heap struct {
	at    gpu.Ptr
	plain uint32 // 1: without a coset
	one   uint32 // place of 1, for a plain forward transform
}

func (t *Tables) heap(coset, inverse bool) (heap, error) {
	h := heap{at: t.powers, plain: 1, one: 1 << t.order}
	if coset {
		h = heap{at: t.forward}
		if inverse {
			h.at = t.inverse
		}
		if h.at == 0 {
			return h, fmt.Errorf("the tables of a %v domain of 2^%d have no factors for this transform", t.basis, t.log)
		}
	}
	return h, nil
}

// Forward takes the coefficients v, in bit-reversed order, to the values at g^i,
// or at t.Shift()·g^i, in natural order.
func (n *NTT) Forward(st gpu.Stream, a *gpu.Args, t *Tables, v gpu.Ptr, coset bool) error {
	return n.forward(st, a, t, v, v, coset, 0, 0)
}

// Inverse takes the values v at g^i, or at t.Shift()·g^i, in natural order, to the
// coefficients in bit-reversed order.
func (n *NTT) Inverse(st gpu.Stream, a *gpu.Args, t *Tables, v gpu.Ptr, coset bool) error {
	return n.inverse(st, a, t, v, coset, t.log, 0)
}

// forward transforms v. The result, times the vector by if there is one, less the
// vector minus if there is one, goes to out, which may be any of the vectors.
func (n *NTT) forward(st gpu.Stream, a *gpu.Args, t *Tables, v, out gpu.Ptr, coset bool, by, minus gpu.Ptr) error {
	h, err := t.heap(coset, false)
	if err != nil {
		return err
	}
	if t.log <= smallNTT {
		return n.k.NttSmall(st, gpu.Launch{Block: [3]uint32{nttSmallThreads}, Shared: nttShared}, a, v, out, h.at, uint32(t.log), 0, h.plain, h.one, 0, by, minus)
	}
	p, shape := n.plan(t.log), n.tiles(t.log)
	if err := n.k.NttForwardFirst(st, shape, a, v, v, h.at, uint32(p.low), h.plain, h.one); err != nil {
		return err
	}
	lo := p.low
	for i, rounds := range p.rounds {
		to, last, times, less := v, uint32(0), gpu.Ptr(0), gpu.Ptr(0)
		if i == len(p.rounds)-1 {
			to, last, times, less = out, 1, by, minus
		}
		if err := n.k.NttForward(st, shape, a, v, to, h.at, uint32(lo), uint32(rounds), h.plain, h.one, last, times, less); err != nil {
			return err
		}
		lo += 3 * rounds
	}
	return nil
}

// inverse transforms v, without the division by n but with one by 2^shift, and
// subtracts the result from the vector from, if there is one.
func (n *NTT) inverse(st gpu.Stream, a *gpu.Args, t *Tables, v gpu.Ptr, coset bool, shift int, from gpu.Ptr) error {
	h, err := t.heap(coset, true)
	if err != nil {
		return err
	}
	if t.log <= smallNTT {
		return n.k.NttSmall(st, gpu.Launch{Block: [3]uint32{nttSmallThreads}, Shared: nttShared}, a, v, v, h.at, uint32(t.log), 1, h.plain, 0, uint32(shift), 0, from)
	}
	p, shape := n.plan(t.log), n.tiles(t.log)
	lo := t.log
	for i := len(p.rounds) - 1; i >= 0; i-- {
		lo -= 3 * p.rounds[i]
		if err := n.k.NttInverse(st, shape, a, v, v, h.at, uint32(lo), uint32(p.rounds[i]), h.plain); err != nil {
			return err
		}
	}
	return n.k.NttInverseLast(st, shape, a, v, v, h.at, uint32(p.low), h.plain, uint32(shift), from)
}

// pointwise is out = (x·y − z)·k, where y and z may be missing.
func (n *NTT) pointwise(st gpu.Stream, a *gpu.Args, log int, out, x, y, z gpu.Ptr, k *[8]uint32) error {
	return n.k.NttPointwise(st, gpu.Linear(1<<log, nttPointThreads), a, out, x, y, z, 1<<log, 1, k)
}

// ScratchBytes is how much device memory Quotient wants beside its vectors: none,
// but for a folded key of the monomial basis one vector more.
func (n *NTT) ScratchBytes(log int, basis curve.Basis, folded bool) int64 {
	if basis == curve.Monomial && folded {
		return curve.ScalarBytes << log
	}
	return 0
}

// Quotient computes what a key wants of the values va, vb, vc on the domain of t,
// in natural order, as groth16.Arithmetic says; the result is in va, and the
// other vectors are spoiled. vc is 0 for a folded key. scratch is ScratchBytes of
// device memory, 0 if that is 0.
//
// For the coset basis it takes two transforms a vector, and the product, and c,
// go with the last store.
//
// For the monomial basis let a·b = low + Xⁿ·high. The shift is ours to choose: a
// root of g, with shiftⁿ = −1, where the inverse transform of a·b is low − high.
// On the domain it is low + high, which is c, so that h = high = (c − (low −
// high))/2 takes six transforms, the first of which halves c. That is for a·b = c,
// which nothing here checks: for other vectors no quotient exists, and what comes
// out differs from what a CPU makes of them. Without c, when the result depends on
// the domain's shift s, it is high + (low + high)/(sⁿ − 1): that sum is made of
// the products on the domain, again in six transforms.
func (n *NTT) Quotient(st gpu.Stream, a *gpu.Args, t *Tables, basis curve.Basis, va, vb, vc, scratch gpu.Ptr) error {
	if err := n.quotient(st, a, t, basis, va, vb, vc, scratch); err != nil {
		return fmt.Errorf("quotient on a domain of 2^%d: %w", t.log, err)
	}
	return nil
}

func (n *NTT) quotient(st gpu.Stream, a *gpu.Args, t *Tables, basis curve.Basis, va, vb, vc, scratch gpu.Ptr) error {
	if basis != t.basis {
		return fmt.Errorf("the tables are for the %v basis, not the %v one", t.basis, basis)
	}
	monomial := basis == curve.Monomial
	var from gpu.Ptr // what a·b is subtracted from
	if monomial && t.odd {
		if from = vc; vc == 0 {
			if from = scratch; scratch == 0 {
				return fmt.Errorf("a folded key of the monomial basis needs scratch memory")
			}
			if err := n.pointwise(st, a, t.log, from, va, vb, 0, &t.fold); err != nil {
				return err
			}
		}
		if err := n.inverse(st, a, t, from, false, t.log+1, 0); err != nil {
			return err
		}
	} else if monomial && vc != 0 {
		if err := n.inverse(st, a, t, vc, false, t.log, 0); err != nil {
			return err
		}
	}
	var minus gpu.Ptr
	toCoset := []gpu.Ptr{va}
	if !monomial && vc != 0 {
		toCoset, minus = append(toCoset, vc), vc
	}
	for _, v := range toCoset {
		if err := n.inverse(st, a, t, v, false, t.log, 0); err != nil {
			return err
		}
		if err := n.forward(st, a, t, v, v, true, 0, 0); err != nil {
			return err
		}
	}
	if err := n.inverse(st, a, t, vb, false, t.log, 0); err != nil {
		return err
	}
	if err := n.forward(st, a, t, vb, va, true, va, minus); err != nil {
		return err
	}
	switch {
	case !monomial:
		return nil
	case t.odd:
		return n.inverse(st, a, t, va, true, t.log+1, from)
	}
	if err := n.inverse(st, a, t, va, true, t.log, 0); err != nil {
		return err
	}
	return n.pointwise(st, a, t.log, va, va, 0, vc, &t.vanishInv)
}
