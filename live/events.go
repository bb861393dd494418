package live

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// item is one that is in flight.
type item struct {
	key      pipeline.Key
	id       uint64 // of the attempt that is under way
	admitted time.Duration
	attempt  int
	on       alloc.Space // the card that it is on; Host: none is known
	begun    uint64      // nodes below 64 that have begun with it, by their bits
	places   []Place
}

// OnEvent is called by the pipeline.
func (s *State) OnEvent(e pipeline.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard++
	n := -1
	if e.Stage != "" {
		n = s.nodeOf(e.Stage)
	}
	switch e.Kind {
	case pipeline.Admitted:
		s.admit(e)
	case pipeline.Queued:
		s.arrive(n, e)
	case pipeline.WaitedIn:
		if e.Call != 0 && n >= 0 { // it ran, and did not use its worker
			s.nodes[n].reckon(e.At)
			s.nodes[n].area -= e.Wait
		}
	case pipeline.Begin:
		s.count(n, e.At, 1)
		s.begin(n, e)
	case pipeline.End:
		s.count(n, e.At, -1)
		s.finish(n, e)
	case pipeline.Sent:
		s.gone(n, Leaving, e)
	case pipeline.Met:
		s.gone(n, InJoin, e)
	case pipeline.Left:
		if it := s.items[e.Key]; it != nil {
			if e.Err == nil {
				s.left++
				s.latency += e.At - it.admitted
			}
			s.offCard(it)
			delete(s.items, e.Key)
		}
	case pipeline.Failed:
		s.fails.push(Failure{At: e.At, Stage: e.Stage, Key: e.Key, Name: s.nameOf(e.Key), Error: errorText(e.Err)})
	case pipeline.Retried:
		s.notes.push(Note{At: e.At, Text: fmt.Sprintf("%s: %s is tried again after: %s", s.nameOf(e.Key), e.Stage, errorText(e.Err))})
	case pipeline.Restarted:
		s.notes.push(Note{At: e.At, Text: fmt.Sprintf("%s: made again after attempt %d failed in %s: %s", s.nameOf(e.Key), e.Attempt, e.Stage, errorText(e.Err))})
		if it := s.items[e.Key]; it != nil {
			it.attempt = e.Attempt
			it.anew(0)
		}
	}
	switch e.Kind {
	case pipeline.Admitted, pipeline.End, pipeline.Left, pipeline.Retried, pipeline.Failed, pipeline.Restarted:
		s.events.push(Event{At: e.At, Kind: e.Kind.String(), Stage: e.Stage, Key: e.Key, Wait: e.Wait, Bytes: e.Bytes, Attempt: e.Attempt, Error: errorText(e.Err)})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	var in *pipeline.StageError
	if errors.As(err, &in) && in.Err != nil {
		err = in.Err // the stage and the item are told anyway
	}
	return err.Error()
}

func (s *State) nameOf(key pipeline.Key) string {
	if s.opt.NameOf != nil {
		return s.opt.NameOf(key)
	}
	return fmt.Sprintf("%s/%d", key.Job, key.Part)
}

// nodeOf is the index of a node, which is made if Watch did not tell of it.
func (s *State) nodeOf(name string) int {
	i, ok := s.byName[name]
	if !ok {
		i = len(s.nodes)
		s.byName[name] = i
		s.nodes = append(s.nodes, node{name: name})
	}
	return i
}

// count reckons the integral of what runs, and changes it by d.
func (s *State) count(n int, at time.Duration, d int) {
	if n < 0 {
		return
	}
	nd := &s.nodes[n]
	nd.reckon(at)
	nd.running = max(nd.running+d, 0)
}

// reckon brings the integral up to at. Events of several goroutines come a
// little out of order; what is late counts from where the integral is.
func (nd *node) reckon(at time.Duration) {
	if at > nd.changed {
		nd.area += time.Duration(nd.running) * (at - nd.changed)
		nd.changed = at
	}
}

func (s *State) admit(e pipeline.Event) {
	if it := s.items[e.Key]; it != nil {
		if it.id == 0 {
			it.anew(e.Item) // made again
		}
		return
	}
	if len(s.items) >= MaxItems {
		return
	}
	s.items[e.Key] = &item{key: e.Key, id: e.Item, admitted: e.At}
}

// anew begins an attempt. What is still heard of the one before does not count.
func (it *item) anew(id uint64) {
	it.on = alloc.Host
	it.id, it.begun, it.places = id, 0, it.places[:0]
}

// itemOf is the item of an event, nil if it is not known or the event is of an
// attempt that has failed.
func (s *State) itemOf(n int, e pipeline.Event) *item {
	it := s.items[e.Key]
	if it == nil || n < 0 || e.Item != it.id {
		return nil
	}
	return it
}

func bit(n int) uint64 {
	if n < 0 || n >= 64 {
		return 0
	}
	return 1 << n
}

// arrive puts the item before a node. Who puts a value into a queue tells of it
// after the fact, so the stage may have begun by then.
func (s *State) arrive(n int, e pipeline.Event) {
	it := s.itemOf(n, e)
	if it == nil || it.begun&bit(n) != 0 {
		return
	}
	where := InQueue
	if s.nodes[n].kind == pipeline.KindJoin {
		where = InJoin
	}
	for i := range it.places {
		if it.places[i].Node == n {
			it.places[i].Bytes += e.Bytes
			return
		}
	}
	it.places = append(it.places, Place{Node: n, State: where, Since: e.At, Bytes: e.Bytes})
}

func (s *State) begin(n int, e pipeline.Event) {
	it := s.itemOf(n, e)
	if it == nil {
		return
	}
	it.begun |= bit(n)
	it.places = append(slices.DeleteFunc(it.places, func(p Place) bool { return p.Node == n }),
		Place{Node: n, State: Running, Since: e.At, Bytes: e.Bytes})
}

// gone takes a place away: a join that has completed, or a stage whose output
// has been taken.
func (s *State) gone(n int, state string, e pipeline.Event) {
	if it := s.itemOf(n, e); it != nil {
		it.places = slices.DeleteFunc(it.places, func(p Place) bool { return p.Node == n && p.State == state })
	}
}

func (s *State) finish(n int, e pipeline.Event) {
	it := s.itemOf(n, e)
	if it == nil {
		return
	}
	s.onCard(it, &e)
	it.places = slices.DeleteFunc(it.places, func(p Place) bool { return p.Node == n })
	if e.Err == nil && s.nodes[n].feeds {
		it.places = append(it.places, Place{Node: n, State: Leaving, Since: e.At, Bytes: e.Bytes})
	}
}
