package kernels

import (
	"fmt"
	"unsafe"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// SumPlan is how a plain sum of listed points is made.
type SumPlan struct {
	N       int   // points at most
	Scratch int64 // bytes of device memory
	Out     int64 // bytes of pinned host memory

	threads  int // each adds up a share of the points
	partials int // then sums of sumShare of those, a warp each
	results  int // then sums of 32 of those: the host adds them
	point    int
	at       struct{ first, second, third int64 }
}

const (
	sumShare  = 64 // partial sums that a warp adds up first
	sumLeast  = 8  // points of a thread, at least, before more threads are used
	sumSecond = 32
)

// SumPlan is the plan for sums of n points at most.
func (m *MSM) SumPlan(n int) SumPlan { return PlanSum(m.set.dev.Info().SMs, m.set.id, m.g, n) }

// PlanSum is SumPlan for a device of so many SMs.
func PlanSum(sms int, id curve.ID, g curve.Group, n int) SumPlan {
	s := shapeOf(id, g)
	p := SumPlan{N: n, point: 2 * id.PointBytes(g)}
	most := max(sms, 1) * s.threads * s.blocks
	p.threads = min((n/sumLeast/s.threads+1)*s.threads, most)
	p.partials = (p.threads + sumShare - 1) / sumShare
	p.results = (p.partials + sumSecond - 1) / sumSecond
	var end int64
	room := func(count int) int64 {
		at := end
		end = (at + int64(count)*int64(p.point) + 255) &^ 255
		return at
	}
	p.at.first, p.at.second, p.at.third = room(p.threads), room(p.partials), room(p.results)
	p.Scratch = end
	p.Out = int64(p.results * p.point)
	return p
}

// Sum queues the sum of points[list[i]] for i < *count, and its copy to out,
// p.Out bytes of pinned host memory. list and count are uint32 on the device;
// count may be 0: most points then, and one above most ends the context with an
// error. scratch has p.Scratch bytes, 256-byte aligned. SumValue1 or SumValue2 gives the sum once the stream got there.
func (m *MSM) Sum(st gpu.Stream, a *gpu.Args, p SumPlan, points, list, count gpu.Ptr, most int, scratch gpu.Ptr, out unsafe.Pointer) error {
	if most < 0 || most > p.N {
		return fmt.Errorf("sum %d points in %v with a plan for %d", most, m.g, p.N)
	}
	if list == 0 && most > 0 {
		return fmt.Errorf("sum %d points in %v of no list", most, m.g)
	}
	s := shapeOf(m.set.id, m.g)
	first, second, third := scratch+gpu.Ptr(p.at.first), scratch+gpu.Ptr(p.at.second), scratch+gpu.Ptr(p.at.third)
	l := gpu.Linear(int64(p.threads), uint32(s.threads))
	l.Shared = uint32(s.threads * s.adder)
	err := m.k.sumPoints(st, l, a, points, list, count, uint32(most), first)
	if err == nil {
		err = m.k.sumFold(st, gpu.Linear(int64(p.partials)*32, 64), a, first, uint32(p.threads), sumShare, 0, second)
	}
	if err == nil {
		err = m.k.sumFold(st, gpu.Linear(int64(p.results)*32, 64), a, second, uint32(p.partials), sumSecond, 1, third)
	}
	if err == nil {
		err = st.CopyOut(out, third, p.Out)
	}
	if err != nil {
		return fmt.Errorf("queue a sum of %d points in %v: %w", most, m.g, err)
	}
	return nil
}
