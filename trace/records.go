package trace

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// recordError says in which record something is wrong.
type recordError struct {
	what string
	err  error
}

func (e *recordError) Error() string { return e.what + ": " + e.err.Error() }
func (e *recordError) Unwrap() error { return e.err }

var recordNames = [...]string{"record", "start", "end", "string", "needs", "event", "memory", "sample"}

// cursor reads fields. After an error everything is zero.
type cursor struct {
	p   []byte
	err error
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.p = nil
}

func (c *cursor) byte() byte {
	if len(c.p) == 0 {
		c.fail(errShort)
		return 0
	}
	b := c.p[0]
	c.p = c.p[1:]
	return b
}

func (c *cursor) uint() uint64 {
	v, n := binary.Uvarint(c.p)
	if n <= 0 {
		c.fail(errShort)
		return 0
	}
	c.p = c.p[n:]
	return v
}

func (c *cursor) int() int64 {
	v, n := binary.Varint(c.p)
	if n <= 0 {
		c.fail(errShort)
		return 0
	}
	c.p = c.p[n:]
	return v
}

// upTo is a number of at most limit.
func (c *cursor) upTo(limit uint64) uint64 {
	v := c.uint()
	if v > limit {
		c.fail(errNumber)
		return 0
	}
	return v
}

func (c *cursor) bytes() []byte {
	n := c.uint()
	if n > uint64(len(c.p)) {
		c.fail(errShort)
		return nil
	}
	b := c.p[:n]
	c.p = c.p[n:]
	return b
}

// maxTime is what times may come to: 100 years.
const maxTime = 100 * 365 * 24 * time.Hour

// frame takes the records of a frame in.
func (b *builder) frame(p []byte) error {
	c := &cursor{p: p}
	var last time.Duration
	for len(c.p) > 0 && !b.ended {
		kind := c.byte()
		d := c.int()
		at := last + time.Duration(d)
		if d > int64(maxTime) || d < -int64(maxTime) || at < 0 || at > maxTime {
			c.fail(errNumber)
		}
		last = at
		if c.err == nil {
			b.record(c, kind, at)
		}
		if c.err != nil {
			name := recordNames[0]
			if int(kind) < len(recordNames) {
				name = recordNames[kind]
			}
			return &recordError{name, c.err}
		}
	}
	return nil
}

func (b *builder) record(c *cursor, kind byte, at time.Duration) {
	if (kind == recStart) == b.started {
		c.fail(errors.New("the start of the run has to come first, and once"))
		return
	}
	b.until = max(b.until, at)
	switch kind {
	case recStart:
		var h header
		text := c.bytes()
		if len(text) > maxStart {
			c.fail(errNumber)
			return
		}
		if err := json.Unmarshal(text, &h); err != nil {
			c.fail(err)
			return
		}
		if err := checkGraph(h.Graph); err != nil {
			c.fail(err)
			return
		}
		b.started = true
		b.t.Meta, b.t.Graph = h.Meta, h.Graph
	case recEnd:
		var f footer
		if err := json.Unmarshal(c.bytes(), &f); err != nil {
			c.fail(err)
			return
		}
		if f.Wall < 0 || f.Wall > maxTime {
			c.fail(errNumber)
			return
		}
		b.t.Wall, b.t.Err, b.ended = f.Wall, f.Err, true
		if len(f.Devices) == len(b.t.Meta.Devices) && len(f.Devices) > 0 {
			b.t.Meta.Devices, b.t.Meta.Links = f.Devices, f.Links
		}
	case recString:
		b.strings = append(b.strings, string(c.bytes()))
	case recNeeds:
		var needs []NodeNeed
		if err := json.Unmarshal(c.bytes(), &needs); err != nil {
			c.fail(err)
			return
		}
		b.needs = append(b.needs, needs)
	case recEvent:
		b.readEvent(c, at)
	case recMemory:
		b.readMemory(c, at)
	case recSample:
		s := Sample{At: at, CPU: time.Duration(c.upTo(math.MaxInt64)), RSS: int64(c.upTo(math.MaxInt64))}
		if c.err == nil {
			b.t.Samples = append(b.t.Samples, s)
		}
	default:
		c.fail(fmt.Errorf("kind %d is not known", kind))
	}
}

func checkGraph(g pipeline.Topology) error {
	for i, n := range g.Nodes {
		for _, p := range n.Preds {
			if p < 0 || p >= i {
				return fmt.Errorf("node %s has predecessor %d, which does not stand before it", n.Name, p)
			}
		}
		if len(n.Preds) > 255 || n.Workers < 0 || n.Workers > 1<<20 {
			return fmt.Errorf("node %s: %w", n.Name, errNumber)
		}
	}
	return nil
}

// event is one as it was recorded.
type event struct {
	kind              pipeline.EventKind
	at                time.Duration
	node              int
	item, call        uint64
	key               pipeline.Key
	err               string
	attempt, slot     int
	refs              []uint64
	needs             []NodeNeed
	workers, capacity int
	wait              time.Duration
}

func (b *builder) readEvent(c *cursor, at time.Duration) {
	e := event{kind: pipeline.EventKind(c.byte()), at: at}
	has := c.byte()
	e.node = int(c.upTo(uint64(len(b.t.Graph.Nodes)))) - 1
	e.item = c.uint()
	if has&hasCall != 0 {
		e.call = c.uint()
	}
	if has&hasKey != 0 {
		e.key.Job = string(c.bytes())
		e.key.Part = int(c.int())
	}
	if has&hasErr != 0 {
		if e.err = string(c.bytes()); e.err == "" {
			e.err = "an error without a text"
		}
	}
	if has&hasAttempt != 0 {
		e.attempt = int(c.upTo(math.MaxInt32))
	}
	if has&hasSlot != 0 {
		e.slot = int(c.upTo(255))
	}
	if has&hasRefs != 0 {
		n := c.upTo(uint64(len(c.p))) // each is a byte at least
		e.refs = make([]uint64, 0, n)
		for range n {
			e.refs = append(e.refs, c.uint())
		}
	}
	if has&hasNeeds != 0 {
		if i := c.uint(); i < uint64(len(b.needs)) {
			e.needs = b.needs[i]
		} else {
			c.fail(errNumber)
		}
	}
	if has&hasNumbers != 0 {
		e.workers = int(c.upTo(1 << 20))
		n := c.int()
		switch e.kind {
		case pipeline.WaitedIn:
			if n < 0 || n > int64(maxTime) {
				c.fail(errNumber)
			}
			e.wait = time.Duration(n)
		default:
			e.capacity = int(n)
		}
	}
	if c.err == nil {
		b.event(&e)
	}
}

// change is one of what alloc counts, as it was recorded.
type change struct {
	what           alloc.ChangeKind
	at             time.Duration
	space          alloc.Space
	kind           alloc.Kind
	id, tag        uint64
	stage, purpose string
	from           string
	bytes          int64
}

func (b *builder) readMemory(c *cursor, at time.Duration) {
	m := change{at: at, what: alloc.ChangeKind(c.byte()), space: alloc.Space(c.byte()), kind: alloc.Kind(c.byte())}
	m.id = c.uint()
	name := func() string {
		if i := c.uint(); i < uint64(len(b.strings)) {
			return b.strings[i]
		}
		c.fail(errNumber)
		return ""
	}
	m.stage, m.purpose = name(), name()
	m.bytes = int64(c.upTo(1 << 60))
	switch m.what {
	case alloc.Born:
		m.tag = c.uint()
	case alloc.Handed:
		m.from = name()
	case alloc.Present, alloc.Died:
	default:
		c.fail(fmt.Errorf("change %d is not known", m.what))
	}
	if !m.space.Valid() || m.kind > alloc.MappedFile {
		c.fail(errNumber)
	}
	if c.err == nil {
		b.change(&m)
	}
}
