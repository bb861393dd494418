package stages

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// purposePick are the indices of the points that are left to tail-msm.
var purposePick = alloc.PurposeOf("pick")

type batchAddStage = pipeline.Stage[*groth16.Assignment, *Split]

// BatchAdd classifies the witness once for the queries L, A and B1, adds the
// points whose scalar is 1, and picks for tail-msm those whose scalar is
// neither 0 nor 1. A witness with a smaller share of ones than the prover's
// MinOnes is handed on whole.
func BatchAdd(p *Prover) pipeline.Stage[*groth16.Assignment, *Split] {
	return &stage[*groth16.Assignment, *Split]{
		name:  NameBatchAdd,
		needs: p.needBatchAdd,
		uses:  func(a *groth16.Assignment) []alloc.Ref { return refs(a.W) },
		run:   p.batchAdd,
	}
}

func (p *Prover) batchAdd(ctx context.Context, a *groth16.Assignment) (*Split, error) {
	if a.W == nil {
		return nil, fmt.Errorf("classify: %w", errNoInput)
	}
	scope := alloc.ScopeOf(ctx)
	w := a.W.Slice()
	classes, err := alloc.Make[curve.Class](scope, len(w), alloc.Scratch, alloc.Secret|alloc.Dirty)
	if err != nil {
		return nil, fmt.Errorf("classes of %d scalars: %w", len(w), err)
	}
	defer classes.Release()
	counts, err := p.Arith.Classify(ctx, w, classes.Slice())
	if err != nil {
		return nil, fmt.Errorf("classify %d scalars: %w", len(w), err)
	}

	out := &Split{
		Small: Small{
			Public:        append([]curve.Scalar(nil), w[1:1+p.Key.NbPublic]...),
			Commitments:   a.Commitments,
			CommitmentPok: a.CommitmentPok,
		},
		W:      a.W,
		Counts: counts,
		Whole:  float64(counts[curve.One]) < p.minOnes()*float64(len(w)),
	}
	out.W.Retain()
	if out.Whole {
		return out, nil
	}
	if err := p.split(ctx, out, classes.Slice()); err != nil {
		for _, b := range out.Buffers() {
			b.Release()
		}
		return nil, err
	}
	return out, nil
}

// split fills the sums and picks of out. On an error out holds what was made.
func (p *Prover) split(ctx context.Context, out *Split, classes []curve.Class) error {
	scope := alloc.ScopeOf(ctx)
	room, err := alloc.Make[uint32](scope, max(p.Key.L.Len(), p.Key.A.Len(), p.Key.B1.Len()),
		alloc.Scratch, alloc.Secret|alloc.Dirty)
	if err != nil {
		return fmt.Errorf("room for picks: %w", err)
	}
	defer room.Release()
	for _, q := range []struct {
		name  string
		query curve.Query
		ones  *curve.G1
		tail  **alloc.Buffer[uint32]
	}{
		{"L", p.Key.L, &out.LOnes, &out.LTail},
		{"A", p.Key.A, &out.AOnes, &out.ATail},
		{"B1", p.Key.B1, &out.B1Ones, &out.B1Tail},
	} {
		if *q.ones, err = p.Arith.SumG1(ctx, scope, q.query, classes); err != nil {
			return fmt.Errorf("sum the ones of %s: %w", q.name, err)
		}
		p.Key.Rest(q.query.Points)
		n, err := p.Arith.Tail(ctx, q.query, classes, room.Slice())
		if err != nil {
			return fmt.Errorf("pick the tail of %s: %w", q.name, err)
		}
		if *q.tail, err = alloc.Make[uint32](scope, n, purposePick, alloc.Secret|alloc.Dirty); err != nil {
			return fmt.Errorf("%d picks of %s: %w", n, q.name, err)
		}
		copy((*q.tail).Slice(), room.Slice()[:n])
	}
	return nil
}
