// Package cpu is the arithmetic of a Groth16 proof on a CPU: field and point
// operations are those of gnark-crypto, the algorithms above them are this
// package's own. They keep everything that grows in buffers of package alloc,
// drawn from the scope of the call and given back before it returns.
//
// Multi-scalar multiplication is Pippenger's bucket method ("Faster batch
// forgery identification", eprint 2012/549, section 4) with signed digits,
// taken a few windows at a time by all workers together: the terms are sorted
// by bucket, and each bucket is added up as a tree of affine additions that
// share inversions ("Simultaneous inversion", Montgomery 1987, section 10.3.1).
// Bucket memory is that of one round of windows, whatever the number of
// workers.
//
// On a processor with AVX-512 IFMA, sums and transforms of some size are done by
// vector kernels, eight elements at once ([Vectors], [VectorsEnv]); results are
// the same, bit for bit.
//
// # Timing
//
// Nothing here hides the scalars from somebody who can measure time, caches or
// memory accesses. Sums skip zeros, sort terms by digits of the scalars, read
// points in that order, and treat equal and opposite points apart; a witness
// that is all bits takes a fraction of the time of a random one. Single
// products, sums and differences in vectors of a [Field] take the same time
// whatever the values are, as do the butterflies of a transform, whose
// memory accesses depend on its size alone; but neither is tested for it, and
// gnark-crypto, which does the rest, does not promise it.
package cpu

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sync/semaphore"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu/internal/bls12381"
	"github.com/snarkline/snarkline/cpu/internal/bn254"
	"github.com/snarkline/snarkline/cpu/internal/ifma"
	"github.com/snarkline/snarkline/curve"
)

//go:generate go run github.com/snarkline/snarkline/internal/gen

// kernels is what the package of a curve gives.
type kernels interface {
	Evaluate(ctx context.Context, m curve.Matrix, w, out []curve.Scalar) error
	Hadamard(ctx context.Context, a, b, out []curve.Scalar) error
	Unsatisfied(ctx context.Context, a, b, c []curve.Scalar) (int, error)
	Quotient(ctx context.Context, sc *alloc.Scope, d curve.Domain, basis curve.Basis, a, b, c []curve.Scalar) error
	Classify(ctx context.Context, w []curve.Scalar, out []curve.Class) (curve.Counts, error)
	SumG1(ctx context.Context, sc *alloc.Scope, q curve.Query, classes []curve.Class) (curve.G1, error)
	Tail(ctx context.Context, q curve.Query, classes []curve.Class, out []uint32) (int, error)
	MSMG1(ctx context.Context, sc *alloc.Scope, q curve.Query, w []curve.Scalar, pick []uint32) (curve.G1, error)
	MSMG2(ctx context.Context, sc *alloc.Scope, q curve.Query, w []curve.Scalar, pick []uint32) (curve.G2, error)
	Transform(ctx context.Context, sc *alloc.Scope, d curve.Domain, a []curve.Scalar, inverse, coset, reversed bool) error
	QuotientScratch(n int, basis curve.Basis, folded bool) alloc.Amount
	MSMScratch(g curve.Group, n int) alloc.Amount
}

// Engine is the arithmetic of one curve. It is safe for concurrent use: large
// calls (quotients, sums) take turns, first come first served, each with all
// workers; small ones run at once.
type Engine struct {
	kernels
	id      curve.ID
	workers int
	vectors bool
	chosen  bool // vectors was set by an option
}

// Option sets how an Engine works.
type Option func(*Engine)

// Workers sets how many goroutines a call uses; n ≤ 0 means GOMAXPROCS, the default.
func Workers(n int) Option { return func(e *Engine) { e.workers = n } }

// Vectors says whether AVX-512 IFMA kernels may be used where the processor has
// them; they are by default, or as [VectorsEnv] says. Either way each operation
// is given to them from the size on from which they were measured to be faster.
func Vectors(on bool) Option { return func(e *Engine) { e.vectors, e.chosen = on, true } }

// VectorsEnv is the environment variable that decides about vector kernels
// where no option does: "on" forces them, and [New] fails on a processor without
// AVX-512 IFMA; "off" forces the portable code; "" and "auto" take what
// there is.
const VectorsEnv = "SNARKLINE_VECTORS"

// fromEnv reads VectorsEnv, unless an option has decided.
func (e *Engine) fromEnv() error {
	if e.chosen {
		return nil
	}
	switch v := os.Getenv(VectorsEnv); v {
	case "", "auto":
	case "off":
		e.vectors = false
	case "on":
		if !ifma.Available() {
			return fmt.Errorf("%s=on: this processor has no AVX-512 IFMA", VectorsEnv)
		}
	default:
		return fmt.Errorf("%s=%q: want on, off or auto", VectorsEnv, v)
	}
	return nil
}

// HasVectors reports whether this processor has what the vector kernels need:
// AVX-512 F, DQ, VL, IFMA and VBMI2.
func HasVectors() bool { return ifma.Available() }

// UsesVectors reports whether large operations of e are done by vector kernels.
func (e *Engine) UsesVectors() bool { return e.vectors && ifma.Available() }

// New makes the arithmetic for a curve. It keeps the twiddles of the last two
// domains that it did transforms over (2 MiB each at 2^20, growing with the
// square root; without vector kernels 32 MiB for one domain of 2^20, in
// proportion below, and nothing above), holds no other memory to speak of, and
// needs no closing.
func New(id curve.ID, opts ...Option) (*Engine, error) {
	e, _, err := newEngine(id, opts...)
	return e, err
}

func newEngine(id curve.ID, opts ...Option) (*Engine, *semaphore.Weighted, error) {
	e := &Engine{id: id, vectors: true}
	for _, o := range opts {
		o(e)
	}
	if err := e.fromEnv(); err != nil {
		return nil, nil, fmt.Errorf("arithmetic on the CPU: %w", err)
	}
	if e.workers <= 0 {
		e.workers = runtime.GOMAXPROCS(0)
	}
	turn := semaphore.NewWeighted(1)
	switch id {
	case curve.BLS12381:
		e.kernels = bls12381.New(e.workers, turn, e.vectors)
	case curve.BN254:
		e.kernels = bn254.New(e.workers, turn, e.vectors)
	default:
		return nil, nil, fmt.Errorf("arithmetic on the CPU: %v is not a known curve", id)
	}
	return e, turn, nil
}

// Name is "cpu".
func (e *Engine) Name() string { return "cpu" }

// Curve is the curve whose arithmetic this is.
func (e *Engine) Curve() curve.ID { return e.id }

// NumWorkers is how many goroutines a call uses.
func (e *Engine) NumWorkers() int { return e.workers }
