package gpu

import (
	"errors"
	"fmt"
	"sync"
)

// Selection spreads items over devices. An item is told by a key and stays on
// its device until it is dropped. A new one goes to a device that has none, if
// there is one, and otherwise round robin, so that over time each device gets
// items in proportion to its free memory. Failed devices get nothing, and what
// was on them goes to others when it is next asked for.
type Selection[K comparable] struct {
	mu    sync.Mutex
	list  []*choice
	items map[K]*choice
}

type choice struct {
	dev    Device
	items  int
	credit float64 // of smooth weighted round robin
	failed error
}

// NewSelection makes a selection among devices.
func NewSelection[K comparable](devs ...Device) *Selection[K] {
	s := &Selection[K]{items: make(map[K]*choice)}
	for _, d := range devs {
		s.list = append(s.list, &choice{dev: d})
	}
	return s
}

// Of is the device of an item, chosen now if it has none. The error is
// ErrNoDevice with the reason of each device that failed.
func (s *Selection[K]) Of(key K) (Device, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.items[key]
	if c != nil && c.failed == nil {
		return c.dev, nil
	}
	to, err := s.choose()
	if err != nil {
		return nil, err
	}
	if c != nil {
		c.items--
	}
	to.items++
	s.items[key] = to
	return to.dev, nil
}

// choose is smooth weighted round robin: each candidate earns its share, the
// richest is chosen and pays what all earned. Callers hold mu.
func (s *Selection[K]) choose() (*choice, error) {
	var errs []error
	var able, idle []*choice
	weight := make(map[*choice]float64)
	for _, c := range s.list {
		if c.failed != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name(c.dev), c.failed))
			continue
		}
		free, total, err := c.dev.Memory()
		if err != nil {
			// It may work again, after a Reset say; it is only passed over now.
			errs = append(errs, fmt.Errorf("%s: %w", name(c.dev), err))
			continue
		}
		// A full device gets a little: what fills it may be gone soon.
		weight[c] = float64(max(free, total/64, 1))
		able = append(able, c)
		if c.items == 0 {
			idle = append(idle, c)
		}
	}
	if len(idle) > 0 {
		able = idle
	}
	var best *choice
	var sum float64
	for _, c := range able {
		sum += weight[c]
	}
	for _, c := range able {
		c.credit += weight[c] / sum
		if best == nil || c.credit > best.credit {
			best = c
		}
	}
	if best == nil {
		return nil, fmt.Errorf("choose a device: %w", errors.Join(append([]error{ErrNoDevice}, errs...)...))
	}
	best.credit--
	return best, nil
}

// Drop forgets an item.
func (s *Selection[K]) Drop(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.items[key]; c != nil {
		c.items--
		delete(s.items, key)
	}
}

// Fail leaves a device out, because of err, until Restore.
func (s *Selection[K]) Fail(dev Device, err error) {
	if err == nil {
		err = ErrNoDevice
	}
	s.mark(dev, err)
}

// Restore takes a device in again.
func (s *Selection[K]) Restore(dev Device) { s.mark(dev, nil) }

func (s *Selection[K]) mark(dev Device, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.list {
		if c.dev == dev {
			c.failed, c.credit = err, 0
		}
	}
}

// Items is how many items each device has, in the order of NewSelection.
func (s *Selection[K]) Items() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]int, len(s.list))
	for i, c := range s.list {
		out[i] = c.items
	}
	return out
}
