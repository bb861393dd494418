package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/driver"
	"github.com/snarkline/snarkline/gpu"
)

// Driver is the CUDA driver of this machine, with its cards. There should be
// one in a process: memory of the cards is counted in the process's tracker.
type Driver struct {
	drv       *driver.Driver
	cards     []*Card
	providers *gpu.Providers
}

// Open opens the CUDA driver: the library at path or, where path is empty, the
// one that SNARKLINE_CUDA_LIBRARY names, or libcuda.so.1. Where there is none,
// or no card that can be used, the error is gpu.ErrNoDevice and says what is
// missing. Close gives everything back.
func Open(path string) (*Driver, error) {
	drv, err := driver.Open(path)
	if err != nil {
		return nil, err
	}
	devices, err := drv.Devices()
	if err != nil {
		return nil, errors.Join(err, drv.Close())
	}
	d := &Driver{drv: drv}
	if d.providers, err = gpu.Use(devices...); err != nil {
		return nil, errors.Join(err, drv.Close())
	}
	o := gpu.CardOptions{Registry: gpu.NewRegistry(), Providers: d.providers}
	for _, dev := range devices {
		d.cards = append(d.cards, newCard(dev, o))
	}
	return d, nil
}

// Version is that of the driver's interface, 13000 for 13.0.
func (d *Driver) Version() int { return d.drv.Version() }

// Path is the library that was opened.
func (d *Driver) Path() string { return d.drv.Path() }

// Cards are the cards that can be used, in the driver's order.
func (d *Driver) Cards() []*Card { return d.cards }

// Devices are the cards as devices, for a gpu.Choice say.
func (d *Driver) Devices() []gpu.Device {
	out := make([]gpu.Device, len(d.cards))
	for i, c := range d.cards {
		out[i] = c
	}
	return out
}

// Card is the card called name: "cuda:0", or "0".
func (d *Driver) Card(name string) (*Card, error) {
	for _, c := range d.cards {
		if name == c.name || "cuda:"+name == c.name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no card %q (there are %d): %w", name, len(d.cards), gpu.ErrNoDevice)
}

// Close closes the cards. Engines are closed before.
func (d *Driver) Close() error {
	var all []error
	for _, c := range d.cards {
		all = append(all, c.end())
	}
	all = append(all, d.providers.Restore(), d.drv.Close())
	return errors.Join(all...)
}

// Available lists the cards of this machine that can be used. Where there are
// none the error is gpu.ErrNoDevice and says why.
func Available() ([]gpu.Info, error) {
	drv, err := driver.Open("")
	if err != nil {
		return nil, err
	}
	devices, err := drv.Devices()
	if err != nil {
		return nil, errors.Join(err, drv.Close())
	}
	var infos []gpu.Info
	for _, d := range devices {
		infos = append(infos, d.Info())
	}
	return infos, drv.Close()
}

// Card is a device with what all engines on it share: its workers' gate and its
// reaper, and the ledger of who has taken how much of its memory.
type Card struct {
	*gpu.Card
	name  string
	space alloc.Space
	own   *alloc.Scope // of what belongs to no job
	mem   *ledger
	taken atomic.Int64 // bytes of device memory that engines have
	share int64        // most that the plan of one sum takes: a quarter of what there was at first

	providers *gpu.Providers // where the card is one engine's

	mu      sync.Mutex
	engines map[*Engine]struct{}
	gen     uint64 // that the engines know of
}

func newCard(dev gpu.Device, o gpu.CardOptions) *Card {
	c := &Card{Card: gpu.NewCard(dev, o), space: dev.Space(), engines: map[*Engine]struct{}{}, gen: dev.Generation()}
	c.name = c.Name()
	c.own = alloc.NewScope(alloc.StageOf(c.name), alloc.Host, nil)
	c.mem = newLedger(c, c.Planner.Margin())
	return c
}

// String is "cuda:0".
func (c *Card) String() string { return c.name }

// plan settles what does not change while the card is in use, so that what a
// job is stated to need does not change either.
func (c *Card) plan() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.share > 0 {
		return nil
	}
	n, err := c.mem.capacityNow()
	if err != nil {
		return err
	}
	c.share = max(n/4, 1)
	// Vectors come and go in the same sizes, and to free one makes the driver
	// wait for the card. What is kept is given up as soon as somebody needs it.
	alloc.Default().SetPoolLimitOf(c.space, n/4)
	return nil
}

func (c *Card) join(e *Engine) {
	c.mu.Lock()
	c.engines[e] = struct{}{}
	c.mu.Unlock()
}

func (c *Card) leave(e *Engine) {
	c.mu.Lock()
	delete(c.engines, e)
	last := len(c.engines) == 0
	c.mu.Unlock()
	if last {
		_ = c.trim() // what cannot be trimmed goes with the context
	}
}

// end is what follows the last engine.
func (c *Card) end() error {
	alloc.Default().SetPoolLimitOf(c.space, 0)
	return c.Close()
}

// trim gives back what both pools of the card keep without a user.
func (c *Card) trim() error {
	alloc.Default().TrimPoolOf(c.space)
	return c.Trim(0)
}

// revive makes the card usable again after a sticky error, for whoever comes
// first; the others find that it was done. What stood on the card is lost.
func (c *Card) revive() error {
	err := c.Reset()
	c.mu.Lock()
	defer c.mu.Unlock()
	if gen := c.Generation(); gen != c.gen {
		for e := range c.engines {
			e.forget()
		}
		c.gen = gen
	}
	return err
}

// makeRoom gives up tables and points of keys that nobody uses, until about n
// bytes are free. It reports whether there were any.
func (c *Card) makeRoom(_ context.Context, n int64) bool {
	c.mu.Lock()
	var all []*Engine
	for e := range c.engines {
		all = append(all, e)
	}
	c.mu.Unlock()
	var freed int64
	for _, e := range all {
		if freed < n {
			freed += e.giveUp(n - freed)
		}
	}
	return freed > 0
}
