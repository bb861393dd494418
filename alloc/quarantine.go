package alloc

import "bytes"

// quarantine poisons freed memory and keeps it from being used again for a
// while, so that a write through a stale slice is seen. It reports false for
// what is too large to keep: that goes its way poisoned. An error is memory that
// could not be poisoned, nor wiped therefore.
func (d *debugState) quarantine(b *block, n int64, rec *record) (bool, error) {
	b.checkEnd(n, rec)
	if err := b.fill(b.Size, poison); err != nil {
		return false, err
	}
	b.rec = rec
	if b.Size > maxQuarantine || b.Bytes == nil {
		return false, nil
	}
	d.tracker.spaces[b.space].pooled.Add(b.Size)
	d.mu.Lock()
	d.waiting = append(d.waiting, *b)
	d.bytes += b.Size
	var out []block
	for d.bytes > maxQuarantine || len(d.waiting) > maxQuarantined {
		out = append(out, d.waiting[0])
		d.bytes -= d.waiting[0].Size
		d.waiting[0] = block{}
		d.waiting = d.waiting[1:]
	}
	d.mu.Unlock()
	d.dismiss(out)
	return true, nil
}

// dismiss lets blocks go on to the pool or the system.
func (d *debugState) dismiss(out []block) {
	for i := range out {
		d.tracker.spaces[out[i].space].pooled.Add(-out[i].Size)
		_ = d.tracker.settle(&out[i]) // kept
	}
}

// drain empties the quarantine of a space.
func (d *debugState) drain(s Space) {
	d.mu.Lock()
	var out []block
	keep := d.waiting[:0:0]
	for _, b := range d.waiting {
		if b.space == s {
			out = append(out, b)
			d.bytes -= b.Size
		} else {
			keep = append(keep, b)
		}
	}
	d.waiting = keep
	d.mu.Unlock()
	d.dismiss(out)
}

// check looks at all that is in quarantine and tells what was written to.
func (d *debugState) check() (found []*WriteAfterFreeError) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.waiting {
		if err := d.waiting[i].poisoned(); err != nil {
			found = append(found, err)
		}
	}
	return found
}

// leaveQuarantine checks poisoned memory that is about to be used again, by a
// buffer of n bytes, or to go back to the system.
func (b *block) leaveQuarantine(n int64) {
	if err := b.poisoned(); err != nil {
		panic(err)
	}
	b.rec = nil
	if b.Bytes != nil && n > 0 {
		fillBytes(b.Bytes[n:], poison) // checkEnd looks here
	}
}

// poisoned is an error if freed memory is not as it was left.
func (b *block) poisoned() *WriteAfterFreeError {
	if b.rec == nil || b.Bytes == nil {
		return nil
	}
	if i := changed(b.Bytes); i >= 0 {
		return b.rec.written(int64(i))
	}
	return nil
}

// checkEnd throws if something was written behind the n bytes of a buffer.
func (b *block) checkEnd(n int64, rec *record) {
	if b.Bytes == nil {
		return
	}
	if i := changed(b.Bytes[n:]); i >= 0 {
		panic(rec.written(n + int64(i)))
	}
}

// changed is the index of the first byte that is not poison, or −1.
func changed(p []byte) int {
	// All bytes are equal if each is equal to the next; that much is fast.
	if len(p) == 0 || p[0] == poison && bytes.Equal(p[1:], p[:len(p)-1]) {
		return -1
	}
	for i, v := range p {
		if v != poison {
			return i
		}
	}
	return -1
}

func (r *record) written(at int64) *WriteAfterFreeError {
	made, freed := r.stacks()
	return &WriteAfterFreeError{Ref: r.describe(), Offset: at, Made: made, Freed: freed}
}
