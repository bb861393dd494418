package gpu

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
)

var pageSize = uintptr(os.Getpagesize())

// Registered is the purpose under which registered host memory is counted in
// the space alloc.Pinned. It is memory that is counted as host memory too.
var Registered = alloc.PurposeOf("registered")

// Registry counts registrations of host memory. Drivers register whole pages
// and refuse a page twice, so two users of the same pages must share one
// registration, and ranges that overlap in part must not be registered anew
// where they do. The registry keeps disjoint runs of pages, each registered by
// one call to the driver, and counts their users: Pin adds one to each run it
// covers, registers only what is in none, and a run is unregistered when its
// last user is done.
//
// One Registry serves all devices of a process, since what one registers is
// page-locked for all. A device's Reset takes its registrations away; the next
// Pin of the same pages makes them anew.
//
// It never holds its lock during a call to the driver, so pages that have
// nothing to do with each other are registered side by side.
type Registry struct {
	mu    sync.Mutex
	spans []*span // disjoint, ascending
	fails int
	last  error
}

type spanState uint8

const (
	making  spanState = iota // being registered
	ready                    // registered
	leaving                  // being unregistered
	gone                     // not in the table any more
)

// span is a run of pages that one call registered.
type span struct {
	from, to uintptr
	dev      Device
	gen      uint64
	users    int
	state    spanState
	err      error         // why it could not be registered
	changed  chan struct{} // closed when it is no longer making or leaving
	charge   *alloc.Charge
}

// NewRegistry makes an empty registry.
func NewRegistry() *Registry { return new(Registry) }

// Pin page-locks n > 0 bytes of host memory from p on, through dev where they
// are not registered yet. The bytes are counted, as whole pages and once
// however many share them, as alloc.Pinned memory of sc's stage; they are not
// drawn from sc's reservation, which has them as host memory already.
//
// The memory must not be unmapped before the registration's last Release, and
// must not be of Go's heap. On an error nothing stays registered or counted.
func (r *Registry) Pin(dev Device, sc *alloc.Scope, p unsafe.Pointer, n int64) (*Registration, error) {
	if p == nil || n <= 0 || n > 1<<46 {
		return nil, fmt.Errorf("register host memory: %d bytes at %#x are out of range", n, uintptr(p))
	}
	from := uintptr(p) &^ (pageSize - 1)
	to := (uintptr(p) + uintptr(n) + pageSize - 1) &^ (pageSize - 1)
	for try := 0; ; try++ {
		used, own := r.cover(dev, from, to)
		err := r.make(dev, sc, own)
		others := false
		for _, s := range used {
			// Ours are made before we wait for those of others, so nobody
			// waits in a circle.
			r.mu.Lock()
			changed, state := s.changed, s.state
			r.mu.Unlock()
			if state == making {
				<-changed
			}
			if s.err != nil && err == nil {
				err, others = s.err, true
			}
		}
		if err == nil {
			return newRegistration(r, p, n, used), nil
		}
		r.end(used)
		if !others || try == 3 {
			return nil, fmt.Errorf("register %d bytes of host memory on %s: %w", n, name(dev), err)
		}
		// Somebody else's attempt failed; this one was not tried yet.
	}
}

// cover counts one more user of every run of pages in [from, to), making runs
// (own) for those that are in none. It waits for what is being unregistered.
func (r *Registry) cover(dev Device, from, to uintptr) (used, own []*span) {
	for {
		r.mu.Lock()
		r.dropStale(from, to)
		wait := r.leavingIn(from, to)
		if wait == nil {
			break
		}
		r.mu.Unlock()
		<-wait
	}
	defer r.mu.Unlock()
	gen := dev.Generation()
	fresh := func(a, b uintptr) *span {
		s := &span{from: a, to: b, dev: dev, gen: gen, users: 1, changed: make(chan struct{})}
		own = append(own, s)
		return s
	}
	var table []*span
	at := from
	for _, s := range r.spans {
		if s.from < to && s.to > from {
			if s.from > at {
				g := fresh(at, s.from)
				used, table = append(used, g), append(table, g)
			}
			s.users++
			used = append(used, s)
			at = s.to
		} else if s.from >= to && at < to {
			g := fresh(at, to)
			used, table = append(used, g), append(table, g)
			at = to
		}
		table = append(table, s)
	}
	if at < to {
		g := fresh(at, to)
		used, table = append(used, g), append(table, g)
	}
	r.spans = table
	return used, own
}

// dropStale takes out what a Reset has taken away already. Callers hold mu.
func (r *Registry) dropStale(from, to uintptr) {
	for _, s := range r.overlapping(from, to) {
		if s.state == ready && s.dev.Generation() != s.gen {
			// Each Register is answered by one Unregister, even where that does
			// nothing: a device may count them.
			r.remove(s)
			r.note(s.dev.Unregister(toPointer(s.from)))
			s.charge.Release()
		}
	}
}

func (r *Registry) leavingIn(from, to uintptr) chan struct{} {
	for _, s := range r.overlapping(from, to) {
		if s.state == leaving {
			return s.changed
		}
	}
	return nil
}

func (r *Registry) overlapping(from, to uintptr) []*span {
	i, _ := slices.BinarySearchFunc(r.spans, from, func(s *span, a uintptr) int {
		if s.to <= a {
			return -1
		}
		return 1
	})
	j := i
	for j < len(r.spans) && r.spans[j].from < to {
		j++
	}
	return slices.Clone(r.spans[i:j])
}

// remove takes s out of the table. Callers hold mu.
func (r *Registry) remove(s *span) {
	s.state = gone
	if i := slices.Index(r.spans, s); i >= 0 {
		r.spans = slices.Delete(r.spans, i, i+1)
	}
}

// make registers runs of pages. After one failed the rest are not tried.
func (r *Registry) make(dev Device, sc *alloc.Scope, own []*span) (err error) {
	for _, s := range own {
		if err == nil {
			err = r.register(dev, sc, s)
		}
		r.mu.Lock()
		if s.err = err; err != nil {
			r.remove(s)
		} else {
			s.state = ready
		}
		close(s.changed)
		r.mu.Unlock()
	}
	return err
}

func (r *Registry) register(dev Device, sc *alloc.Scope, s *span) error {
	charge, err := alloc.Foreign(alloc.NewScope(sc.Stage(), alloc.Pinned, nil), Registered, int64(s.to-s.from))
	if err != nil {
		return err
	}
	if err := dev.Register(toPointer(s.from), int64(s.to-s.from)); err != nil {
		charge.Release()
		return err
	}
	s.charge = charge
	return nil
}

// end takes one user from each of used.
func (r *Registry) end(used []*span) {
	for _, s := range used {
		r.mu.Lock()
		s.users--
		if s.users > 0 || s.state != ready {
			r.mu.Unlock()
			continue
		}
		s.state, s.changed = leaving, make(chan struct{})
		r.mu.Unlock()

		err := s.dev.Unregister(toPointer(s.from))
		s.charge.Release()

		r.mu.Lock()
		r.note(err)
		r.remove(s)
		close(s.changed)
		r.mu.Unlock()
	}
}

// note keeps an error that Release cannot return. A context that has ended
// takes its registrations with it, so that is none. Callers hold mu.
func (r *Registry) note(err error) {
	if err != nil && !isGone(err) {
		r.fails++
		r.last = err
	}
}

// RegistryStats is the state of a registry at one moment.
type RegistryStats struct {
	Bytes    int64 // registered, in whole pages
	Runs     int   // calls to the driver that are in force
	Users    int   // of all runs together
	Failures int   // times that memory could not be unregistered
	Last     error // the last of them
}

// Stats is the state of the registry now.
func (r *Registry) Stats() RegistryStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := RegistryStats{Failures: r.fails, Last: r.last}
	for _, s := range r.spans {
		if s.state == ready {
			st.Bytes += int64(s.to - s.from)
			st.Runs++
			st.Users += s.users
		}
	}
	return st
}

// toPointer is the address of memory that is not Go's. The start of a page lies
// before the object that it was asked for, which pointer arithmetic may not say.
func toPointer(a uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }
