package pipeline

import (
	"reflect"

	"github.com/snarkline/snarkline/alloc"
)

// hold is the references that a message owns, one on each of some buffers. A
// single buffer needs no slice.
type hold struct {
	one  alloc.Ref
	many []alloc.Ref
}

// holdOf is the references that come with a value: its own if it is a buffer,
// those of its Buffers if it is a Holder.
func holdOf(v any) hold {
	switch v := v.(type) {
	case nil:
		return hold{}
	case alloc.Ref:
		if isNil(v) {
			return hold{}
		}
		return hold{one: v}
	case Holder:
		if isNil(v) {
			return hold{}
		}
		return holdAll(v.Buffers())
	}
	return hold{}
}

// holdAll leaves out the nil ones. It does not write into refs.
func holdAll(refs []alloc.Ref) hold {
	n := 0
	for _, r := range refs {
		if !isNil(r) {
			n++
		}
	}
	switch {
	case n == 0:
		return hold{}
	case n == len(refs) && n > 1:
		return hold{many: refs}
	}
	h := hold{}
	for _, r := range refs {
		if !isNil(r) {
			h.add(r)
		}
	}
	return h
}

// isNil is true for nil and for a nil pointer in an interface, as an optional
// buffer of a Holder is.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	rv := reflect.ValueOf(v)
	return rv.Kind() == reflect.Pointer && rv.IsNil()
}

func (h *hold) add(r alloc.Ref) {
	switch {
	case h.many != nil:
		h.many = append(h.many, r)
	case h.one != nil:
		h.many = append(make([]alloc.Ref, 0, 4), h.one, r)
		h.one = nil
	default:
		h.one = r
	}
}

func (h *hold) len() int {
	if h.one != nil {
		return 1
	}
	return len(h.many)
}

func (h *hold) at(i int) alloc.Ref {
	if h.one != nil {
		return h.one
	}
	return h.many[i]
}

func (h *hold) has(r alloc.Ref) bool {
	for i := range h.len() {
		if h.at(i) == r {
			return true
		}
	}
	return false
}

// only is the part of h that is in refs.
func (h *hold) only(refs []alloc.Ref) hold {
	for i := range refs {
		if isNil(refs[i]) || !h.has(refs[i]) {
			var kept hold
			for _, r := range refs {
				if !isNil(r) && h.has(r) {
					kept.add(r)
				}
			}
			return kept
		}
	}
	return holdAll(refs)
}

func (h *hold) retain() {
	for i := range h.len() {
		h.at(i).Retain()
	}
}

// release ends every reference. A panic of one of them, which means that
// somebody released what was not his, does not keep the others alive; it is
// returned.
func (h *hold) release() (err error) {
	if h.one == nil && h.many == nil {
		return nil
	}
	i := 0
	for i < h.len() {
		if e := h.releaseFrom(&i); e != nil && err == nil {
			err = e
		}
	}
	*h = hold{}
	return err
}

func (h *hold) releaseFrom(i *int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{p}
		}
	}()
	for *i < h.len() {
		r := h.at(*i)
		*i++
		r.Release()
	}
	return nil
}

// take removes one reference on r and reports whether there was one.
func (h *hold) take(r alloc.Ref) bool {
	if h.one != nil {
		if h.one == r {
			h.one = nil
			return true
		}
		return false
	}
	for i, o := range h.many {
		if o != r {
			continue
		}
		// The slice may be shared with other consumers of the same value.
		rest := make([]alloc.Ref, 0, len(h.many)-1)
		h.many = append(append(rest, h.many[:i]...), h.many[i+1:]...)
		return true
	}
	return false
}

// bytes is what is behind the references, in all spaces together.
func (h *hold) bytes() (n int64) {
	for i := range h.len() {
		n += h.at(i).Bytes()
	}
	return n
}

// releaseValue releases the buffers of a value that belongs to nobody.
func releaseValue(v any) {
	var h hold
	if guard(func() { h = holdOf(v) }) == nil {
		_ = h.release()
	}
}
