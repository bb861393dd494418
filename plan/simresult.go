package plan

import (
	"math"
	"slices"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/internal/rules"
)

// duration is seconds as a duration.
func duration(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds * float64(time.Second)))
}

// result is what the run came to.
func (e *engine) result() *Prediction {
	for s := range e.peaks.open {
		if e.peaks.open[s] {
			e.topped(alloc.Space(s))
		}
	}
	wall := e.now
	p := &Prediction{
		Wall: duration(wall), Items: e.answered, Failed: e.failed, PeakInFlight: e.inFlightPeak,
		Peak: e.peaks.top, Reserved: e.memory.reserved, Overdrawn: e.memory.overdrawn,
		Allocated: e.peaks.total, Killed: e.killed,
	}
	if e.err != nil {
		p.Err = e.err.Error()
	}
	if wall > 0 {
		p.Throughput = float64(e.answered) / wall
	}
	var stays, waits []float64
	for i := range e.its {
		it := &e.its[i]
		if it.in {
			waits = append(waits, it.admitted-it.arrived)
			if it.finished && !it.cut {
				stays = append(stays, it.leftAt-it.admitted)
			}
		}
	}
	p.Latency, p.Entry = latency(stays), latency(waits)
	for s := range e.peaks.top {
		if e.peaks.top[s] == 0 {
			continue
		}
		pk := Peak{Space: alloc.Space(s), At: duration(e.peaks.at[s]), Bytes: e.peaks.top[s], Shares: e.shares(e.peaks.rows[s])}
		p.Peaks = append(p.Peaks, pk)
	}
	for i := range e.nodes {
		p.Stages = append(p.Stages, e.stageResult(i))
	}
	p.Use = e.uses(wall)
	return p
}

func (e *engine) stageResult(i int) StagePrediction {
	e.count(i)
	s := &e.nodes[i]
	// What goes on when the run ends counts up to there.
	for k := range e.procs {
		pr := &e.procs[k]
		if int(pr.node) != i || e.p.rt.Nodes[i].Kind == rules.Source || int32(k) == s.emitter && e.p.t.Nodes[i].Ordered {
			continue
		}
		switch pr.state {
		case working, repeating:
			s.busy += e.now - pr.begin
		case wanting:
			s.busy += e.now - pr.begin
			s.wait += e.now - pr.since
		case pushing:
			s.out += e.now - pr.since
		}
	}
	r := s.stage
	r.Busy, r.WaitDevice, r.WaitOut = duration(s.busy), duration(s.wait), duration(s.out)
	if held := float64(s.workers) * e.now; held > 0 {
		r.WaitIn = duration(max(held-s.busy-s.out, 0))
		r.Use = s.busy / held
	}
	r.QueuePeak = max(s.q.Peak, s.j.Peak)
	if e.now > 0 {
		r.Queue = s.area / e.now
	}
	r.Made = s.made
	return r
}

func (e *engine) uses(wall float64) (out []Use) {
	part := func(f float64) float64 {
		if wall <= 0 || math.IsNaN(f) {
			return 0
		}
		return f / wall
	}
	m := &e.p.machine
	cores := m.Cores
	if cores == 0 {
		cores = e.coreMost
	}
	out = append(out, Use{"cores", "cores", 0})
	if cores > 0 {
		out[0].Fraction = part(e.coreUse / cores)
	}
	for i, l := range m.Links {
		out = append(out, Use{l.Name, "link", part(e.linkUse[i])})
	}
	for i, d := range m.Devices {
		out = append(out, Use{d.Name, "device", part(e.devices[i].use)})
	}
	return out
}

func latency(v []float64) (l Latency) {
	if len(v) == 0 {
		return l
	}
	slices.Sort(v)
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	at := func(q float64) time.Duration { return duration(v[min(int(math.Ceil(q*float64(len(v))))-1, len(v)-1)]) }
	return Latency{Mean: duration(sum / float64(len(v))), P50: at(0.5), P95: at(0.95), Max: duration(v[len(v)-1])}
}
