package alloc

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Ref is a counted reference to memory: a *Buffer[T] of any T, a *Charge, or a
// *Mapping.
type Ref interface {
	Retain()      // takes another reference
	Release()     // ends one; the last frees
	Bytes() int64 // bytes that are counted
	Space() Space
}

// core is what every Ref is made of.
type core struct {
	extra   atomic.Int32 // references but one, so that a new core has one; −1 once freed
	flags   Flags
	space   Space
	kind    Kind
	bytes   int64
	block   block
	maker   *cell                // where it was counted first
	handed  atomic.Pointer[cell] // where it is counted now, once it was handed over
	res     *Reservation
	tracker *Tracker
	id      uint64  // for observers; 0 if there were none when it was made
	rec     *record // debug only
}

// Retain takes another reference. Only the holder of one may call it.
func (c *core) Retain() {
	for {
		n := c.extra.Load()
		if n < 0 || c.maker == nil {
			c.throwUse("Retain")
		}
		// Not a plain addition: what was freed must never look alive, not even
		// for a moment in which a second mistake could free it again.
		if c.extra.CompareAndSwap(n, n+1) {
			break
		}
	}
	if Debug {
		c.rec.event("retained", 1)
	}
}

// Release ends one reference. The last one frees the memory, in this goroutine.
func (c *core) Release() {
	n := c.extra.Load()
	for ; ; n = c.extra.Load() {
		if n < 0 || c.maker == nil {
			c.throwDouble()
		}
		if c.extra.CompareAndSwap(n, n-1) {
			break
		}
	}
	if n > 0 {
		if Debug {
			c.rec.event("released", 1)
		}
		return
	}
	if d := c.tracker.detour.Load(); d != nil {
		d.send(c)
		return
	}
	c.free()
}

// Bytes is the size as asked for, which is what is counted.
func (c *core) Bytes() int64 { return c.bytes }

// Space is where the memory lies.
func (c *core) Space() Space { return c.space }

// Refs is the number of references now; 0 once freed.
func (c *core) Refs() int { return int(c.extra.Load()) + 1 }

// at is where the memory is counted.
func (c *core) at() *cell {
	if h := c.handed.Load(); h != nil {
		return h
	}
	return c.maker
}

// live reports whether there are references.
func (c *core) live() bool { return c.extra.Load() >= 0 && c.maker != nil }

// Stage is who the memory is accounted to.
func (c *core) Stage() Stage { return c.at().stage }

// Purpose is what the memory is for.
func (c *core) Purpose() Purpose { return c.at().purpose }

// Kind is whose memory it is.
func (c *core) Kind() Kind { return c.kind }

// Hand moves the accounting to another stage. The reservation that the memory
// was drawn from does not change. Only the holder of a reference may call it.
func (c *core) Hand(stage Stage) {
	if !c.live() {
		c.throwUse("Hand")
	}
	first := c.maker
	if c.at().stage == stage {
		return
	}
	c.recount(c.tracker.cell(first.kind, first.space, stage%maxStages, first.purpose))
	if Debug {
		c.rec.hand(stage)
	}
}

// free gives the memory back and uncounts it, in that order: what is not
// counted any more is really gone.
func (c *core) free() {
	if Debug {
		c.rec.free(c)
	}
	at := c.at()
	switch {
	case c.kind == MappedFile:
		mappingOf(c).unmap()
	case c.block.Size > 0:
		if err := c.tracker.give(&c.block, c.bytes, c.flags&Secret != 0, at, c.rec); err != nil && c.tracker.keeps.Load() {
			return
		}
	}
	c.uncount(at)
	if c.res != nil {
		c.res.undraw(c.space, c.bytes)
	}
}

// start makes c a live reference that is counted in s for p. The reservation
// has been drawn on already.
func (c *core) start(s *Scope, k Kind, p Purpose, bytes int64) {
	c.space, c.kind, c.bytes, c.res, c.tracker = s.space, k, bytes, s.res, s.tracker
	c.maker = s.tracker.cell(k, s.space, s.stage%maxStages, p)
	c.count(s.tag)
}

// Buffer is a vector of n elements of T outside Go's heap. It begins with one
// reference, which belongs to whoever made it. Its methods may be called by
// many goroutines; the elements are theirs to keep apart.
type Buffer[T any] struct {
	core
	n int
}

// maxBytes is the most that one buffer may ask for: no machine has as much.
const maxBytes = 1 << 47

// Make allocates n elements of T in the scope's space, for purpose p. T must
// hold no pointers, since the collector does not look here. The elements are
// zero unless f has Dirty. n may be 0.
//
// Errors: *OverdrawError if the scope's reservation has too little left,
// *NoMemoryError if there is no memory, and plain ones for a T with pointers, a
// negative n, and a size that no machine has.
func Make[T any](s *Scope, n int, p Purpose, f Flags) (*Buffer[T], error) {
	s = s.orUnowned()
	var t T
	size := int64(unsafe.Sizeof(t))
	if err := plain(reflect.TypeFor[T]()); err != nil {
		return nil, fmt.Errorf("stage %v: allocate %v memory for %v: %w", s.stage, s.space, p, err)
	}
	if n < 0 {
		return nil, fmt.Errorf("stage %v: allocate %v memory for %v: negative length %d", s.stage, s.space, p, n)
	}
	if size > 0 && int64(n) > maxBytes/size {
		return nil, &NoMemoryError{Stage: s.stage, Purpose: p, Space: s.space, Asked: mulSat(int64(n), size),
			Err: fmt.Errorf("%d elements of %d bytes are more than the largest size, %s", n, size, formatBytes(maxBytes))}
	}
	if !s.space.Valid() {
		return nil, fmt.Errorf("stage %v: allocate memory for %v: %v is not valid", s.stage, p, s.space)
	}
	bytes := int64(n) * size
	b := &Buffer[T]{n: n}
	if bytes > 0 {
		if s.res != nil {
			if err := s.res.draw(s, p, bytes); err != nil {
				return nil, err
			}
		}
		if err := s.tracker.take(s.space, bytes, f, &b.block); err != nil {
			if s.res != nil && !s.tracker.keeps.Load() {
				s.res.undraw(s.space, bytes)
			}
			return nil, &NoMemoryError{Stage: s.stage, Purpose: p, Space: s.space, Asked: bytes, Err: err}
		}
	}
	b.flags = f
	b.start(s, Memory, p, bytes)
	if Debug {
		b.rec = s.tracker.debug.born(&b.core, s.stage, p)
		runtime.AddCleanup(b, lost, b.rec)
	}
	return b, nil
}

// Slice is the elements. It is nil for memory that Go cannot address. The slice
// is good for as long as the caller's reference.
func (b *Buffer[T]) Slice() []T {
	if !b.live() {
		b.throwUse("Slice")
	}
	if b.block.Bytes == nil {
		if b.bytes > 0 {
			return nil
		}
		return make([]T, b.n) // no bytes at all: no elements, or none that have a size
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b.block.Bytes))), b.n)
}

// Addr is the address of the memory in its space; 0 if it has no bytes.
func (b *Buffer[T]) Addr() uintptr {
	if !b.live() {
		b.throwUse("Addr")
	}
	return b.block.Addr
}

// Len is the number of elements, for memory that Go cannot address too.
func (b *Buffer[T]) Len() int { return b.n }

// String says what the buffer is, for messages.
func (b *Buffer[T]) String() string {
	return fmt.Sprintf("%s of %v memory, %v of stage %v, %d references",
		formatBytes(b.bytes), b.space, b.Purpose(), b.Stage(), b.Refs())
}

func mulSat(a, b int64) int64 {
	if a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

var plainTypes sync.Map // reflect.Type → error or nil

// plain is an error if values of type t hold pointers.
func plain(t reflect.Type) error {
	if v, ok := plainTypes.Load(t); ok {
		if v == nil {
			return nil
		}
		return v.(error)
	}
	var v any
	if path := pointerIn(t, t.String()); path != "" {
		v = fmt.Errorf("%v holds a pointer (%s), which the collector would not see outside its heap", t, path)
	}
	plainTypes.Store(t, v)
	if v == nil {
		return nil
	}
	return v.(error)
}

// pointerIn names the first pointer in values of type t, or is empty.
func pointerIn(t reflect.Type, path string) string {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return ""
	case reflect.Array:
		if t.Len() == 0 {
			return ""
		}
		return pointerIn(t.Elem(), path+"[0]")
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if p := pointerIn(f.Type, path+"."+f.Name); p != "" {
				return p
			}
		}
		return ""
	}
	return path
}
