package gpu

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/dustin/go-humanize"
	"github.com/snarkline/snarkline/alloc"
)

// DefaultMargin is the device memory that a Planner keeps back for the driver
// and for others.
const DefaultMargin = 512 * alloc.MiB

// Tier is one way to place an item on a device.
type Tier struct {
	Holds string // what is in device memory: "a and b"; "nothing"
	Bytes int64  // of it
}

// Request is what an item wants of a device: the best of its tiers that fits.
// The last tier is taken if no other does.
type Request struct {
	Tiers []Tier // best first
	Later int64  // bytes that the item takes later, whatever its tier
}

// Vectors is the request to bring an item's vectors to a device before they are
// needed, n bytes each: all of them (a, b and c, or a and b where the key is
// folded), only a, or nothing, in which case they are uploaded when needed.
func Vectors(n int64, folded bool, later int64) Request {
	all := Tier{"a, b and c", 3 * n}
	if folded {
		all = Tier{"a and b", 2 * n}
	}
	return Request{Tiers: []Tier{all, {"a", n}, {"nothing", 0}}, Later: later}
}

// Decision is which tier was chosen, and why.
type Decision struct {
	Request
	Tier   int   // index in Tiers
	Free   int64 // device memory that nobody had taken or claimed; negative if claims pass it
	Margin int64 // of it, kept back
	Failed error // why a better tier that would have fitted did not, if one did not
}

// Chosen is the tier.
func (d Decision) Chosen() Tier { return d.Tiers[d.Tier] }

// Fits reports whether there is room for the chosen tier and for what comes later.
func (d Decision) Fits() bool { return d.Chosen().Bytes+d.Later <= d.Free-d.Margin }

// String is one line for people: "tier 1 of 3: a and b (1.0 GiB) in device
// memory, 120 GiB free". Where a better tier did not fit, it says what that
// would have needed.
func (d Decision) String() string {
	var s strings.Builder
	t := d.Chosen()
	fmt.Fprintf(&s, "tier %d of %d: %s", d.Tier+1, len(d.Tiers), t.Holds)
	if t.Bytes > 0 {
		fmt.Fprintf(&s, " (%s)", size(t.Bytes))
	}
	fmt.Fprintf(&s, " in device memory, %s free", size(d.Free))
	if d.Tier > 0 {
		up := d.Tiers[d.Tier-1]
		switch {
		case d.Failed != nil:
			fmt.Fprintf(&s, ", which was not enough for %s", up.Holds)
		default:
			fmt.Fprintf(&s, ", %s needed for %s", size(up.Bytes+d.Later+d.Margin), up.Holds)
		}
	}
	if !d.Fits() {
		s.WriteString(", too little")
	}
	return s.String()
}

func size(n int64) string {
	if n < 0 {
		return "none"
	}
	return humanize.IBytes(uint64(n))
}

// Fit is the tier of r that fits where free bytes are free and margin of them
// are kept back: for plans made before there is a device to ask, and for
// reservations.
func (r Request) Fit(free, margin int64) Decision { return r.fit(0, free, margin) }

// fit looks from tier first on.
func (r Request) fit(first int, free, margin int64) Decision {
	d := Decision{Request: r, Tier: first, Free: free, Margin: margin}
	for d.Tier < len(r.Tiers)-1 && !d.Fits() {
		d.Tier++
	}
	return d
}

// Planner decides what of an item is brought to a device ahead of time. It asks
// the device how much is free, takes off what others have claimed and not taken
// yet, and keeps a margin; and it does all of that, and the allocations that
// follow, under one lock, so that two workers never count on the same bytes.
type Planner struct {
	dev     Device
	margin  int64
	front   chan struct{} // held by who waits first
	mu      sync.Mutex
	claimed int64
	naive   bool // tests only: claims do not count
}

// NewPlanner makes the planner of a device; there should be one for each. A
// margin below 0 is DefaultMargin.
func NewPlanner(dev Device, margin int64) *Planner {
	if margin < 0 {
		margin = DefaultMargin
	}
	return &Planner{dev: dev, margin: margin, front: make(chan struct{}, 1)}
}

// Margin is what is kept back.
func (p *Planner) Margin() int64 { return p.margin }

// Claimed is what is promised to items and not allocated yet.
func (p *Planner) Claimed() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.claimed
}

// Claim chooses the best tier of r that fits and claims its bytes and those for
// later, so that nobody else counts on them until they were taken or the claim
// is closed. Where even the last tier does not fit, it is what is chosen, and
// Decision.Fits says so; what is claimed then is what there is.
func (p *Planner) Claim(r Request) (*Claim, error) { return p.claim(r, 0) }

func (p *Planner) claim(r Request, first int) (*Claim, error) {
	if len(r.Tiers) == 0 {
		return nil, errors.New("place an item on a device: no tiers are given")
	}
	for _, t := range r.Tiers {
		if t.Bytes < 0 || r.Later < 0 {
			return nil, fmt.Errorf("place an item on a device: %d and %d bytes", t.Bytes, r.Later)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	free, err := p.free()
	if err != nil {
		return nil, err
	}
	d := r.fit(first, free, p.margin)
	if d.Tier > first || !d.Fits() {
		// What the pools keep is free too, but it is worth keeping where it
		// makes no difference.
		if err := trim(p.dev); err != nil {
			return nil, fmt.Errorf("place an item on %s: %w", name(p.dev), err)
		}
		if free, err = p.free(); err != nil {
			return nil, err
		}
		d = r.fit(first, free, p.margin)
	}
	left := d.Chosen().Bytes + d.Later
	if !d.Fits() {
		left = max(min(left, free-p.margin), 0)
	}
	p.claimed += left
	return &Claim{p: p, left: left, d: d}, nil
}

// free is what nobody has. Callers hold mu.
func (p *Planner) free() (int64, error) {
	free, _, err := p.dev.Memory()
	if err != nil {
		return 0, fmt.Errorf("ask %s for its free memory: %w", name(p.dev), err)
	}
	if p.naive {
		return free, nil
	}
	return free - p.claimed, nil
}

// Wait is Claim that waits, in order of arrival, until at least the last tier
// fits. Only who holds no device memory may wait for some, or two can wait for
// each other. What can never fit is ErrNoMemory at once.
func (p *Planner) Wait(ctx context.Context, r Request) (*Claim, error) {
	select {
	case p.front <- struct{}{}:
		defer func() { <-p.front }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for memory of %s: %w", name(p.dev), context.Cause(ctx))
	}
	// Memory is freed by many, most of whom know of no planner: look again.
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := p.Claim(r)
		if err != nil || c.d.Fits() {
			return c, err
		}
		c.Close()
		_, total, err := p.dev.Memory()
		if err != nil {
			return nil, fmt.Errorf("ask %s for its memory: %w", name(p.dev), err)
		}
		if need := c.d.Chosen().Bytes + r.Later; need > total-p.margin {
			return nil, fmt.Errorf("wait for memory of %s: %s can never be free of %s with %s kept back: %w",
				name(p.dev), size(need), size(total), size(p.margin), ErrNoMemory)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for memory of %s: %w", name(p.dev), context.Cause(ctx))
		}
	}
}

// Place is Claim and take, for the best tier that works: take allocates what
// the claim's tier holds, by TakeBuffer or Claim.Take. When it is out of device
// memory, because others than this planner's users took it first, the next tier
// is tried. The claim that take had is the caller's when Place returns no error,
// and closed otherwise.
func (p *Planner) Place(r Request, take func(*Claim) error) (*Claim, error) {
	var failed error
	for first := 0; ; {
		c, err := p.claim(r, first)
		if err != nil {
			return nil, err
		}
		c.d.Failed = failed
		if err = take(c); err == nil {
			return c, nil
		}
		c.Close()
		first = c.d.Tier + 1
		if !errors.Is(err, ErrNoMemory) || first >= len(r.Tiers) {
			return nil, err
		}
		failed = err
	}
}

// Claim is device memory promised to one item.
type Claim struct {
	p    *Planner
	d    Decision
	left int64
}

// Decision is which tier was chosen, and why.
func (c *Claim) Decision() Decision { return c.d }

// Left is what was claimed and not taken yet.
func (c *Claim) Left() int64 {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	return c.left
}

// Take runs take, which allocates n bytes of the device's memory, under the
// planner's lock, and counts them off the claim if it succeeds. It may take
// more than was claimed, at the item's own risk.
func (c *Claim) Take(n int64, take func() error) error {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if err := take(); err != nil {
		return err
	}
	c.drop(n)
	return nil
}

// Close gives up what was not taken. A second Close does nothing.
func (c *Claim) Close() {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.drop(c.left)
}

// drop counts n bytes off. Callers hold mu.
func (c *Claim) drop(n int64) {
	n = min(n, c.left)
	c.left -= n
	c.p.claimed -= n
}

// TakeBuffer is alloc.Make of n elements of T in the memory of the claim's
// device, counted off the claim. Pass alloc.Dirty where all of it is written
// anyway: clearing it holds others up.
func TakeBuffer[T any](c *Claim, sc *alloc.Scope, n int, p alloc.Purpose, f alloc.Flags) (b *alloc.Buffer[T], err error) {
	var t T
	bytes := int64(n) * int64(unsafe.Sizeof(t))
	err = c.Take(bytes, func() error {
		b, err = alloc.Make[T](sc.In(c.p.dev.Space()), n, p, f)
		return err
	})
	return b, err
}
