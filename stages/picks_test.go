package stages_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// mixed is a witness of n wires, of which others are neither 0 nor 1, spread
// evenly; of the rest every fifth is 1. Small others have 64 bits.
func mixed(id curve.ID, n, others int, small bool) []curve.Scalar {
	r := rand.New(rand.NewPCG(uint64(n), uint64(others)))
	one, v := scalar(id, big.NewInt(1)), new(big.Int)
	w := make([]curve.Scalar, n)
	for i := range w {
		switch {
		case i*others/n != (i+1)*others/n:
			v.SetUint64(r.Uint64() | 2)
			if !small { // as good as any of full length
				v.Mod(v.Exp(v, big.NewInt(5), nil), id.ScalarModulus())
			}
			w[i] = scalar(id, v)
		case i%5 == 0:
			w[i] = one
		}
	}
	return w
}

// padded is a prover whose queries have n points, those of p's key over and
// over: proofs of it are worth nothing, but they take the memory of n points.
func padded(p *stages.Prover, n int) *stages.Prover {
	key := &groth16.ProvingKey{Curve: p.Key.Curve, Domain: p.Key.Domain, NbWires: n, NbPublic: p.Key.NbPublic}
	query := func(from curve.Query) curve.Query {
		points := from.Points
		data := points.Data
		points.Data = make([]byte, 0, n*points.Curve.PointBytes(points.Group))
		for len(points.Data) < cap(points.Data) {
			points.Data = append(points.Data, data[:min(len(data), cap(points.Data)-len(points.Data))]...)
		}
		return curve.Query{Points: points}
	}
	key.L, key.A, key.B1, key.B2 = query(p.Key.L), query(p.Key.A), query(p.Key.B1), query(p.Key.B2)
	return &stages.Prover{Key: key, Circuit: p.Circuit}
}

// TestNeedsOfPicks: what batch-add, tail-msm and b_g2_msm state holds for a
// witness with any number of zeros and ones, so for picks of any length: the
// sum of fewer points must not take more scratch than was stated for all.
// Windows make steps in what a sum takes, and the size here lies right above
// one of them. batch-add with tail-msm, and b_g2_msm, are each alone with
// the witness, so that no other stage's reservation makes up for what they lack.
func TestNeedsOfPicks(t *testing.T) {
	const wires = 5470
	for _, c := range []struct {
		id      curve.ID
		workers int
		vectors bool
	}{
		{curve.BLS12381, 1, false}, {curve.BLS12381, 2, false}, {curve.BLS12381, 4, false},
		{curve.BN254, 2, false}, {curve.BN254, 2, true},
	} {
		t.Run(fmt.Sprintf("%v/%d workers/vectors %v", c.id, c.workers, c.vectors), func(t *testing.T) {
			small, _ := newProver(t, c.id, 64, 40, folded)
			p := padded(small, wires)
			var err error
			if p.Arith, err = cpu.New(c.id, cpu.Workers(c.workers), cpu.Vectors(c.vectors)); err != nil {
				t.Fatal(err)
			}
			var jobs []stages.Job
			for i := 0; i <= 8; i++ {
				n := wires * i / 8
				jobs = append(jobs, stages.Job{Key: pipeline.Key{Part: n}, Input: mixed(c.id, wires, n, i%4 == 2)})
			}
			if alloc.Debug {
				jobs = jobs[2:4]
			}
			leakFree(t)
			for _, p.MinOnes = range []float64{-1, 2} {
				within(t, jobs, p, func(w *pipeline.Port[*groth16.Assignment]) {
					drain(pipeline.Via(pipeline.Via(w, stages.BatchAdd(p)), stages.TailMSM(p)))
				})
			}
			within(t, jobs, p, func(w *pipeline.Port[*groth16.Assignment]) {
				drain(pipeline.Via(w, stages.BG2MSM(p)))
			})
		})
	}
}

func drain[T any](p *pipeline.Port[T]) {
	pipeline.ToFunc(p, func(context.Context, pipeline.Key, T) error { return nil })
}

// within runs the jobs through the stages that build puts behind a witness,
// under a budget of what one job states.
func within(t *testing.T, jobs []stages.Job, p *stages.Prover, build func(*pipeline.Port[*groth16.Assignment])) {
	t.Helper()
	run := func(budget int64) error {
		g := pipeline.New("picks", pipeline.Budget(alloc.Host, budget))
		source := pipeline.FromSlice(g, jobs, func(j stages.Job) pipeline.Key { return j.Key })
		build(pipeline.Via(source, witnessOnly(p)))
		_, err := g.Run(context.Background())
		return err
	}
	var refused *pipeline.AdmitError
	if err := run(1); !errors.As(err, &refused) {
		t.Fatalf("a budget of one byte: %v", err)
	}
	if err := run(refused.Need[alloc.Host]); err != nil {
		t.Error(err)
	}
}

// witnessOnly is a synthesize that gives the witness it gets, and no evaluations.
func witnessOnly(p *stages.Prover) pipeline.Stage[stages.Job, *groth16.Assignment] {
	s := pipeline.NewStage(stages.NameSynthesize, func(ctx context.Context, j stages.Job) (*groth16.Assignment, error) {
		w, err := alloc.Make[curve.Scalar](alloc.ScopeOf(ctx), p.Key.NbWires, alloc.Witness, alloc.Secret|alloc.Dirty)
		if err != nil {
			return nil, err
		}
		copy(w.Slice(), j.Input.([]curve.Scalar))
		return &groth16.Assignment{W: w}, nil
	})
	return pipeline.WithNeeds(s, func(any) pipeline.Need {
		return pipeline.Need{Makes: []pipeline.Part{{Name: stages.PartW, Bytes: alloc.HostBytes(int64(p.Key.NbWires) * curve.ScalarBytes)}}}
	})
}
