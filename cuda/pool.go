package cuda

import (
	"errors"

	"github.com/snarkline/snarkline/gpu"
)

// pool is workers with what each has besides its stream.
type pool struct {
	workers *gpu.Workers
	lanes   []*lane
}

// startPools makes the workers: those that come first, if there are any, have
// streams of the highest priority, and nobody else's work to wait for.
func (e *Engine) startPools() (err error) {
	e.ahead = &e.pool
	if err := e.pool.start(e, e.o.streams-e.o.first, false); err != nil || e.o.first == 0 {
		return err
	}
	e.ahead = new(pool)
	return e.ahead.start(e, e.o.first, true)
}

// closePools ends the workers and gives back what they had.
func (e *Engine) closePools() error {
	p := &e.pool
	err := p.close()
	if e.ahead != nil && e.ahead != p {
		err = errors.Join(err, e.ahead.close())
	}
	return err
}

func (p *pool) start(e *Engine, n int, high bool) (err error) {
	if p.workers, err = e.card.Workers(n, high); err != nil {
		return err
	}
	for range n {
		p.lanes = append(p.lanes, &lane{e: e})
	}
	return nil
}

func (p *pool) close() (err error) {
	if p.workers != nil {
		err = p.workers.Close()
	}
	for _, l := range p.lanes {
		l.close()
	}
	return err
}
