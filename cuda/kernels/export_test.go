package kernels

import (
	"unsafe"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// MarkPhases has f called when a phase of the run is queued.
func (r *Run) MarkPhases(f func(phase string) error) { r.mark = f }

// PlanWindows is a plan for windows of c bits and passes of n terms.
func (m *MSM) PlanWindows(n, c int) (Plan, error) {
	return planMSM(m.set.dev.Info().SMs, m.set.id, m.g, n, c)
}

// PlanSegments is the same with tasks of lmax points and segments of size buckets.
func (m *MSM) PlanSegments(n, c, lmax, size int) (Plan, error) {
	return planSegments(m.set.dev.Info().SMs, m.set.id, m.g, n, c, lmax, size)
}

// Segment is the number of buckets of a segment.
func (p *Plan) Segment() int { return p.segment }

// Functions are kernels of the group whose registers matter.
func (m *MSM) Functions() ([]gpu.Function, error) {
	if m.g == curve.InG1 {
		k, err := m.set.G1Kernels()
		if err != nil {
			return nil, err
		}
		return []gpu.Function{k.g1AccumulateKernel, k.g1SegmentsKernel, k.g1LinesKernel, k.g1BitsKernel, k.g1HeavyGroupsKernel, k.g1SumPointsKernel, k.g1SumFoldKernel}, nil
	}
	k, err := m.set.G2Kernels()
	if err != nil {
		return nil, err
	}
	return []gpu.Function{k.g2AccumulateKernel, k.g2SegmentsKernel, k.g2LinesKernel, k.g2BitsKernel, k.g2HeavyGroupsKernel, k.g2SumPointsKernel, k.g2SumFoldKernel}, nil
}

// AffineOf is a sum in the kernels' form, canonical, as an affine point.
func (m *MSM) AffineOf(sum []byte) []byte {
	p := SumPlan{results: 1}
	at := unsafe.Pointer(&sum[0])
	if m.g == curve.InG1 {
		v := m.SumValue1(p, at)
		return curve.Bytes(v[:])[:m.set.id.PointBytes(m.g)]
	}
	v := m.SumValue2(p, at)
	return curve.Bytes(v[:])[:m.set.id.PointBytes(m.g)]
}
