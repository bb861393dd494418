package cuda

import (
	"errors"
	"fmt"

	"github.com/snarkline/snarkline/gpu"
)

// Lost is why the engine's card is lost to this process, a *gpu.LostError; nil
// while it may be used. A sticky error ends the context of a card, and not every
// driver makes another. From then on every operation fails at once, with an Error
// that is gpu.ErrLost: the job has to be made on another processor, from its input.
func (e *Engine) Lost() error { return e.card.Lost() }

// ended answers err, which says that the context has ended: the card is revived,
// if the driver allows it. What it gives says what became of that.
func (e *Engine) ended(err error) error {
	if e.o.unguarded.reset {
		return err
	}
	again := e.card.revive()
	switch {
	case !errors.Is(again, gpu.ErrLost):
		return errors.Join(err, again)
	case errors.Is(err, gpu.ErrLost):
		return err
	case errors.Is(err, gpu.ErrReset):
		return again // what was on the card does not matter any more
	}
	return fmt.Errorf("%w; %w", err, again)
}
