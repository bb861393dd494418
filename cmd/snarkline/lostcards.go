package main

import (
	"errors"
	"strings"

	"github.com/snarkline/snarkline/gpu"
)

// tellLost says of each card that is lost to the process by now that it is, once.
// Where there is more to prove, it says on what.
func (p *processors) tellLost(more bool) {
	p.tally.mu.Lock()
	defer p.tally.mu.Unlock()
	for _, c := range p.cards {
		lost := c.engine.Lost()
		if lost == nil || c.told {
			continue
		}
		c.told = true
		if more {
			p.a.messagef("%v; %s", lost, p.rest())
		} else {
			p.a.messagef("%v", lost)
		}
	}
}

// rest says where the proofs are made that a lost card leaves.
func (p *processors) rest() string {
	var names []string
	for _, c := range p.cards {
		if c.engine.Lost() == nil {
			names = append(names, c.engine.Name())
		}
	}
	switch {
	case len(names) > 0:
		return "the rest is proved on " + strings.Join(names, ", ")
	case p.a.flags.NoElsewhere:
		return "there is nothing else to prove the rest on"
	}
	return "the rest is proved on the CPU"
}

// settle brings the key to the cards. One that is lost to the process meanwhile
// is as one that could not be used in the first place.
func (p *processors) settle(place func(*onCard) error) error {
	f := &p.a.flags.deviceFlags
	var left []*onCard
	for _, c := range p.cards {
		err := place(c)
		if err == nil {
			if lost := c.engine.Lost(); lost != nil {
				err = f.unusable(lost)
			}
		}
		switch {
		case err == nil:
			left = append(left, c)
		case errors.Is(err, gpu.ErrLost) && (!f.Device.Required() || f.all()):
			p.refuse = append(p.refuse, c.engine.Lost().Error())
			c.close()
		default:
			return err
		}
	}
	p.cards = left
	if len(left) == 0 && f.Device.Required() {
		return f.unusable(errors.New(strings.Join(p.refuse, "; ")))
	}
	return nil
}
