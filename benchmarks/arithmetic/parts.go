package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
)

var errDiffer = errors.New("the results differ")

// scalarKinds are the scalars of sums: uniform; one value for all; all 1; 55%
// zeros, 30% ones, the rest uniform.
var scalarKinds = []string{"random", "equal", "ones", "bits"}

func scalars(p peer, kind string, n int) []curve.Scalar {
	w := make([]curve.Scalar, n)
	one, value := p.scalar(1), p.random()
	for i := range w {
		switch {
		case kind == "random":
			w[i] = p.random()
		case kind == "equal":
			w[i] = value
		case kind == "ones", i*37%100 >= 55 && i*37%100 < 85:
			w[i] = one
		case i*37%100 >= 85:
			w[i] = p.random()
		}
	}
	return w
}

// fields compares products of vectors that stay in the first-level cache, on
// one thread: throughput, not latency.
func (b *bench) fields(context.Context) error {
	const n, times = 128, 4000
	for _, id := range b.curves {
		for _, pf := range peerOf(id).fields {
			f, err := cpu.NewField(id, pf.base)
			if err != nil {
				return err
			}
			x, y := make([]byte, n*pf.size), make([]byte, n*pf.size)
			for i := range n {
				for j := range 31 { // below the prime, which is longer than 248 bits
					x[i*pf.size+j], y[i*pf.size+j] = byte(i*j+7), byte(i+j*j+1)
				}
			}
			z, got := make([]byte, len(x)), make([]byte, len(x))
			vx, vy, vz := make([]uint64, f.Words(n)), make([]uint64, f.Words(n)), make([]uint64, f.Words(n))
			if err := errors.Join(f.Load(vx, x), f.Load(vy, y), f.Mul(vz, vx, vy), f.Store(got, vz)); err != nil {
				return err
			}
			if pf.mul(z, x, y); !bytes.Equal(z, got) {
				return fmt.Errorf("%v %s: %w", id, pf.name, errDiffer)
			}
			ours := func() error {
				for range times {
					if err := f.Mul(vz, vx, vy); err != nil {
						return err
					}
				}
				return nil
			}
			theirs := func(mul func(z, x, y []byte)) func() error {
				return func() error {
					for range times {
						mul(z, x, y)
					}
					return nil
				}
			}
			name := fmt.Sprintf("%v %s product", id, pf.name)
			if err := b.compare(name, 1, b.rounds, n*times, 0.22, theirs(pf.mul), ours); err != nil {
				return err
			}
			if pf.vector == nil {
				continue
			}
			if err := b.compare(name+", Vector.Mul", 1, b.rounds, n*times, 0, theirs(pf.vector), ours); err != nil {
				return err
			}
		}
	}
	return nil
}

// msmBar is what a sum may take of gnark-crypto's time.
func msmBar(id curve.ID, g curve.Group, kind string) float64 {
	switch {
	case kind != "random":
		return 0.45
	case id == curve.BN254:
		return 0.35
	case g == curve.InG2:
		return 0.28
	}
	return 0.26
}

func (b *bench) msm(ctx context.Context) error {
	return b.sums(ctx, b.kinds, true, msmBar)
}

func (b *bench) sums(ctx context.Context, kinds []string, vectors bool, bar func(curve.ID, curve.Group, string) float64) error {
	for _, log := range b.logs {
		for _, id := range b.curves {
			for _, g := range b.groups {
				p := peerOf(id)
				points, release, err := offHeap(ctx, p.points(g, 1<<log))
				if err != nil {
					return err
				}
				for _, kind := range kinds {
					w := scalars(p, kind, 1<<log)
					for _, threads := range b.threads {
						s := sum{p, id, g, points, w, threads, vectors}
						name := fmt.Sprintf("%v %v sum 2^%d %s%s", id, g, log, kind, mark(vectors))
						if err := b.sum(ctx, name, s, bar(id, g, kind)); err != nil {
							release()
							return err
						}
					}
				}
				release()
			}
		}
	}
	return nil
}

// offHeap is a copy of points in memory of package alloc, where a prover has its
// key: in large pages, if the system gives them. Both sides read it there.
func offHeap(ctx context.Context, points []byte) ([]byte, func(), error) {
	buf, err := alloc.Make[byte](alloc.ScopeOf(ctx), len(points), alloc.Key, alloc.Dirty)
	if err != nil {
		return nil, nil, err
	}
	copy(buf.Slice(), points)
	return buf.Slice(), buf.Release, nil
}

func mark(vectors bool) string {
	if vectors {
		return ""
	}
	return ", no vectors"
}

// sum is one multi-scalar multiplication.
type sum struct {
	p       peer
	id      curve.ID
	g       curve.Group
	points  []byte
	w       []curve.Scalar
	threads int
	vectors bool
}

func (b *bench) sum(ctx context.Context, name string, s sum, bar float64) error {
	e, err := cpu.New(s.id, cpu.Workers(s.threads), cpu.Vectors(s.vectors))
	if err != nil {
		return err
	}
	q := curve.Query{Points: curve.Points{Curve: s.id, Group: s.g, Data: s.points}}
	var theirs, ours []byte
	err = b.compare(name, s.threads, b.rounds, 1, bar, func() (err error) {
		theirs, err = s.p.msm(s.g, s.points, s.w, s.threads)
		return err
	}, func() error {
		if s.g == curve.InG2 {
			r, err := e.MSMG2(ctx, alloc.ScopeOf(ctx), q, s.w, nil)
			ours = curve.Bytes([]curve.G2{r})
			return err
		}
		r, err := e.MSMG1(ctx, alloc.ScopeOf(ctx), q, s.w, nil)
		ours = curve.Bytes([]curve.G1{r})
		return err
	})
	if err == nil && !bytes.Equal(ours[:len(theirs)], theirs) {
		err = fmt.Errorf("%s: %w", name, errDiffer)
	}
	return err
}

func (b *bench) ntt(ctx context.Context) error {
	kinds := map[string]cpu.Transform{
		"forward": {}, "forward coset": {Coset: true, Reversed: true},
		"inverse": {Inverse: true}, "inverse coset": {Inverse: true, Coset: true},
	}
	return b.transforms(ctx, kinds, true, 0.33)
}

func (b *bench) transforms(ctx context.Context, kinds map[string]cpu.Transform, vectors bool, bar float64) error {
	names := make([]string, 0, len(kinds))
	for k := range kinds {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, log := range b.logs {
		for _, id := range b.curves {
			p := peerOf(id)
			d, theirs := p.domain(log)
			first := scalars(p, "random", 1<<log)
			x, y := slices.Clone(first), slices.Clone(first)
			for _, kind := range names {
				for _, threads := range b.threads {
					e, err := cpu.New(id, cpu.Workers(threads), cpu.Vectors(vectors))
					if err != nil {
						return err
					}
					name := fmt.Sprintf("%v transform 2^%d %s%s", id, log, kind, mark(vectors))
					// Each goes on with its own results, so at the end they have to be the same.
					err = b.compare(name, threads, b.rounds, 1, bar, func() error {
						theirs(x, kinds[kind], threads)
						return nil
					}, func() error { return e.Transform(ctx, alloc.ScopeOf(ctx), d, kinds[kind], y) })
					if err == nil && !slices.Equal(x, y) {
						err = fmt.Errorf("%s: %w", name, errDiffer)
					}
					if err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// portable measures the code for processors without vector kernels: it must
// not be slower than gnark-crypto by more than 5%.
func (b *bench) portable(ctx context.Context) error {
	if err := b.sums(ctx, []string{"random", "bits"}, false, func(curve.ID, curve.Group, string) float64 { return 1.05 }); err != nil {
		return err
	}
	return b.transforms(ctx, map[string]cpu.Transform{
		"forward": {}, "forward coset": {Coset: true, Reversed: true}, "inverse": {Inverse: true}, "inverse coset": {Inverse: true, Coset: true},
	}, false, 1.05)
}
