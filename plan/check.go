package plan

import (
	"fmt"
	"math"
	"slices"
)

// notNumber reports whether f cannot be an amount of anything.
func notNumber(f float64) bool { return f < 0 || math.IsNaN(f) || math.IsInf(f, 0) }

// check finds what is wrong with a machine by itself.
func (m *Machine) check() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("machine: "+format, args...)) }
	if notNumber(m.Cores) {
		bad("%v cores", m.Cores)
	}
	for i := range m.Memory {
		if m.Memory[i] < 0 || m.Base[i] < 0 {
			bad("memory or base is negative")
			break
		}
	}
	for i, l := range m.Links {
		switch {
		case l.Name == "" || slices.ContainsFunc(m.Links[:i], func(o Link) bool { return o.Name == l.Name }):
			bad("link %d has no name, or that of another: %q", i+1, l.Name)
		case notNumber(l.BytesPerSecond) || l.BytesPerSecond == 0:
			bad("link %s carries %v bytes a second", l.Name, l.BytesPerSecond)
		}
	}
	for i, d := range m.Devices {
		switch {
		case d.Name == "":
			bad("device %d has no name", i+1)
		case notNumber(d.Speed), notNumber(d.Width):
			bad("device %s has a speed of %v and a width of %v", d.Name, d.Speed, d.Width)
		case d.Places < 0:
			bad("device %s has %d places", d.Name, d.Places)
		case d.Link != "" && !slices.ContainsFunc(m.Links, func(l Link) bool { return l.Name == d.Link }):
			bad("device %s is on link %q, which there is not", d.Name, d.Link)
		}
	}
	return errs
}

// check finds what is wrong with the costs of a node by themselves.
func (n *Node) check() error {
	if notNumber(n.Fails) || n.Fails > 1 {
		return fmt.Errorf("the chance to fail is %v, not from 0 to 1", n.Fails)
	}
	if n.Lanes < 0 {
		return fmt.Errorf("%d lanes", n.Lanes)
	}
	for i, s := range n.Steps {
		if notNumber(s.Seconds) || notNumber(s.Spread) || notNumber(s.Cores) || s.LinkBytes < 0 {
			return fmt.Errorf("step %d: seconds, spread, cores or bytes are negative or not finite", i+1)
		}
	}
	for _, b := range n.Scratch {
		if len(b.Readers) > 0 {
			return fmt.Errorf("scratch %s has readers", b.Name)
		}
		if err := b.check(); err != nil {
			return fmt.Errorf("scratch %s: %w", b.Name, err)
		}
		if b.From > or1(b.Until) {
			return fmt.Errorf("scratch %s lives from %v until %v", b.Name, b.From, b.Until)
		}
	}
	for _, b := range n.Makes {
		if err := b.check(); err != nil {
			return fmt.Errorf("buffer %s: %w", b.Name, err)
		}
		for _, r := range b.Readers {
			if notNumber(r.Until) || r.Until > 1 {
				return fmt.Errorf("buffer %s: reader %s reads until %v, not from 0 to 1", b.Name, r.Node, r.Until)
			}
		}
	}
	return nil
}

func (b *Buffer) check() error {
	switch {
	case !b.Space.Valid():
		return fmt.Errorf("there is no space %v", b.Space)
	case b.Bytes < 0:
		return fmt.Errorf("%d bytes", b.Bytes)
	case notNumber(b.From) || b.From > 1 || notNumber(b.Until) || b.Until > 1:
		return fmt.Errorf("from %v until %v is not within 0 and 1", b.From, b.Until)
	}
	return nil
}
