package driver

import "sync"

// ledger knows who owns which addresses. After a Reset the driver can hand out
// an address that an owner from before still has and will free: each address
// therefore has a count of such late owners, and what is live there is given
// back when all have freed it. So a late free never takes live memory away.
//
// It also keeps apart who is handed an address and who gives it back: see
// primary.end.
type ledger struct {
	handing sync.RWMutex // read: from the driver's handing out to add
	mu      sync.Mutex
	m       map[uintptr]*holding
}

type holding struct {
	size int64
	live bool // the driver holds it
	late int  // owners from before a Reset
	// early says that the live one's owner may have freed it, with work of his
	// still queued, before a late owner did.
	early bool
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

// claimed is the end of an ownership.
type claimed struct {
	known bool // somebody owned the address
	do    bool // the driver must free it now
	wait  bool // for the device's work, before that
	size  int64
}

// claim ends one ownership of p, which is a late one for sure if late. What the
// driver must free is out of the books then, since another thread may be handed
// the address as soon as it is free: put notes it again where that fails.
func (l *ledger) claim(p uintptr, late bool) claimed {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.m[p]
	if h == nil {
		return claimed{}
	}
	c := claimed{known: true, do: h.late == 0, wait: h.early, size: h.size}
	if c.do {
		h.live, h.early = false, false
	} else {
		h.late--
		h.early = h.early || h.live && !late
	}
	if h.late == 0 && !h.live {
		delete(l.m, p)
	}
	return c
}

// put takes back a claim: what it said was to be freed could not be.
func (l *ledger) put(p uintptr, c claimed) {
	l.add(p, c.size)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.m[p].early = c.wait
}

// pass makes all that is live late: a Reset has taken it.
func (l *ledger) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.m {
		if h.live {
			h.live, h.early = false, false
			h.late++
		}
	}
}

// clear forgets everything.
func (l *ledger) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.m = nil
}

// holds reports whether the driver holds p.
func (l *ledger) holds(p uintptr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.m[p]
	return h != nil && h.live
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
