package kernels

import (
	"fmt"
	"math/bits"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// Kind is a distribution of scalars for tests and measurements.
type Kind uint32

// The kinds of scalars that Fill makes.
const (
	Uniform   Kind = iota
	Zeros          // all 0
	Ones           // all 1
	MinusOnes      // all r − 1
	Equal          // one drawn scalar, repeated
	Bits           // 45% 0, 45% 1, the rest drawn
	Eight          // eight drawn scalars
	Kinds          // how many kinds there are
)

// String names a kind.
func (k Kind) String() string {
	if k >= Kinds {
		return fmt.Sprintf("kind(%d)", uint32(k))
	}
	return [...]string{"uniform", "zeros", "ones", "minus-ones", "equal", "bits", "eight"}[k]
}

// Fill makes scalars on the device from a seed.
type Fill struct {
	set *Set
	k   *FillKernels
}

// Fill loads the kernel. What it returns is valid until the device is reset.
func (s *Set) Fill() (*Fill, error) {
	k, err := s.FillKernels()
	if err != nil {
		return nil, err
	}
	return &Fill{set: s, k: k}, nil
}

// Scalars queues the writing of scalars number first … first + n − 1 of a
// kind to dst. FillScalar gives the same on the host.
func (f *Fill) Scalars(st gpu.Stream, a *gpu.Args, kind Kind, seed, first uint64, n int, dst gpu.Ptr) error {
	if n < 0 || n >= 1<<32 {
		return fmt.Errorf("fill %d scalars: not a number of 32 bits", n)
	}
	if err := f.k.FillScalars(st, gpu.Linear(int64(n), 256), a, dst, seed, uint32(kind), first, uint32(n)); err != nil {
		return fmt.Errorf("queue the filling of %d scalars: %w", n, err)
	}
	return nil
}

// words64 are the four words of the modulus, and of 1 in Montgomery form.
func words64(id curve.ID) (r, one [4]uint64) {
	if id == curve.BLS12381 {
		return [4]uint64{0xffffffff00000001, 0x53bda402fffe5bfe, 0x3339d80809a1d805, 0x73eda753299d7d48},
			[4]uint64{0x00000001fffffffe, 0x5884b7fa00034802, 0x998c4fefecbc4ff5, 0x1824b159acc5056f}
	}
	return [4]uint64{0x43e1f593f0000001, 0x2833e84879b97091, 0xb85045b68181585d, 0x30644e72e131a029},
		[4]uint64{0xac96341c4ffffffb, 0x36fc76959f60cd29, 0x666ea36f7879462e, 0x0e0a77c19a07df2f}
}

// FillScalar is scalar number i of those that Fill makes.
func FillScalar(id curve.ID, kind Kind, seed, i uint64) curve.Scalar {
	r, one := words64(id)
	draw := i
	switch kind {
	case Equal:
		draw = 0
	case Eight:
		draw = mix(seed^i) & 7
	case Bits:
		switch p := mix(seed^(i*77+5)) % 100; {
		case p < 45:
			kind = Zeros
		case p < 90:
			kind = Ones
		}
	}
	var s curve.Scalar
	switch kind {
	case Zeros:
		return s
	case Ones:
		return one
	case MinusOnes:
		s, _ = takeOff(r, one)
		return s
	}
	for j := range s {
		s[j] = mix(seed*0x1234567 + draw*4 + uint64(j))
	}
	s[3] &= 1<<(63-bits.LeadingZeros64(r[3])+1) - 1
	if t, below := takeOff(s, r); !below {
		s = t
	}
	return s
}

func takeOff(a, b [4]uint64) (out [4]uint64, below bool) {
	var borrow uint64
	for j := range out {
		out[j], borrow = bits.Sub64(a[j], b[j], borrow)
	}
	return out, borrow != 0
}

// mix is the finalizer of SplitMix64.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}
