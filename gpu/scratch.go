package gpu

import (
	"errors"
	"fmt"

	"github.com/snarkline/snarkline/alloc"
)

// Scratch is memory of the stream-ordered pool, for the work of one worker's
// stream, counted in the device's space until the stream is past it.
type Scratch struct {
	Ptr    Ptr
	card   *Card
	stream Stream
	charge *alloc.Charge
	bytes  int64
}

// Scratch takes n bytes for what is queued on the worker's stream from now on
// until Free, counted as foreign memory of sc's stage in the device's space and
// drawn from sc's reservation. Where there is none, the stream is waited for,
// both pools are trimmed, and it is asked for once more. n = 0 is no memory.
func (w *Worker) Scratch(sc *alloc.Scope, n int64, p alloc.Purpose) (*Scratch, error) {
	charge, err := alloc.Foreign(sc.In(w.card.Space()), p, n)
	if err != nil {
		return nil, err
	}
	s := &Scratch{card: w.card, stream: w.stream, charge: charge, bytes: n}
	if n == 0 {
		return s, nil
	}
	s.Ptr, err = w.stream.AllocAsync(n)
	if errors.Is(err, ErrNoMemory) {
		// What this stream gave back is free once it got there; what alloc's
		// pool keeps, this pool cannot see.
		if err = w.stream.Sync(); err == nil {
			if err = trim(w.card.Device); err == nil {
				s.Ptr, err = w.stream.AllocAsync(n)
			}
		}
	}
	if err != nil {
		charge.Release()
		return nil, fmt.Errorf("stage %v: take %s of scratch on %s: %w", sc.Stage(), size(n), w.card.Name(), err)
	}
	return s, nil
}

// Bytes is the size.
func (s *Scratch) Bytes() int64 { return s.bytes }

// Free gives the memory back after what is queued now. It does not wait. A
// second Free does nothing.
func (s *Scratch) Free() error {
	if s == nil || s.charge == nil {
		return nil
	}
	charge := s.charge
	s.charge = nil
	if s.Ptr == 0 {
		charge.Release()
		return nil
	}
	err := s.stream.FreeAsync(s.Ptr)
	s.card.Reaper.After(s.stream, nil, charge)
	if err != nil && !isGone(err) {
		return fmt.Errorf("give back %s of scratch on %s: %w", size(s.bytes), s.card.Name(), err)
	}
	return nil
}
