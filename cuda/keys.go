package cuda

import (
	"context"
	"fmt"
	"sync"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/kernels"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// keptPoints is a vector of a key that Keep was told of, or a matrix of
// KeepSystem: on the card, if there is room.
type keptPoints struct {
	id    pointsID
	bytes int64
	fill  func(t *task, mem gpu.Ptr) error // brings it
	plan  *kernels.MatrixPlan              // of a matrix
	order int                              // of Keep: what came first is given up last
	keeps int                              // calls of Keep that hold it

	load  sync.Mutex // held while it is brought
	mem   *block     // nil: not on the card
	users int
	wires map[wiresID]*keptWires
}

// keptWires is the list of wires of a query over kept points. It holds the
// list, so that no other can come to lie at its address meanwhile.
type keptWires struct {
	list []uint32
	last uint32 // the largest
	mem  *block
}

type pointsID struct {
	at    uintptr
	bytes int
	group curve.Group
}

type wiresID struct {
	at uintptr
	n  int
}

func idOfPoints(p curve.Points) pointsID {
	return pointsID{addressOf(p.Data), len(p.Data), p.Group}
}

// keyCache are the points that Keep was told of.
type keyCache struct {
	e    *Engine
	mu   sync.Mutex
	m    map[pointsID]*keptPoints
	next int
}

// Keep makes points stay on the card from proof to proof, in the order given,
// as far as there is room beside what jobs need. Those that find none are
// streamed. It returns when they are there. What makes room later, for jobs or
// for another process, is brought back when there is room again.
//
// From now until drop the memory of the points must neither change nor go:
// points are told by their address. drop may be called more than once.
func (e *Engine) Keep(ctx context.Context, points ...curve.Points) (drop func(), err error) {
	var held []*keptPoints
	drop = e.keys.dropOnce(&held)
	longest := 0
	for _, p := range points {
		if p.Curve != e.id && len(p.Data) > 0 {
			return nil, fmt.Errorf("keep points on %s: they are of %v, the engine of %v", e.card.name, p.Curve, e.id)
		}
		longest = max(longest, p.Len())
	}
	e.expectJobs(longest)
	for _, p := range points {
		if len(p.Data) == 0 {
			continue
		}
		k := e.keys.add(&keptPoints{id: idOfPoints(p), bytes: int64(len(p.Data)), fill: func(t *task, mem gpu.Ptr) error {
			return t.bounceIn(mem, p.Data, false)
		}})
		held = append(held, k)
		if _, err := e.keys.bring(ctx, k); err != nil {
			drop()
			return nil, err
		}
	}
	return drop, nil
}

// Resident is how many of points are on the card now.
func (e *Engine) Resident(points curve.Points) bool {
	e.keys.mu.Lock()
	defer e.keys.mu.Unlock()
	k := e.keys.m[idOfPoints(points)]
	return k != nil && k.mem != nil && k.mem.live() == nil
}

// dropOnce is what ends the keeps that held will have, once.
func (c *keyCache) dropOnce(held *[]*keptPoints) func() {
	var once sync.Once
	return func() {
		once.Do(func() {
			for _, k := range *held {
				c.drop(k)
			}
		})
	}
}

// add keeps what is not kept yet, and counts the keep of what is.
func (c *keyCache) add(what *keptPoints) *keptPoints {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = map[pointsID]*keptPoints{}
	}
	k := c.m[what.id]
	if k == nil {
		k = what
		k.order = c.next
		c.next++
		c.m[k.id] = k
	}
	k.keeps++
	return k
}

func (c *keyCache) drop(k *keptPoints) {
	c.mu.Lock()
	k.keeps--
	var gone []*block
	if k.keeps == 0 {
		delete(c.m, k.id)
		if k.users == 0 {
			gone = k.take()
		}
	}
	c.mu.Unlock()
	freeAll(gone)
}

// take is the memory of k, which k gives up. Callers hold the cache's lock.
func (k *keptPoints) take() (gone []*block) {
	if k.mem != nil {
		gone = append(gone, k.mem)
	}
	for _, w := range k.wires {
		gone = append(gone, w.mem)
	}
	k.mem, k.wires = nil, nil
	return gone
}

// there is the memory of k, which the caller holds; an error if a reset has taken
// it since.
func (k *keptPoints) there(c *keyCache) (*block, error) {
	c.mu.Lock()
	mem := k.mem
	c.mu.Unlock()
	if err := mem.live(); err != nil {
		return nil, &gpu.StaleError{Device: c.e.card.name, What: "points of a key"}
	}
	return mem, nil
}

func freeAll(blocks []*block) {
	for _, b := range blocks {
		b.free()
	}
}

func (c *keyCache) bytes() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.m {
		if k.mem != nil {
			n += k.mem.bytes
		}
		for _, w := range k.wires {
			n += w.mem.bytes
		}
	}
	return n
}

// hold gives the kept points that p is, if they are on the card or can be
// brought now, and keeps them there until letGo; nil if they have to be streamed.
func (c *keyCache) hold(ctx context.Context, p curve.Points) (*keptPoints, error) {
	c.mu.Lock()
	k := c.m[idOfPoints(p)]
	c.mu.Unlock()
	if k == nil {
		return nil, nil
	}
	ok, err := c.bring(ctx, k)
	if err != nil || !ok {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.mem == nil || k.keeps == 0 {
		return nil, nil // given up again
	}
	k.users++
	return k, nil
}

func (c *keyCache) letGo(k *keptPoints) {
	if k == nil {
		return
	}
	c.mu.Lock()
	k.users--
	var gone []*block
	if k.users == 0 && (k.keeps == 0 || k.mem != nil && k.mem.live() != nil) {
		gone = k.take()
	}
	c.mu.Unlock()
	freeAll(gone)
}

// bring brings k to the card, if it is not there and there is room.
func (c *keyCache) bring(ctx context.Context, k *keptPoints) (bool, error) {
	k.load.Lock()
	defer k.load.Unlock()
	c.mu.Lock()
	var stale []*block
	if k.mem != nil && k.mem.live() != nil && k.users == 0 {
		stale = k.take()
	}
	there := k.mem != nil && k.mem.live() == nil
	ending := k.mem != nil && !there // its last user ends it
	resident := int64(0)
	for _, x := range c.m {
		if x.mem != nil {
			resident += x.mem.bytes
		}
	}
	c.mu.Unlock()
	freeAll(stale)
	e := c.e
	n := k.bytes
	if there || ending || e.o.keys >= 0 && resident+n > e.o.keys {
		return there, nil
	}
	mem, err := e.tryBlock(e.card.own, keyed, n, alloc.Key, alloc.Dirty)
	if mem == nil || err != nil {
		if isNoMemory(err) {
			err = nil // somebody else was quicker: the points are streamed
		}
		if err != nil {
			err = e.failed("bring points", err)
		}
		return false, err
	}
	err = e.run(ctx, nil, &op{name: "bring points", stat: mKeep, body: func(t *task) error {
		if err := mem.live(); err != nil {
			return err
		}
		return k.fill(t, mem.ptr())
	}})
	if err != nil {
		mem.free()
		return false, err
	}
	c.mu.Lock()
	dropped := k.keeps == 0 // meanwhile
	if !dropped {
		k.mem = mem
	}
	c.mu.Unlock()
	if dropped {
		mem.free()
	}
	return !dropped, nil
}

// evict gives up points that nobody uses, those kept last first, until n bytes
// are free.
func (c *keyCache) evict(n int64) (freed int64) {
	for freed < n {
		c.mu.Lock()
		var last *keptPoints
		for _, k := range c.m {
			if k.mem != nil && k.users == 0 && (last == nil || k.order > last.order) {
				last = k
			}
		}
		var gone []*block
		if last != nil {
			gone = last.take()
		}
		c.mu.Unlock()
		if gone == nil {
			return freed
		}
		for _, b := range gone {
			freed += b.bytes
		}
		freeAll(gone)
	}
	return freed
}

// clear gives up all points. Keep's promise stays: they are brought again.
func (c *keyCache) clear() {
	var gone []*block
	c.mu.Lock()
	for _, k := range c.m {
		if k.users == 0 {
			gone = append(gone, k.take()...)
		}
	}
	c.mu.Unlock()
	freeAll(gone)
}

// wires brings the list of wires of q to the card; 0 if it has none. For kept
// points the list is kept as well, where there is room.
func (t *task) wires(q curve.Query, k *keptPoints) (gpu.Ptr, error) {
	if len(q.Wires) == 0 {
		return 0, nil
	}
	list := curve.Bytes(q.Wires)
	n := int64(len(list))
	if k == nil {
		p, err := t.take(n, alloc.Scratch)
		if err != nil {
			return 0, err
		}
		return p, t.bounceIn(p, list, false)
	}
	c, id := &t.e.keys, wiresID{addressOf(q.Wires), len(q.Wires)}
	k.load.Lock()
	defer k.load.Unlock()
	c.mu.Lock()
	w := k.wires[id]
	c.mu.Unlock()
	if w != nil {
		return w.mem.ptr(), nil
	}
	mem, err := t.keep(keyed, n, alloc.Key, alloc.Dirty)
	if err != nil {
		return 0, err
	}
	err = t.bounceIn(mem.ptr(), list, false)
	if err != nil || mem.use != keyed {
		t.after(mem.free)
		return mem.ptr(), err
	}
	if err := t.l.belt.drain(); err != nil { // others read it on other streams
		t.after(mem.free)
		return 0, err
	}
	c.mu.Lock()
	if k.wires == nil {
		k.wires = map[wiresID]*keptWires{}
	}
	k.wires[id] = &keptWires{list: q.Wires, last: largest(q.Wires), mem: mem}
	c.mu.Unlock()
	return mem.ptr(), nil
}

// lastWire is the largest wire of q, if that is known.
func (c *keyCache) lastWire(q curve.Query, k *keptPoints) (uint32, bool) {
	if k == nil {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := k.wires[wiresID{addressOf(q.Wires), len(q.Wires)}]
	if w == nil {
		return 0, false
	}
	return w.last, true
}

// wiresMissing is the room that an operation needs for the list of q.
func (c *keyCache) wiresMissing(q curve.Query, k *keptPoints) int64 {
	if q.Wires == nil {
		return 0
	}
	n := aligned(4 * int64(len(q.Wires)))
	if k == nil {
		return n
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.wires[wiresID{addressOf(q.Wires), len(q.Wires)}] != nil {
		return 0
	}
	return n
}

// pointAt is the address of point i of points that begin at p.
func (e *Engine) pointAt(p gpu.Ptr, g curve.Group, i int) gpu.Ptr {
	return p + gpu.Ptr(i*e.id.PointBytes(g))
}
