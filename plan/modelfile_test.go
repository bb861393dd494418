package plan_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
)

// TestModelRoundTrip: what is written is read as it was.
func TestModelRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z][a-z_. -]{0,8}`)
		part := rapid.Float64Range(0, 1)
		some := rapid.Float64Range(0, 1e9)
		bytes64 := rapid.Int64Range(0, 1<<40)
		space := rapid.Map(rapid.IntRange(0, alloc.MaxSpaces-1), func(n int) alloc.Space { return alloc.Space(n) })
		amount := func(label string) (a alloc.Amount) {
			for range rapid.IntRange(0, 2).Draw(t, label) {
				a[space.Draw(t, "space")] = bytes64.Draw(t, "bytes")
			}
			return a
		}
		buffer := func(readers bool) plan.Buffer {
			b := plan.Buffer{Name: name.Draw(t, "name"), Space: space.Draw(t, "space"), Bytes: bytes64.Draw(t, "bytes"), From: part.Draw(t, "from")}
			if !readers {
				b.Until = rapid.Float64Range(b.From, 1).Draw(t, "until")
				if b.Until == 0 {
					b.Until = 1
				}
			}
			for range rapid.IntRange(0, 2).Draw(t, "readers") {
				if readers {
					b.Readers = append(b.Readers, plan.Reader{Node: name.Draw(t, "node"), Until: part.Draw(t, "until")})
				}
			}
			return b
		}
		c := &plan.Costs{Nodes: map[string]plan.Node{}, Machine: plan.Machine{
			Cores: some.Draw(t, "cores"), Memory: amount("memory"), Base: amount("base"),
			Links:   []plan.Link{{Name: "pcie", BytesPerSecond: some.Draw(t, "speed") + 1}},
			Devices: []plan.Device{{Name: name.Draw(t, "device"), Space: alloc.Device(1), Link: "pcie", Speed: 2}},
		}}
		if rapid.Bool().Draw(t, "classes") {
			c.Items = []plan.Class{{Name: "x", Weight: some.Draw(t, "weight")}, {Time: some.Draw(t, "time"), Bytes: 0.5}}
		}
		for range rapid.IntRange(0, 3).Draw(t, "nodes") {
			n := plan.Node{Fails: part.Draw(t, "fails")}
			for range rapid.IntRange(0, 2).Draw(t, "steps") {
				n.Steps = append(n.Steps, plan.Step{Name: "s", Seconds: some.Draw(t, "seconds"), Spread: part.Draw(t, "spread"), Cores: some.Draw(t, "cores"),
					Device: name.Draw(t, "device"), Exclusive: rapid.Bool().Draw(t, "exclusive"), Link: name.Draw(t, "link"), LinkBytes: bytes64.Draw(t, "bytes")})
			}
			for range rapid.IntRange(0, 2).Draw(t, "makes") {
				n.Makes = append(n.Makes, buffer(true))
			}
			for range rapid.IntRange(0, 2).Draw(t, "scratch") {
				n.Scratch = append(n.Scratch, buffer(false))
			}
			if rapid.Bool().Draw(t, "need") {
				n.Need = pipeline.Need{Scratch: amount("scratch"), Ends: []string{"a", "b"}, Makes: []pipeline.Part{{Name: "c", Bytes: amount("part")}}}
			}
			c.Nodes[name.Draw(t, "node")] = n
		}
		var b bytes.Buffer
		if err := plan.WriteModel(&b, c); err != nil {
			t.Fatal(err)
		}
		got, err := plan.ReadModel(strings.NewReader(b.String()))
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		if !reflect.DeepEqual(got, c) {
			t.Fatalf("read\n%+v\nwant\n%+v\n%s", got, c, b.String())
		}
	})
}

const model = `# a comment
[machine]
cores = 2
memory = { host = "1GiB" }

[[machine.link]]
name = "pcie"
bytes-per-second = 1e9

[node.a]
[[node.a.step]]
seconds = 1
[[node.a.step]]
seconds = 2

[[node.a.makes]]
name = "x"
bytes = "1MiB"
readers = [
	{ node = "b", until = 0.5 },
]
`

// TestModelErrors: each error names its line and its key.
func TestModelErrors(t *testing.T) {
	if _, err := plan.ReadModel(strings.NewReader(model)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"cores = 2", "cores = -2", "line 3: key machine.cores: -2 is negative"},
		{"cores = 2", "cores = \"2\"", "line 3: key machine.cores: 2 is not a number"},
		{"cores = 2", "cores = nan", "line 3: key machine.cores: NaN"},
		{"cores = 2", "colour = 2", "line 3: key machine.colour: unknown key"},
		{`{ host = "1GiB" }`, `{ hots = "1GiB" }`, "line 4: key machine.memory.hots: unknown memory space"},
		{`{ host = "1GiB" }`, `{ host = "1 furlong" }`, "line 4: key machine.memory.host: "},
		{"1e9", "0", "line 2: key machine: machine: link pcie carries 0 bytes"},
		{"seconds = 2", "seconds = 2\nweight = 3", "line 15: key node.a.step.2.weight: unknown key"},
		{"seconds = 2", "seconds = [2]", "line 14: key node.a.step.2.seconds: [2] is not a number"},
		{"until = 0.5", "until = 1.5", "line 19: key node.a.makes.1.readers.1.until: 1.5 is more than 1"},
		{"bytes = \"1MiB\"", "bytes = -1", "line 18: key node.a.makes.1.bytes: size -1 is negative"},
		{"name = \"x\"", "name = 7", "line 17: key node.a.makes.1.name: 7 is not a text"},
		{"# a comment", "nodes = 1", "line 1: key nodes: unknown key"},
		{"[node.a]", "[node.a", "line 11, after the key \"machine.link\""},
		{"[node.a]", "[node.a]\nfails = 2", "line 11: key node.a.fails: 2 is more than 1"},
	} {
		_, err := plan.ReadModel(strings.NewReader(strings.Replace(model, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.new, err, c.want)
		}
	}
}

func FuzzReadModel(f *testing.F) {
	f.Add(model)
	var b bytes.Buffer
	if err := plan.WriteModel(&b, groth16Costs(0.1)); err != nil {
		f.Fatal(err)
	}
	f.Add(b.String())
	f.Add("[[node.a.step]]\n\"x\\\"y\" = '''\n'''\n")
	f.Add("node = [1, {a = 2}]\n[item]\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := plan.ReadModel(strings.NewReader(text))
		if err != nil {
			if !strings.Contains(err.Error(), "line ") && !strings.Contains(err.Error(), "toml") {
				t.Errorf("an error without a line: %v", err)
			}
			return
		}
		var b bytes.Buffer
		if err := plan.WriteModel(&b, c); err != nil {
			t.Fatal(err)
		}
		if _, err := plan.ReadModel(&b); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}
