package kernels

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

const factorBytes = 64 // a factor of a table: w and ⌊w·2^256/r⌋

// Tables are the factors for the transforms of one domain, in device memory that
// their user gave and frees. They are valid until the device is reset, and may be
// used by any number of streams once the work that makes them is done.
//
// A table of 2^k factors holds, at 2^s + i for i < 2^s, the (2i+1)-st power of a
// root of order 2^(s+2). On a domain whose coset is the odd one, shift² = g, one
// such table of n factors serves all transforms: with and without the coset,
// forward and inverse. So 64·n bytes are all that is needed where the shift can
// be chosen (monomial keys) or is chosen so (coset keys of snarkjs and of this
// module). For any other shift it takes 32·n bytes for the transforms without it
// and 64·n for each direction with it.
type Tables struct {
	log   int
	basis curve.Basis
	shift curve.Scalar
	odd   bool // shift² is the generator

	powers           gpu.Ptr
	order            int // 2^order factors are in powers
	forward, inverse gpu.Ptr

	fold      [8]uint32 // (sⁿ + 1)/(sⁿ − 1) for the domain's shift s; monomial and odd
	vanishInv [8]uint32 // 1/(sⁿ − 1); monomial and not odd
}

// Log is the logarithm of the size of the domain.
func (t *Tables) Log() int { return t.log }

// Basis is what the tables are for.
func (t *Tables) Basis() curve.Basis { return t.basis }

// Shift is the shift of the transforms on a coset. For the monomial basis it is
// not the domain's.
func (t *Tables) Shift() curve.Scalar { return t.shift }

// scalarField does what little the host has to.
type scalarField struct {
	r, mont, montInv *big.Int
}

func newScalarField(id curve.ID) scalarField {
	r := id.ScalarModulus()
	m := new(big.Int).Lsh(big.NewInt(1), 256)
	m.Mod(m, r)
	return scalarField{r, m, new(big.Int).ModInverse(m, r)}
}

// from takes a scalar out of Montgomery form.
func (f scalarField) from(s curve.Scalar) *big.Int {
	v := new(big.Int)
	for i := 3; i >= 0; i-- {
		v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(s[i]))
	}
	return f.mul(v, f.montInv)
}

func (f scalarField) to(v *big.Int) (s curve.Scalar) {
	m := f.mul(v, f.mont)
	for i := range s {
		s[i] = new(big.Int).Rsh(m, uint(64*i)).Uint64()
	}
	return s
}

func (f scalarField) mul(a, b *big.Int) *big.Int {
	v := new(big.Int).Mul(a, b)
	return v.Mod(v, f.r)
}

func (f scalarField) inv(a *big.Int) *big.Int { return new(big.Int).ModInverse(a, f.r) }
func (f scalarField) add(a *big.Int, b int64) *big.Int {
	v := new(big.Int).Add(a, big.NewInt(b))
	return v.Mod(v, f.r)
}

// squares are v, v², v⁴, … v^(2^n).
func (f scalarField) squares(v *big.Int, n int) []*big.Int {
	all := []*big.Int{v}
	for range n {
		v = f.mul(v, v)
		all = append(all, v)
	}
	return all
}

func eightWords(dst []uint32, v *big.Int) {
	for i := range 8 {
		dst[i] = uint32(new(big.Int).Rsh(v, uint(32*i)).Uint64())
	}
}

// words are those of v in Montgomery form.
func (f scalarField) words(v *big.Int) (w [8]uint32) {
	eightWords(w[:], f.mul(v, f.mont))
	return w
}

// factor is v with its companion.
func (f scalarField) factor(v *big.Int) *[16]uint32 {
	w := new([16]uint32)
	eightWords(w[:8], v)
	q := new(big.Int).Lsh(v, 256)
	eightWords(w[8:], q.Div(q, f.r))
	return w
}

// nttDomain is a domain as the tables are laid out for it.
type nttDomain struct {
	Tables
	f         scalarField
	generator *big.Int
	root      *big.Int // what powers holds the powers of, of order 2^(order+1)
	bytes     int64
}

// forceShift makes the layout take the shift as it is, for tests of what is else
// needed for one domain alone, BN254's of 2^28.
var forceShift = false

// layout checks the domain and lays its tables out from address 0.
func (n *NTT) layout(d curve.Domain, basis curve.Basis) (*nttDomain, error) {
	id := n.set.Curve()
	f := newScalarField(id)
	if d.Log < 0 || d.Log > MaxNTT || d.Log > id.TwoAdicity() {
		return nil, fmt.Errorf("no transforms on a domain of 2^%d on %v", d.Log, id)
	}
	l := &nttDomain{f: f, generator: f.from(d.Generator)}
	l.log, l.basis = d.Log, basis
	minusOne := new(big.Int).Sub(f.r, big.NewInt(1))
	order := f.squares(l.generator, max(d.Log-1, 0))
	if top := order[len(order)-1]; d.Log == 0 && top.Cmp(big.NewInt(1)) != 0 || d.Log > 0 && top.Cmp(minusOne) != 0 {
		return nil, fmt.Errorf("the generator of the domain is not a primitive 2^%d-th root of unity", d.Log)
	}
	shift := f.from(d.Shift)
	switch basis {
	case curve.Coset:
		if d.Shift.IsZero() {
			return nil, errors.New("the domain has no shift")
		}
		l.odd = f.mul(shift, shift).Cmp(l.generator) == 0 && !forceShift
	case curve.Monomial:
		if d.Shift.IsZero() {
			shift = big.NewInt(map[curve.ID]int64{curve.BLS12381: 7, curve.BN254: 5}[id]) // gnark-crypto's
		}
		powers := f.squares(shift, d.Log)
		vanish := f.add(powers[d.Log], -1)
		if vanish.Sign() == 0 {
			return nil, errors.New("the shift of the domain lies in the domain")
		}
		inv := f.inv(vanish)
		l.vanishInv, l.fold = f.words(inv), f.words(f.mul(f.add(powers[d.Log], 1), inv))
		l.odd = d.Log < id.TwoAdicity() && !forceShift
		if l.odd {
			if shift = minusOne; d.Log > 0 {
				if shift = new(big.Int).ModSqrt(l.generator, f.r); shift == nil {
					return nil, errors.New("the generator of the domain has no root")
				}
			}
		}
	default:
		return nil, fmt.Errorf("%v", basis)
	}
	l.shift = f.to(shift)

	take := func(factors int64) gpu.Ptr {
		at := l.bytes
		l.bytes += (factors*factorBytes + 255) &^ 255
		return gpu.Ptr(at)
	}
	l.order, l.root = d.Log, shift
	if !l.odd {
		l.order, l.root = max(d.Log-1, 0), l.generator
	}
	l.powers = take(1<<l.order + 1)
	switch {
	case l.odd:
		l.forward, l.inverse = l.powers, l.powers
	case basis == curve.Monomial:
		l.forward, l.inverse = take(1<<d.Log), take(1<<d.Log)
	default:
		l.forward = take(1 << d.Log)
	}
	return l, nil
}

// TableBytes is how much device memory the tables take: 64 bytes an element, or
// more where the shift is not ours to choose (Tables says when). It is 0 for a
// domain that MakeTables will not take.
func (n *NTT) TableBytes(d curve.Domain, basis curve.Basis) int64 {
	l, err := n.layout(d, basis)
	if err != nil {
		return 0
	}
	return l.bytes
}

// MakeTables queues the work that makes the tables in mem, TableBytes of device
// memory, aligned to 256 bytes as allocations are.
func (n *NTT) MakeTables(st gpu.Stream, a *gpu.Args, d curve.Domain, basis curve.Basis, mem gpu.Ptr) (*Tables, error) {
	l, err := n.layout(d, basis)
	if err != nil {
		return nil, fmt.Errorf("tables of transforms: %w", err)
	}
	t := l.Tables
	t.powers += mem
	t.forward += mem
	if t.inverse != 0 || l.odd {
		t.inverse += mem
	}
	if err := n.fill(st, a, l, &t); err != nil {
		return nil, fmt.Errorf("make the tables of a domain of 2^%d: %w", d.Log, err)
	}
	return &t, nil
}

const nttTableThreads = 128

// fill makes the levels of the tables one after the other.
func (n *NTT) fill(st gpu.Stream, a *gpu.Args, l *nttDomain, t *Tables) error {
	f := l.f
	one, montgomery := f.factor(big.NewInt(1)), f.factor(f.mont)
	// roots[i] has order 2^(order+1−i)
	roots := f.squares(l.root, l.order)
	inverses := f.squares(f.inv(l.root), l.order)
	at := func(powers []*big.Int, level int) *big.Int { return powers[max(l.order-1-level, 0)] }
	err := n.k.NttTableSeed(st, gpu.Launch{}, a, t.powers, uint32(l.order), f.factor(f.add(f.r, -1)), f.factor(at(roots, 0)), one)
	if err != nil {
		return err
	}
	for s := 1; s < l.order; s++ {
		shape := gpu.Linear(1<<s, nttTableThreads)
		if err := n.k.NttTableLevel(st, shape, a, t.powers, 1<<s, f.factor(at(inverses, s)), f.factor(at(roots, s)), montgomery); err != nil {
			return err
		}
	}
	if l.odd {
		return nil
	}
	shift := f.from(t.shift)
	for backward, dst := range []gpu.Ptr{t.forward, t.inverse} {
		if dst == 0 {
			continue
		}
		powers := f.squares(shift, l.log)
		shift = f.inv(shift)
		unit := uint32(1) << l.order
		if backward == 1 {
			unit = 0
		}
		for s := range l.log {
			shape := gpu.Linear(1<<s, nttTableThreads)
			if err := n.k.NttTableCoset(st, shape, a, dst, t.powers, 1<<s, uint32(backward), unit, f.factor(powers[l.log-1-s]), montgomery); err != nil {
				return err
			}
		}
	}
	return nil
}
