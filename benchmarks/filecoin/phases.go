package main

import (
	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/plan"
)

// exclusive is a step that has the card for itself.
func exclusive(name string, seconds float64) plan.Step {
	return plan.Step{Name: name, Seconds: seconds, Cores: 1, Device: "gpu", Exclusive: true}
}

// onCores is a step on the host.
func onCores(name string, seconds, cores float64) plan.Step {
	return plan.Step{Name: name, Seconds: seconds, Cores: cores}
}

// worker is the engine with a card's worker of these steps and nothing to finish
// beside it: in phases before 12 the worker did all. What the card holds is told
// apart in card.go.
func (e engine) worker(steps ...plan.Step) engine {
	return e.with(map[string]plan.Node{"prove": {Steps: steps}, "finish": {}})
}

// phase2 makes ten partitions as one batch, an item being a proof: 54.7 s of
// synthesis on all cores, 34.0 s on the card. There are no compiled matrices, and
// an idle process has 45.0 GiB.
func phase2(e engine) engine {
	s := plan.Node{Steps: []plan.Step{onCores("synthesize", 54.7, 96)}}
	for _, b := range e.costs.Nodes["synthesize"].Makes {
		s.Makes = append(s.Makes, plan.Buffer{Name: b.Name, Bytes: perProof * b.Bytes, Readers: []plan.Reader{{Node: "prove"}}})
	}
	e = e.worker(exclusive("prove", 34.0)).with(map[string]plan.Node{"synthesize": s})
	return e.on(func(m *plan.Machine) { m.Base = alloc.HostBytes(45 * alloc.GiB) })
}

// phase7 has one worker that does 1.3 s on the host, 3.3 s on the card, and 0.7 s
// on the host again.
func phase7(e engine) engine {
	return e.worker(onCores("prepare", 1.3, 1), exclusive("card", 3.3), onCores("b_g2_msm, assemble", 0.7, 96))
}

// phase8 has the lock on the card's part alone, 3,746 ms.
func phase8(e engine) engine {
	return e.worker(onCores("prepare", 1.3, 1), exclusive("card", 3.746), onCores("b_g2_msm, assemble", 0.7, 96))
}

// phase9 prepares (1,909 ms) while ntt and h-msm (690 ms) run, and then adds (650)
// and sums the tail (83); b_g2_msm (484) is the worker's too, outside the lock.
func phase9(e engine) engine {
	return e.worker(exclusive("prepare; ntt, h-msm", 1.909), exclusive("batch-add", 0.650), exclusive("tail-msm", 0.083), onCores("b_g2_msm", 0.484, 96))
}
