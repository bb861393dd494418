package cuda

import (
	"context"
	"fmt"
	"sync"

	"github.com/snarkline/snarkline/gpu"
)

// mark is a point that a stream will pass: an event that somebody else is still
// to record.
type mark struct {
	set  chan struct{} // closed when event is recorded, or err says why it never will be
	once sync.Once

	mu     sync.Mutex
	event  gpu.Event
	err    error
	closed bool
}

func newMark() *mark { return &mark{set: make(chan struct{})} }

// record makes an event and records it in st, or keeps err, which tells those
// who wait that the work before the mark failed.
func (m *mark) record(dev gpu.Device, st gpu.Stream, err error) error {
	m.once.Do(func() {
		var ev gpu.Event
		if err == nil {
			ev, err = dev.NewEvent(false)
		}
		if err == nil {
			err = st.Record(ev)
		}
		m.mu.Lock()
		m.event, m.err = ev, err
		if m.closed {
			m.free()
		}
		m.mu.Unlock()
		close(m.set)
	})
	return m.err
}

// wait waits on the host until the mark is recorded.
func (m *mark) wait(ctx context.Context) error {
	if m == nil {
		return nil
	}
	select {
	case <-m.set:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return lostError{fmt.Errorf("the copy of a vector failed: %w", m.err)}
	}
	return nil
}

// before makes the work that st gets from now on wait for the mark. The host
// waits only until the mark is recorded.
func (m *mark) before(ctx context.Context, st gpu.Stream) error {
	if m == nil {
		return nil
	}
	if err := m.wait(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.event == nil {
		return errReset
	}
	return st.Wait(m.event)
}

// close ends the event. A mark that is still to be recorded closes it then.
func (m *mark) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.closed = true
		m.free()
	}
}

func (m *mark) free() {
	if m.event != nil {
		_ = m.event.Close() // what cannot be closed ends with the context
		m.event = nil
	}
}
