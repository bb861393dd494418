package driver

import "sync"

// ledger knows who owns which addresses. After a Reset the driver can hand out
// an address that an owner from before still has and will free: each address
// therefore has a count of such late owners, and what is live there is given
// back when all have freed it. So a late free never takes live memory away.
type ledger struct {
	mu sync.Mutex
	m  map[uintptr]*holding
}

type holding struct {
	size int64
	live bool // the driver holds it
	late int  // owners from before a Reset
}

// add notes a live address.
func (l *ledger) add(p uintptr, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil {
		l.m = make(map[uintptr]*holding)
	}
	h := l.m[p]
	if h == nil {
		h = new(holding)
		l.m[p] = h
	}
	h.size, h.live = size, true
}

// claim ends one ownership of p. do says that the driver must free it now, and
// the caller then calls drop; known is false for an address that nobody has.
func (l *ledger) claim(p uintptr) (size int64, do, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.m[p]
	if h == nil {
		return 0, false, false
	}
	if h.late > 0 {
		h.late--
		if h.late == 0 && !h.live {
			delete(l.m, p)
		}
		return h.size, false, true
	}
	return h.size, true, true
}

// drop forgets what is live at p: it has been given back.
func (l *ledger) drop(p uintptr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.m[p]; h != nil {
		h.live = false
		if h.late == 0 {
			delete(l.m, p)
		}
	}
}

// pass makes all that is live late: a Reset has taken it.
func (l *ledger) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.m {
		if h.live {
			h.live = false
			h.late++
		}
	}
}

// live lists what the driver holds.
func (l *ledger) live() []uintptr {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []uintptr
	for p, h := range l.m {
		if h.live {
			all = append(all, p)
		}
	}
	return all
}
