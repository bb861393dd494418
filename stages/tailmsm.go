package stages

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/pipeline"
)

// TailMSM adds to batch-add's sums what the other scalars contribute: three
// multi-scalar multiplications, one after another.
func TailMSM(p *Prover) pipeline.Stage[*Split, *WireSums] {
	return &stage[*Split, *WireSums]{
		name:  NameTailMSM,
		needs: p.needTailMSM,
		uses:  func(s *Split) []alloc.Ref { return s.Buffers() },
		run:   p.tailMSM,
	}
}

func (p *Prover) tailMSM(ctx context.Context, s *Split) (*WireSums, error) {
	if s.W == nil {
		return nil, fmt.Errorf("sums of the witness: %w", errNoInput)
	}
	out := &WireSums{Small: s.Small, Counts: s.Counts}
	for _, q := range []struct {
		name  string
		query curve.Query
		ones  curve.G1
		tail  *alloc.Buffer[uint32]
		sum   *curve.G1
	}{
		{"L", p.Key.L, s.LOnes, s.LTail, &out.L},
		{"A", p.Key.A, s.AOnes, s.ATail, &out.A},
		{"B1", p.Key.B1, s.B1Ones, s.B1Tail, &out.B1},
	} {
		var pick []uint32 // nil: every point
		if !s.Whole {
			if q.tail == nil {
				return nil, fmt.Errorf("sum of %s: %w", q.name, errNoInput)
			}
			if q.tail.Len() == 0 {
				*q.sum = q.ones
				continue
			}
			pick = q.tail.Slice()
		}
		sum, err := p.Arith.MSMG1(ctx, alloc.ScopeOf(ctx), q.query, s.W.Slice(), pick)
		p.Key.Rest(q.query.Points)
		if err != nil {
			return nil, fmt.Errorf("sum of %s: %w", q.name, err)
		}
		if *q.sum, err = addG1(p.Key.Curve, sum, q.ones); err != nil {
			return nil, fmt.Errorf("sum of %s: %w", q.name, err)
		}
	}
	return out, nil
}
