package web

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/snarkline/snarkline/live"
)

// frame is one state of the run, encoded once for all viewers.
type frame struct {
	data []byte
	from uint64 // the first point of the history that is in it
	to   uint64 // the one after the last
	last bool   // the run, or the server, has ended
}

// update is what a frame says.
type update struct {
	*live.Snapshot
	First  uint64       `json:"first"` // number of the first of New
	New    []live.Point `json:"new"`
	Closed bool         `json:"closed"` // nothing more comes
}

// hub makes a frame at each interval while there are viewers.
type hub struct {
	state    *live.State
	interval time.Duration
	quit     chan struct{}
	once     sync.Once
	ended    sync.WaitGroup

	mu      sync.Mutex
	viewers int
	newest  *frame
	next    chan struct{} // closed when newest is replaced
	wake    chan struct{} // there is a first viewer
}

func newHub(state *live.State, interval time.Duration) *hub {
	return &hub{state: state, interval: interval, quit: make(chan struct{}), next: make(chan struct{}), wake: make(chan struct{}, 1)}
}

func (h *hub) start() {
	h.ended.Add(1)
	go h.run()
}

func (h *hub) run() {
	defer h.ended.Done()
	tick := time.NewTicker(h.interval)
	defer tick.Stop()
	for {
		select {
		case <-h.quit:
			h.publish(true)
			return
		case <-tick.C:
		case <-h.wake:
		}
		h.mu.Lock()
		idle := h.viewers == 0
		h.mu.Unlock()
		if !idle {
			h.publish(false)
		}
	}
}

// stop publishes the last frame.
func (h *hub) stop() {
	h.once.Do(func() { close(h.quit) })
	h.ended.Wait()
}

func (h *hub) publish(last bool) {
	h.mu.Lock()
	since := uint64(0)
	if h.newest != nil {
		since = h.newest.to
	}
	h.mu.Unlock()
	snap := h.state.Snapshot()
	points, first := h.state.History(since)
	f := &frame{from: first, to: first + uint64(len(points)), last: last}
	// A snapshot holds nothing that cannot be encoded but a rate that is no
	// number; then viewers wait for the next one.
	data, err := json.Marshal(update{snap, first, points, last})
	if err != nil {
		return
	}
	f.data = data
	h.mu.Lock()
	h.newest = f
	close(h.next)
	h.next = make(chan struct{})
	h.mu.Unlock()
}

// join counts a viewer; it reports false if there are too many.
func (h *hub) join(limit int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.viewers >= limit {
		return false
	}
	h.viewers++
	select {
	case h.wake <- struct{}{}:
	default:
	}
	return true
}

func (h *hub) leave() {
	h.mu.Lock()
	h.viewers--
	h.mu.Unlock()
}

// now is the newest frame, nil before the first, and what is closed when there
// is another.
func (h *hub) now() (*frame, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newest, h.next
}
