package stages

import (
	"context"
	"fmt"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// BG2MSM is Σ wᵢ·Bᵢ(τ) in G2. It is off the critical path: it takes the
// witness straight from synthesize, and in the standard pipeline its queue has
// no bound of its own, so that it never holds up the next partition. What
// waits in the queue is bounded by admission to the pipeline. It may run on
// another processor than the other stages: see Prover.B2.
func BG2MSM(p *Prover) pipeline.Stage[*groth16.Assignment, B2Sum] {
	return &stage[*groth16.Assignment, B2Sum]{
		p:     p,
		name:  NameBG2MSM,
		needs: p.needBG2MSM,
		uses:  func(a *groth16.Assignment) []alloc.Ref { return refs(a.W) },
		run:   p.bg2msm,
	}
}

func (p *Prover) bg2msm(ctx context.Context, a *groth16.Assignment) (B2Sum, error) {
	if a.W == nil {
		return B2Sum{}, fmt.Errorf("sum of B2: %w", errNoInput)
	}
	ar, two := p.forB2(ctx)
	var host bool
	if two != nil {
		ar, host = two.pick(ctx)
		ar = memberOf(ctx, ar)
	}
	onDevice(ctx, ar)
	defer p.working(ctx, ar)()
	since := time.Now()
	b2, err := groth16.StagingOf(ar).SumB2(ctx, alloc.ScopeOf(ctx), p.Key.B2, a.W)
	p.Key.Rest(p.Key.B2.Points)
	if err != nil {
		return B2Sum{}, fmt.Errorf("sum of B2: %w", err)
	}
	if two != nil {
		two.took(host, time.Since(since))
	}
	return B2Sum{B2: b2, On: ar.Name()}, nil
}
