package gpu

import (
	"errors"
	"fmt"
	"sync"

	"github.com/snarkline/snarkline/alloc"
)

// Card is a device with what a process keeps for it: the planner and the reaper,
// of which a device has one each, and the gate that lets a Reset wait for the
// device's workers.
type Card struct {
	Device
	Registry *Registry // shared with other cards
	Planner  *Planner
	Reaper   *Reaper

	providers *Providers

	mu        sync.Mutex
	idle      sync.Cond // running is 0, or resetting is over
	running   int       // functions on workers
	resetting bool
	closed    bool
	workers   []*Workers
	resets    int
}

// CardOptions are what a card can be told. The zero value will do.
type CardOptions struct {
	Registry  *Registry  // of all cards of the process; nil makes one
	Providers *Providers // renewed after a Reset; may be nil
	Margin    int64      // see NewPlanner; 0 is DefaultMargin, below 0 none
}

// NewCard makes the card of a device; there should be one for each.
func NewCard(dev Device, o CardOptions) *Card {
	if o.Registry == nil {
		o.Registry = NewRegistry()
	}
	switch {
	case o.Margin == 0:
		o.Margin = DefaultMargin
	case o.Margin < 0:
		o.Margin = 0
	}
	c := &Card{Device: dev, Registry: o.Registry, Planner: NewPlanner(dev, o.Margin), Reaper: NewReaper(dev), providers: o.Providers}
	c.idle.L = &c.mu
	return c
}

// Name is "cuda:0".
func (c *Card) Name() string { return name(c.Device) }

// enter lets a function run on a worker. While the context has ended it says
// why instead of waiting, so that functions that call others cannot be waited
// for by a Reset that they wait for.
func (c *Card) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return fmt.Errorf("a worker of %s: %w", c.Name(), ErrClosed)
	case c.resetting:
		return fmt.Errorf("a worker of %s: %w: it is being reset", c.Name(), ErrSticky)
	}
	if err := c.Sticky(); err != nil {
		return fmt.Errorf("a worker of %s: %w", c.Name(), stickyOf(err))
	}
	c.running++
	return nil
}

// stickyOf makes sure that ErrSticky is in the chain.
func stickyOf(err error) error {
	if errors.Is(err, ErrSticky) {
		return err
	}
	return errors.Join(ErrSticky, err)
}

func (c *Card) leave() {
	c.mu.Lock()
	if c.running--; c.running == 0 {
		c.idle.Broadcast()
	}
	c.mu.Unlock()
}

// Reset makes the device's context anew if it has ended, and does nothing if it
// has not, so everybody who met the sticky error may call it: the first does it
// and the others wait. It waits for the functions that run on workers (which
// fail soon), so none of those may call it; lets the reaper end all that waited
// for the device; and renews the providers. Workers make new streams by themselves.
//
// Where the device is lost to the process the error is a *LostError, for
// everybody at once: nothing is tried again.
func (c *Card) Reset() error {
	c.mu.Lock()
	for c.resetting {
		c.idle.Wait()
	}
	if c.closed {
		c.mu.Unlock()
		return fmt.Errorf("reset %s: %w", c.Name(), ErrClosed)
	}
	if err := c.Sticky(); err == nil || errors.Is(err, ErrLost) {
		c.mu.Unlock()
		return c.Lost()
	}
	c.resetting = true
	for c.running > 0 {
		c.idle.Wait()
	}
	c.mu.Unlock()

	c.Reaper.Flush()
	err := c.Device.Reset()
	if c.providers != nil {
		// Also where there is no new context: what the pools keep is gone.
		err = errors.Join(err, c.providers.Renew(c.Device))
	}
	if lost := c.Lost(); lost != nil {
		err = lost
		alloc.Default().TrimPoolOf(c.Space())
		alloc.Default().TrimPoolOf(alloc.Pinned) // page-locked by the context that has ended
	}

	c.mu.Lock()
	c.resetting = false
	if err == nil {
		c.resets++
	}
	c.idle.Broadcast()
	c.mu.Unlock()
	if err != nil && !errors.Is(err, ErrLost) { // that says itself what it is
		return fmt.Errorf("reset %s: %w", c.Name(), err)
	}
	return err
}

// Lost is why the card is lost to this process, a *LostError; nil while it may
// be used. It asks no driver.
func (c *Card) Lost() error { return Lost(c.Device) }

// Resets is how often Reset made the context anew.
func (c *Card) Resets() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resets
}

// Close ends the workers, then the reaper. The device is the caller's to close.
func (c *Card) Close() error {
	c.mu.Lock()
	for c.resetting {
		c.idle.Wait()
	}
	c.closed = true
	workers := c.workers
	c.workers = nil
	c.mu.Unlock()
	var errs []error
	for _, w := range workers {
		errs = append(errs, w.Close())
	}
	return errors.Join(append(errs, c.Reaper.Close())...)
}
