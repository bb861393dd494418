package plan

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/BurntSushi/toml"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// ReadModel reads costs from a model file, in TOML:
//
//	[machine]
//	cores = 96
//	memory = { host = "755GiB", device0 = "14.5GiB" }   # a run that needs more is killed
//	base = { host = "69GiB" }                           # taken all the time
//	[[machine.link]]
//	name = "pcie"
//	bytes-per-second = 25e9
//	[[machine.device]]
//	name = "gpu"
//	space = "device0"
//	link = "pcie"
//	speed = 1                    # twice as fast as measured: 2
//	pool = "cards"               # each item keeps to one of them
//	places = 4                   # items that it has at once; none: as many as come
//	width = 1                    # steps that it does at once as fast as one
//
//	[[item]]                     # kinds of items; none: all are alike
//	name = "large"
//	weight = 1
//	time = 2                     # factor on seconds and link bytes
//	bytes = 2                    # factor on buffers and needs
//
//	[node.ntt]
//	fails = 0.01                 # chance of an error that may be tried again
//	lanes = 1                    # calls that one device of a pool has at once
//	[[node.ntt.step]]
//	name = "transform"
//	seconds = 0.7
//	spread = 0.05                # σ of the lognormal factor
//	cores = 1
//	device = "gpu"
//	exclusive = true
//	link = "pcie"                # the device's, if it is not given
//	link-bytes = "12GiB"
//	[[node.ntt.makes]]
//	name = "h"
//	space = "device0"            # host, if it is not given
//	bytes = "4GiB"
//	from = 0.5                   # fraction of the call
//	readers = [ { node = "h-msm", until = 0.9 } ]
//	[[node.ntt.scratch]]
//	name = "twiddles"
//	bytes = "64MiB"
//	from = 0
//	until = 0.8
//	[node.ntt.need]              # what the stage states; from makes and scratch, if it is not given
//	scratch = { host = "64MiB" }
//	ends = ["b", "c"]
//	[[node.ntt.need.makes]]
//	name = "h"
//	bytes = { device0 = "4GiB" }
//
// Each error names the line and the key.
func ReadModel(r io.Reader) (*Costs, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read a model: %w", err)
	}
	raw := make(map[string]any)
	if _, err := toml.Decode(string(data), &raw); err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			return nil, fmt.Errorf("read a model: line %d, after the key %q: %s", pe.Position.Line, pe.LastKey, pe.Message)
		}
		return nil, fmt.Errorf("read a model: %w", err)
	}
	rd := &modelReader{lines: linesOf(string(data))}
	c := rd.costs(&table{rd: rd, m: raw})
	if len(rd.errs) > 0 {
		return nil, fmt.Errorf("read a model: %w", errors.Join(rd.errs...))
	}
	return c, nil
}

// WriteModel writes costs as ReadModel reads them.
func WriteModel(w io.Writer, c *Costs) error {
	f := fileModel{Node: make(map[string]fileNode)}
	m := &c.Machine
	f.Machine.Cores = m.Cores
	f.Machine.Memory, f.Machine.Base = sizes(m.Memory), sizes(m.Base)
	for _, l := range m.Links {
		f.Machine.Link = append(f.Machine.Link, fileLink(l))
	}
	for _, d := range m.Devices {
		f.Machine.Device = append(f.Machine.Device, fileDevice(d))
	}
	for _, i := range c.Items {
		f.Item = append(f.Item, fileClass(i))
	}
	for name, n := range c.Nodes {
		fn := fileNode{Fails: n.Fails, Lanes: n.Lanes, Makes: fileBuffers(n.Makes), Scratch: fileBuffers(n.Scratch)}
		for _, s := range n.Steps {
			fn.Step = append(fn.Step, fileStep{s.Name, s.Seconds, s.Spread, s.Cores, s.Device, s.Exclusive, s.Link, pipeline.Size(s.LinkBytes)})
		}
		if x := n.Need; !x.Scratch.IsZero() || len(x.Makes) > 0 || len(x.Ends) > 0 {
			fn.Need = &fileNeed{Scratch: sizes(x.Scratch), Ends: x.Ends}
			for _, p := range x.Makes {
				fn.Need.Makes = append(fn.Need.Makes, filePart{p.Name, sizes(p.Bytes)})
			}
		}
		f.Node[name] = fn
	}
	if err := toml.NewEncoder(w).Encode(f); err != nil {
		return fmt.Errorf("write a model: %w", err)
	}
	return nil
}

type fileModel struct {
	Machine struct {
		Cores  float64                  `toml:"cores,omitzero"`
		Memory map[string]pipeline.Size `toml:"memory,omitempty"`
		Base   map[string]pipeline.Size `toml:"base,omitempty"`
		Link   []fileLink               `toml:"link,omitempty"`
		Device []fileDevice             `toml:"device,omitempty"`
	} `toml:"machine"`
	Item []fileClass         `toml:"item,omitempty"`
	Node map[string]fileNode `toml:"node,omitempty"`
}

type fileLink struct {
	Name           string  `toml:"name"`
	BytesPerSecond float64 `toml:"bytes-per-second"`
}

type fileDevice struct {
	Name   string      `toml:"name"`
	Space  alloc.Space `toml:"space"`
	Link   string      `toml:"link,omitempty"`
	Speed  float64     `toml:"speed,omitzero"`
	Pool   string      `toml:"pool,omitempty"`
	Places int         `toml:"places,omitzero"`
	Width  float64     `toml:"width,omitzero"`
}

type fileClass struct {
	Name   string  `toml:"name"`
	Weight float64 `toml:"weight,omitzero"`
	Time   float64 `toml:"time,omitzero"`
	Bytes  float64 `toml:"bytes,omitzero"`
}

type fileNode struct {
	Fails   float64      `toml:"fails,omitzero"`
	Lanes   int          `toml:"lanes,omitzero"`
	Step    []fileStep   `toml:"step,omitempty"`
	Makes   []fileBuffer `toml:"makes,omitempty"`
	Scratch []fileBuffer `toml:"scratch,omitempty"`
	Need    *fileNeed    `toml:"need,omitempty"`
}

type fileStep struct {
	Name      string        `toml:"name,omitempty"`
	Seconds   float64       `toml:"seconds,omitzero"`
	Spread    float64       `toml:"spread,omitzero"`
	Cores     float64       `toml:"cores,omitzero"`
	Device    string        `toml:"device,omitempty"`
	Exclusive bool          `toml:"exclusive,omitempty"`
	Link      string        `toml:"link,omitempty"`
	LinkBytes pipeline.Size `toml:"link-bytes,omitzero"`
}

type fileBuffer struct {
	Name    string        `toml:"name"`
	Space   alloc.Space   `toml:"space"`
	Bytes   pipeline.Size `toml:"bytes"`
	From    float64       `toml:"from,omitzero"`
	Until   float64       `toml:"until,omitzero"`
	Readers []fileReader  `toml:"readers,omitempty"`
}

type fileReader struct {
	Node  string  `toml:"node"`
	Until float64 `toml:"until,omitzero"`
}

type fileNeed struct {
	Scratch map[string]pipeline.Size `toml:"scratch,omitempty"`
	Ends    []string                 `toml:"ends,omitempty"`
	Makes   []filePart               `toml:"makes,omitempty"`
}

type filePart struct {
	Name  string                   `toml:"name"`
	Bytes map[string]pipeline.Size `toml:"bytes,omitempty"`
}

func fileBuffers(bs []Buffer) (out []fileBuffer) {
	for _, b := range bs {
		f := fileBuffer{Name: b.Name, Space: b.Space, Bytes: pipeline.Size(b.Bytes), From: b.From, Until: b.Until}
		for _, r := range b.Readers {
			f.Readers = append(f.Readers, fileReader(r))
		}
		out = append(out, f)
	}
	return out
}

func sizes(a alloc.Amount) map[string]pipeline.Size {
	out := make(map[string]pipeline.Size)
	for i, n := range a {
		if n != 0 {
			out[alloc.Space(i).String()] = pipeline.Size(n)
		}
	}
	return out
}

// costs reads the whole file.
func (rd *modelReader) costs(t *table) *Costs {
	c := &Costs{Nodes: make(map[string]Node)}
	if m := t.table("machine"); m != nil {
		c.Machine = Machine{Cores: m.float("cores"), Memory: m.amount("memory"), Base: m.amount("base")}
		for _, l := range m.tables("link") {
			c.Machine.Links = append(c.Machine.Links, Link{l.text("name"), l.float("bytes-per-second")})
			l.rest()
		}
		for _, d := range m.tables("device") {
			c.Machine.Devices = append(c.Machine.Devices, Device{d.text("name"), d.space("space"), d.text("link"), d.float("speed"), d.text("pool"), int(d.float("places")), d.float("width")})
			d.rest()
		}
		for _, err := range c.Machine.check() {
			m.fault("", err)
		}
		m.rest()
	}
	for _, i := range t.tables("item") {
		c.Items = append(c.Items, Class{i.text("name"), i.float("weight"), i.float("time"), i.float("bytes")})
		i.rest()
	}
	if ns := t.table("node"); ns != nil {
		for _, name := range slices.Sorted(maps.Keys(ns.m)) {
			if n := ns.table(name); n != nil {
				c.Nodes[name] = rd.node(n)
			}
		}
	}
	t.rest()
	return c
}

func (rd *modelReader) node(t *table) Node {
	n := Node{Fails: t.part("fails"), Lanes: int(t.float("lanes")), Makes: rd.buffers(t, "makes"), Scratch: rd.buffers(t, "scratch")}
	for _, s := range t.tables("step") {
		n.Steps = append(n.Steps, Step{
			Name: s.text("name"), Seconds: s.float("seconds"), Spread: s.float("spread"), Cores: s.float("cores"),
			Device: s.text("device"), Exclusive: s.flag("exclusive"), Link: s.text("link"), LinkBytes: s.size("link-bytes"),
		})
		s.rest()
	}
	if x := t.table("need"); x != nil {
		n.Need = pipeline.Need{Scratch: x.amount("scratch"), Ends: x.texts("ends")}
		for _, p := range x.tables("makes") {
			n.Need.Makes = append(n.Need.Makes, pipeline.Part{Name: p.text("name"), Bytes: p.amount("bytes")})
			p.rest()
		}
		x.rest()
	}
	t.rest()
	if err := n.check(); err != nil {
		t.fault("", err)
	}
	return n
}

func (rd *modelReader) buffers(t *table, key string) (out []Buffer) {
	for _, b := range t.tables(key) {
		x := Buffer{Name: b.text("name"), Space: b.space("space"), Bytes: b.size("bytes"), From: b.part("from"), Until: b.part("until")}
		for _, r := range b.tables("readers") {
			x.Readers = append(x.Readers, Reader{r.text("node"), r.part("until")})
			r.rest()
		}
		b.rest()
		out = append(out, x)
	}
	return out
}
