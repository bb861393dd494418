package stages

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// TailMSM adds to batch-add's sums what the other scalars contribute: three
// multi-scalar multiplications, one after another.
func TailMSM(p *Prover) pipeline.Stage[*Split, *WireSums] {
	return &stage[*Split, *WireSums]{
		p:     p,
		name:  NameTailMSM,
		needs: p.needTailMSM,
		uses:  func(s *Split) []alloc.Ref { return s.Buffers() },
		run:   watched(p, NameTailMSM, p.tailMSM),
	}
}

func (p *Prover) tailMSM(ctx context.Context, s *Split) (*WireSums, error) {
	if s.Held == nil {
		return nil, fmt.Errorf("sums of the witness: %w", errNoInput)
	}
	st, scope := p.staging(ctx), alloc.ScopeOf(ctx)
	out := &WireSums{Small: s.Small, Counts: s.Counts}
	for _, q := range p.wireQueries() {
		sum, err := st.SumOthers(ctx, scope, q.query, s.Held)
		p.Key.Rest(q.query.Points)
		if err != nil {
			return nil, fmt.Errorf("sum of %s: %w", q.name, err)
		}
		if *q.sum(out), err = addG1(p.Key.Curve, sum, *q.ones(s)); err != nil {
			return nil, fmt.Errorf("sum of %s: %w", q.name, err)
		}
	}
	return out, nil
}
