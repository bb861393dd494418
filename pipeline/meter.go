package pipeline

import (
	"sync/atomic"

	"github.com/snarkline/snarkline/alloc"
)

// meter counts bytes by space, with their peaks.
type meter struct {
	now, peak [alloc.MaxSpaces]atomic.Int64
}

func (m *meter) add(h *hold) {
	for i := range h.len() {
		r := h.at(i)
		s := r.Space()
		if !s.Valid() {
			continue
		}
		raise(&m.peak[s], m.now[s].Add(r.Bytes()))
	}
}

func (m *meter) sub(h *hold) {
	for i := range h.len() {
		m.subRef(h.at(i))
	}
}

func (m *meter) subRef(r alloc.Ref) {
	if s := r.Space(); s.Valid() {
		m.now[s].Add(-r.Bytes())
	}
}

func (m *meter) level() (l Level) {
	for i := range m.now {
		l.Now[i], l.Peak[i] = m.now[i].Load(), m.peak[i].Load()
	}
	return l
}

// raise makes peak at least v.
func raise(peak *atomic.Int64, v int64) {
	for p := peak.Load(); v > p; p = peak.Load() {
		if peak.CompareAndSwap(p, v) {
			return
		}
	}
}
