package gpu

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/snarkline/snarkline/alloc"
)

// Providers are the memory of devices as alloc's buffers know it: of each
// device in its space, and of page-locked host memory, in alloc.Default().
type Providers struct {
	mu     sync.Mutex
	devs   []Device
	now    map[Device]*deviceProvider
	pinned *pinnedProvider
	before map[alloc.Space]alloc.Provider
	naive  bool // tests only: an allocation that fails is not tried again
}

// Use makes devs the providers of their spaces, and of alloc.Pinned together,
// until Restore.
func Use(devs ...Device) (*Providers, error) {
	if len(devs) == 0 {
		return nil, ErrNoDevice
	}
	u := &Providers{devs: slices.Clone(devs), now: map[Device]*deviceProvider{}, before: map[alloc.Space]alloc.Provider{}}
	seen := map[alloc.Space]bool{}
	for _, d := range devs {
		s := d.Space()
		if s.DeviceIndex() < 0 {
			return nil, fmt.Errorf("use %s: its memory cannot be counted as %v memory", name(d), s)
		}
		if seen[s] {
			return nil, fmt.Errorf("use %s: another device has %v already", name(d), s)
		}
		seen[s] = true
	}
	for _, d := range devs {
		p := &deviceProvider{use: u, dev: d, gen: d.Generation()}
		old, err := alloc.Default().Register(d.Space(), p)
		if err != nil {
			return nil, errors.Join(err, u.Restore())
		}
		u.before[d.Space()], u.now[d] = old, p
	}
	u.pinned = &pinnedProvider{use: u, owner: map[uintptr]Device{}}
	old, err := alloc.Default().Register(alloc.Pinned, u.pinned)
	if err != nil {
		return nil, errors.Join(err, u.Restore())
	}
	u.before[alloc.Pinned] = old
	return u, nil
}

// Renew gives a device that was reset a provider for its new generation. What
// is live frees to nothing. It does nothing if there was no Reset.
func (u *Providers) Renew(d Device) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	old := u.now[d]
	if old == nil || !old.stale() {
		return nil
	}
	p := &deviceProvider{use: u, dev: d, gen: d.Generation()}
	if _, err := alloc.Default().Register(d.Space(), p); err != nil {
		return err
	}
	u.now[d] = p
	return old.close()
}

// Restore puts back the providers that were there before. Buffers that are live
// stay good until the device is closed. A second Restore does nothing.
func (u *Providers) Restore() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var errs []error
	for s, p := range u.before {
		_, err := alloc.Default().Register(s, p)
		errs = append(errs, err)
	}
	for _, p := range u.now {
		errs = append(errs, p.close())
	}
	u.before, u.now = nil, nil
	return errors.Join(errs...)
}
