package cuda

import (
	"sync"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/kernels"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// purposeTables are the twiddle factors of the transforms.
var purposeTables = alloc.PurposeOf("tables")

// tableKey is what tables depend on.
type tableKey struct {
	domain curve.Domain
	basis  curve.Basis
}

// table is the tables of one domain, on the card.
type table struct {
	mu    sync.Mutex // held while they are made
	mem   *block     // nil: not made
	kept  bool       // beyond its last user
	apart bool       // forgotten: nobody else can find it, so it ends with its last user
	t     *kernels.Tables
	users int
}

// tableCache keeps tables from job to job.
type tableCache struct {
	e  *Engine
	mu sync.Mutex
	m  map[tableKey]*table
}

// hold keeps the tables of k where they are, if they are there, until letGo.
// missing is the room that an operation needs to make them, of bytes in all.
func (c *tableCache) hold(k tableKey, bytes int64) (tab *table, missing int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = map[tableKey]*table{}
	}
	if tab = c.m[k]; tab == nil {
		tab = new(table)
		c.m[k] = tab
	}
	tab.users++
	if tab.mem == nil || tab.mem.live() != nil {
		missing = bytes
	}
	return tab, missing
}

// coming is about what the tables of k will take, if they are not there yet.
func (c *tableCache) coming(k tableKey) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if tab := c.m[k]; tab != nil && tab.mem != nil && tab.mem.live() == nil {
		return 0
	}
	const most = 64 // bytes an element; more where the domain's shift is an unusual one
	return most << k.domain.Log
}

func (c *tableCache) bytes() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.m {
		if t.mem != nil {
			n += t.mem.bytes
		}
	}
	return n
}

// use gives the tables of k, which are held, and makes them if they are not
// there. They stay on the card where there is room.
func (c *tableCache) use(t *task, ntt *kernels.NTT, k tableKey, tab *table) (*kernels.Tables, error) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	if tab.mem != nil && tab.mem.live() == nil {
		return tab.t, nil
	}
	size := ntt.TableBytes(k.domain, k.basis)
	if tab.mem != nil && size > t.room {
		// They were there when the operation asked for its memory.
		return nil, &gpu.StaleError{Device: c.e.card.name, What: "the tables of a transform"}
	}
	mem, err := t.keep(tabled, size, purposeTables, alloc.Dirty)
	if err != nil {
		return nil, err
	}
	made, err := ntt.MakeTables(t.st, t.args, k.domain, k.basis, mem.ptr())
	if err == nil {
		err = drain(t.st) // others use them on other streams
	}
	if err != nil {
		_ = drain(t.st) // it is not known what runs
		mem.free()
		return nil, err
	}
	c.mu.Lock()
	old := tab.mem
	tab.mem, tab.t, tab.kept = mem, made, mem.use == tabled && !tab.apart
	c.mu.Unlock()
	old.free()
	return made, nil
}

// letGo ends a hold. Tables that there was no room to keep end with the last one.
func (c *tableCache) letGo(k tableKey, tab *table) {
	c.mu.Lock()
	tab.users--
	var end *block
	if tab.users == 0 && !tab.kept {
		end, tab.mem = tab.mem, nil
		if c.m[k] == tab {
			delete(c.m, k)
		}
	}
	c.mu.Unlock()
	end.free()
}

// evict frees tables that nobody uses, about n bytes.
func (c *tableCache) evict(n int64) (freed int64) {
	var gone []*block
	c.mu.Lock()
	for k, tab := range c.m {
		if freed < n && tab.users == 0 && tab.mem != nil {
			freed += tab.mem.bytes
			gone = append(gone, tab.mem)
			delete(c.m, k)
		}
	}
	c.mu.Unlock()
	for _, b := range gone {
		b.free()
	}
	return freed
}

// clear forgets all tables. Those in use end with their users.
func (c *tableCache) clear() {
	var gone []*block
	c.mu.Lock()
	for _, tab := range c.m {
		if tab.users == 0 && tab.mem != nil {
			gone = append(gone, tab.mem)
		} else {
			tab.kept, tab.apart = false, true
		}
	}
	c.m = nil
	c.mu.Unlock()
	for _, b := range gone {
		b.free()
	}
}
