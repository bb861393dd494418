package stages_test

import (
	"context"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// faulty is an Arithmetic that can be made to wait, fail or lie. before is
// called first with the stage, the method and the job's part: an error of it is
// the method's, unless lie says that the method is to return zeros and no
// error, as a processor does whose status nobody looks at.
type faulty struct {
	groth16.Arithmetic
	before func(ctx context.Context, stage, op string, part int) error
	lie    bool
	after  func(stage, op string, sum any) // may change a *curve.G1, *curve.G2 or []curve.Scalar
}

func (f *faulty) enter(ctx context.Context, op string) (skip bool, err error) {
	if f.before == nil {
		return false, nil
	}
	err = f.before(ctx, pipeline.StageOf(ctx), op, pipeline.KeyOf(ctx).Part)
	if err != nil && f.lie {
		return true, nil
	}
	return err != nil, err
}

func (f *faulty) leave(ctx context.Context, op string, sum any) {
	if f.after != nil {
		f.after(pipeline.StageOf(ctx), op, sum)
	}
}

func (f *faulty) Evaluate(ctx context.Context, m curve.Matrix, w, out []curve.Scalar) error {
	if skip, err := f.enter(ctx, "Evaluate"); skip {
		return err
	}
	return f.Arithmetic.Evaluate(ctx, m, w, out)
}

func (f *faulty) Quotient(ctx context.Context, sc *alloc.Scope, d curve.Domain, basis curve.Basis, a, b, c []curve.Scalar) error {
	if skip, err := f.enter(ctx, "Quotient"); skip {
		return err
	}
	err := f.Arithmetic.Quotient(ctx, sc, d, basis, a, b, c)
	f.leave(ctx, "Quotient", a)
	return err
}

func (f *faulty) Classify(ctx context.Context, w []curve.Scalar, out []curve.Class) (curve.Counts, error) {
	if skip, err := f.enter(ctx, "Classify"); skip {
		return curve.Counts{}, err
	}
	return f.Arithmetic.Classify(ctx, w, out)
}

func (f *faulty) SumG1(ctx context.Context, sc *alloc.Scope, q curve.Query, classes []curve.Class) (sum curve.G1, err error) {
	if skip, err := f.enter(ctx, "SumG1"); skip {
		return sum, err
	}
	sum, err = f.Arithmetic.SumG1(ctx, sc, q, classes)
	f.leave(ctx, "SumG1", &sum)
	return sum, err
}

func (f *faulty) MSMG1(ctx context.Context, sc *alloc.Scope, q curve.Query, w []curve.Scalar, pick []uint32) (sum curve.G1, err error) {
	if skip, err := f.enter(ctx, "MSMG1"); skip {
		return sum, err
	}
	sum, err = f.Arithmetic.MSMG1(ctx, sc, q, w, pick)
	f.leave(ctx, "MSMG1", &sum)
	return sum, err
}

func (f *faulty) MSMG2(ctx context.Context, sc *alloc.Scope, q curve.Query, w []curve.Scalar, pick []uint32) (sum curve.G2, err error) {
	if skip, err := f.enter(ctx, "MSMG2"); skip {
		return sum, err
	}
	sum, err = f.Arithmetic.MSMG2(ctx, sc, q, w, pick)
	f.leave(ctx, "MSMG2", &sum)
	return sum, err
}

// ops is one method of the arithmetic for each stage that calls it.
var ops = []struct{ stage, op string }{
	{"synthesize", "Evaluate"},
	{"ntt", "Quotient"},
	{"h-msm", "MSMG1"},
	{"batch-add", "Classify"},
	{"batch-add", "SumG1"},
	{"tail-msm", "MSMG1"},
	{"b_g2_msm", "MSMG2"},
}
