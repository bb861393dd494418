package cuda

import "github.com/snarkline/snarkline/gpu"

// pool is workers with what each has besides its stream.
type pool struct {
	workers *gpu.Workers
	lanes   []*lane
}

func (p *pool) start(e *Engine, n int) (err error) {
	if p.workers, err = e.card.Workers(n, false); err != nil {
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
