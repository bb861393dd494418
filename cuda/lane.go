package cuda

import (
	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/gpu"
)

// lane is what a worker needs besides its stream: a belt for what an operation
// brings, events, and memory for what it takes back. All of it is made when
// first needed, once for each generation of the device.
type lane struct {
	e    *Engine
	gen  uint64
	made bool

	belt     *belt
	from, to gpu.Event    // timed: the operation
	used     [2]gpu.Event // the work that reads half i of what is streamed
	landed   [2]gpu.Event // the copies to half i
	read     [2]bool      // used[i] was recorded

	out *gpu.Pinned // results
}

// ready makes what generation gen lacks.
func (l *lane) ready(gen uint64) error {
	if l.made && l.gen == gen {
		return nil
	}
	l.close()
	l.gen = gen
	if err := l.make(); err != nil {
		l.close()
		return err
	}
	l.made = true
	return nil
}

func (l *lane) make() (err error) {
	card := l.e.card
	if l.belt, err = newBelt(l.e); err != nil {
		return err
	}
	for _, ev := range []*gpu.Event{&l.from, &l.to} {
		if *ev, err = card.NewEvent(true); err != nil {
			return err
		}
	}
	for i := range l.used {
		if l.used[i], err = card.NewEvent(false); err != nil {
			return err
		}
		if l.landed[i], err = card.NewEvent(false); err != nil {
			return err
		}
	}
	return nil
}

// close gives everything back. Nothing of it is in use.
func (l *lane) close() {
	for _, ev := range []gpu.Event{l.from, l.to, l.used[0], l.used[1], l.landed[0], l.landed[1]} {
		if ev != nil {
			_ = ev.Close() // what cannot be closed ends with the context
		}
	}
	l.belt.close()
	if l.out != nil {
		l.out.Release()
	}
	*l = lane{e: l.e}
}

// results is n bytes of page-locked memory for what an operation brings back.
func (l *lane) results(n int64) ([]byte, error) {
	if l.out != nil && int64(l.out.Len()) >= n {
		return l.out.Slice()[:n], nil
	}
	if l.out != nil {
		l.out.Release()
		l.out = nil
	}
	buf, err := l.e.card.Pinned(l.e.card.own, max(n, 64<<10), alloc.Scratch)
	if err != nil {
		return nil, err
	}
	l.out = buf
	return buf.Slice()[:n], nil
}
