package alloc

import "sync"

// Lease is exactly one reference on each of some Refs, ended once, whoever ends
// it and in whatever order: by Done for all that are left, or by Drop for one
// early. A second Done, or Drop of what is gone, does nothing, so that a body
// may end its lease early and still defer Done. Safe for concurrent use. The
// zero value holds nothing. A Lease must not be copied.
type Lease struct {
	mu     sync.Mutex
	refs   []Ref
	inline [4]Ref // most leases are short
}

// NewLease retains each of refs once and holds those references. Nil ones are
// left out.
func NewLease(refs ...Ref) *Lease {
	l := new(Lease)
	for _, r := range refs {
		l.Add(r)
	}
	return l
}

// Adopt makes a lease of references that the caller already has and gives up.
func Adopt(refs ...Ref) *Lease {
	l := new(Lease)
	for _, r := range refs {
		l.AddOwned(r)
	}
	return l
}

// Add retains ref and holds that reference. nil does nothing.
func (l *Lease) Add(ref Ref) {
	if ref != nil {
		ref.Retain()
		l.AddOwned(ref)
	}
}

// AddOwned holds a reference that the caller has and gives up. nil does nothing.
func (l *Lease) AddOwned(ref Ref) {
	if ref == nil {
		return
	}
	l.mu.Lock()
	if l.refs == nil {
		l.refs = l.inline[:0]
	}
	l.refs = append(l.refs, ref)
	l.mu.Unlock()
}

// Done ends the references that are left.
func (l *Lease) Done() {
	for {
		l.mu.Lock()
		last := len(l.refs) - 1
		if last < 0 {
			l.mu.Unlock()
			return
		}
		r := l.refs[last]
		l.refs[last] = nil
		l.refs = l.refs[:last]
		l.mu.Unlock()
		r.Release() // outside the lock: it may unmap
	}
}

// Drop ends the lease's reference on ref now. It reports whether there was one.
func (l *Lease) Drop(ref Ref) bool {
	l.mu.Lock()
	for i, r := range l.refs {
		if r == ref {
			last := len(l.refs) - 1
			l.refs[i] = l.refs[last]
			l.refs[last] = nil
			l.refs = l.refs[:last]
			l.mu.Unlock()
			r.Release()
			return true
		}
	}
	l.mu.Unlock()
	return false
}

// Holds reports whether the lease still has a reference on ref.
func (l *Lease) Holds(ref Ref) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.refs {
		if r == ref {
			return true
		}
	}
	return false
}

// Bytes is the bytes behind the references that are left, by space.
func (l *Lease) Bytes() (a Amount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.refs {
		a[r.Space()] += r.Bytes()
	}
	return a
}
