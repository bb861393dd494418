package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/alloc"
)

type powerParams struct {
	Exponent int    `toml:"exponent"`
	Label    string `toml:"label"`
}

func testRegistry(t testing.TB) *Registry {
	reg := NewRegistry()
	for name, f := range map[string]Factory{
		"power": NewFactory(func(p powerParams) (Stage[int, int], error) {
			if p.Exponent < 1 {
				return nil, fmt.Errorf("exponent %d is less than 1", p.Exponent)
			}
			return NewStage("power", func(_ context.Context, n int) (int, error) {
				r := 1
				for range p.Exponent {
					r *= n
				}
				return r, nil
			}), nil
		}),
		"text": FactoryOf(NewStage("text", func(_ context.Context, n int) (string, error) { return fmt.Sprint(n), nil })),
		"show": FactoryOf(NewStage("show", func(_ context.Context, v Tuple2[int, string]) (string, error) {
			return fmt.Sprint(v.A, " ", v.B), nil
		})),
		"deep": FactoryOf(NewStage("deep", func(_ context.Context, v Tuple2[Tuple2[int, string], any]) (string, error) {
			return fmt.Sprint(v.A.A, v.A.B, v.B), nil
		})),
	} {
		if err := reg.Add(name, f); err != nil {
			t.Fatal(err)
		}
	}
	return reg
}

func testBindings(got *[]string) *Bindings {
	b := NewBindings()
	BindSource(b, "numbers", func(g *Graph, opts ...NodeOption) *Port[int] { return FromSlice(g, count0(6), intKey, opts...) })
	BindSink(b, "out", func(p *Port[string], opts ...NodeOption) {
		ToFunc(p, func(_ context.Context, _ Key, s string) error { *got = append(*got, s); return nil }, opts...)
	})
	return b
}

const squares = `
name = "squares"
on-error = "fail-key"

[budget]
host = "4GiB"

[[source]]
name = "numbers"

[[stage]]
name = "show" # before what it reads
from = "both"

[[join]]
name = "both"
from = ["square", "text"]

[[stage]]
name = "square"
use = "power"
from = "numbers"
workers = 4
capacity = "unbounded"
ordered = true
retry = 2
backoff = "10ms"
[stage.params]
exponent = 2

[[stage]]
name = "text"
from = "numbers"
capacity = 8

[[sink]]
name = "out"
from = "show"
`

func TestLoad(t *testing.T) {
	clean(t)
	var got []string
	g, err := Load(testRegistry(t), squares, testBindings(&got))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := g.WriteTOML(&text); err != nil {
		t.Fatal(err)
	}
	mustRun(t, g)
	slices.Sort(got)
	if fmt.Sprint(got) != "[0 0 1 1 16 4 25 5 4 2 9 3]" {
		t.Errorf("%q", got)
	}
	if s := g.Settings(); s.Stages["square"] != (StageSetting{4, Unbounded}) || s.Budget["host"] != Size(4*alloc.GiB) {
		t.Errorf("%+v", s)
	}
	// What is written is read again, and written the same.
	var got2 []string
	g2, err := Load(testRegistry(t), text.String(), testBindings(&got2))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text.String())
	}
	var text2 bytes.Buffer
	if err := g2.WriteTOML(&text2); err != nil || text2.String() != text.String() {
		t.Errorf("%v\n%s\n%s", err, text.String(), text2.String())
	}
	for _, s := range []string{"workers = 4", `capacity = "unbounded"`, `backoff = "10ms"`, `host = "4GiB"`, `on-error = "fail-key"`, "exponent = 2", `use = "power"`} {
		if !strings.Contains(text.String(), s) {
			t.Errorf("no %q in\n%s", s, text.String())
		}
	}
	mustRun(t, g2)
	slices.Sort(got2)
	if !slices.Equal(got, got2) {
		t.Errorf("%q", got2)
	}
}

func TestLoadNestedJoin(t *testing.T) {
	clean(t)
	var got []string
	g, err := Load(testRegistry(t), `
name = "deep"
source = [{name = "numbers"}]
sink = [{name = "out", from = "deep"}]
[[stage]]
name = "text"
from = "numbers"
[[join]]
name = "inner"
from = ["numbers", "text"]
[[join]]
name = "outer"
from = ["inner", "numbers"]
[[stage]]
name = "deep"
from = "outer"
`, testBindings(&got))
	if err != nil {
		t.Fatal(err)
	}
	mustRun(t, g)
	slices.Sort(got)
	if fmt.Sprint(got) != "[000 111 222 333 444 555]" {
		t.Errorf("%q", got)
	}
}

func TestLoadErrors(t *testing.T) {
	var typed *TypeError
	for _, c := range []struct{ old, new, want string }{
		{`name = "squares"`, `name = "squares`, "line 2"},
		{`name = "squares"`, `nam = "squares"`, "line 2: unknown key nam"},
		{`name = "squares"`, `name = 5`, "line 2: key name: 5 is not a string"},
		{`"fail-key"`, `"never"`, "line 3: on-error is \"never\""},
		{`host = "4GiB"`, `host = "4 elephants"`, "line 6: \"4 elephants\" is no number of bytes"},
		{`host = "4GiB"`, `moon = "4GiB"`, "line 6: unknown memory space"},
		{`name = "numbers"`, `name = "letters"`, "line 9: source \"letters\" is bound to nothing (known: numbers)"},
		{`name = "show" #`, `name = "shw" #`, "line 12: stage \"shw\" is not in the registry (known: deep, power, show, text)"},
		{`from = "both"`, `from = "bth"`, "line 13: from = \"bth\" is no source, stage or join"},
		{`workers = 4`, `wrokers = 4`, "line 23: unknown key wrokers"},
		{`workers = 4`, `workers = "four"`, "line 23: "},
		{`workers = 4`, `workers = -4`, "line 19: stage square: -4 workers are less than 1"},
		{`capacity = 8`, `capacity = "many"`, "line 34: "},
		{`backoff = "10ms"`, `backoff = "10 parsecs"`, "line 27: "},
		{`exponent = 2`, `exponnt = 2`, "line 29: stage square: unknown key exponnt"},
		{`exponent = 2`, `exponent = 0`, "line 28: stage square: exponent 0 is less than 1"},
		{`["square", "text"]`, `["square", "text", "cube"]`, "line 17: from = \"cube\""},
		{`["square", "text"]`, `["square"]`, "line 17: join both has 1 inputs"},
		{`["square", "text"]`, `["text", "square"]`, "line 13: text yields string, but show takes int"},
		{`from = "both"`, `from = "square"`, "line 13: square yields int, but show takes pipeline.Tuple2[int,string]"},
		{`from = "show"`, `from = "square"`, "line 38: square yields int, but out takes string"},
		{`name = "out"`, `name = "in"`, "line 37: sink \"in\" is bound to nothing (known: out)"},
		{`name = "text"`, `name = "square"
use = "text"`, "line 31: two nodes have the name \"square\""},
		{"[[sink]]", "[[sank]]", "line 36: unknown key sank"},
		{"[[source]]", "[source]", "line 8: source is an array of tables"},
		{"from = \"numbers\"\nworkers", "from = \"show\"\nworkers", "the links form a circle"},
	} {
		if !strings.Contains(squares, c.old) {
			t.Fatalf("no %q", c.old)
		}
		text := strings.Replace(squares, c.old, c.new, 1)
		var got []string
		g, err := Load(testRegistry(t), text, testBindings(&got))
		if err == nil {
			t.Errorf("%q for %q: no error (%v)", c.new, c.old, g.Err())
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q:\n got %v\nwant %s", c.new, c.old, err, c.want)
		}
		if strings.Contains(c.want, "yields") && !errors.As(err, &typed) {
			t.Errorf("%v is no TypeError", err)
		}
	}
	if _, err := Load(testRegistry(t), squares, nil); err == nil {
		t.Error("no error without bindings")
	}
}

func TestRegistry(t *testing.T) {
	reg := testRegistry(t)
	if err := reg.Add("text", FactoryOf(NewStage("x", double))); err == nil {
		t.Error("a name was given twice")
	}
	if err := reg.Add("", Factory{}); err == nil {
		t.Error("an empty factory was added")
	}
	if s := reg.Signature("text"); s != "int → string" || reg.Signature("nobody") != "" {
		t.Error(s)
	}
	if err := reg.Add("panics", NewFactory(func(struct{}) (Stage[int, int], error) { panic("no") })); err != nil {
		t.Fatal(err)
	}
	if err := reg.Add("nil", NewFactory(func(struct{}) (Stage[int, int], error) { return nil, nil })); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"panics", "nil"} {
		f, _ := reg.find(n)
		if _, err := f.make(nil); err == nil {
			t.Errorf("%s: no error", n)
		}
	}
}

func TestSettings(t *testing.T) {
	s, err := ParseSettings("a.workers=4", " b.capacity = unbounded", "budget.host=4GiB", "a.capacity=0", "x.y.workers=2")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a.capacity=1", "a.workers=4", "b.capacity=unbounded", "budget.host=4GiB", "x.y.workers=2"}
	if got := s.List(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	var b bytes.Buffer
	if err := s.WriteTOML(&b); err != nil {
		t.Fatal(err)
	}
	back, err := ReadSettings(&b)
	if err != nil || !slices.Equal(back.List(), want) {
		t.Errorf("%v %q", err, back.List())
	}
	for _, bad := range []string{"", "a", "a.workers", "a.workers=0", "a.workers=x", "a.colour=1", "a.capacity=-1", "budget.moon=1", "budget.host=x", ".workers=1", " .workers=1"} {
		if _, err := ParseSettings(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"[budget]\nhost = 1\n[stages.a]\nworker = 1\n", "line 4: unknown key stages.a.worker"},
		{"[budget]\nhots = 1\n", "hots"},
		{"[stages.a]\nworkers = -1\n", "-1 workers"},
		{"x", "line 1"},
	} {
		if _, err := ReadSettings(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
	// Settings win over options, whichever come first, and merge.
	g := New("g", WithSettings(s), Budget(alloc.Host, 1))
	ToFunc(Via(Via(FromSlice(g, count0(1), nil), NewStage("a", double), Workers(2)), NewStage("b", double), Capacity(2)), ignore)
	if err := g.Apply(Settings{Stages: map[string]StageSetting{"b": {Workers: 3}, "x.y": {}}}); err != nil {
		t.Fatal(err)
	}
	if got := g.Settings().List(); fmt.Sprint(got) != "[a.capacity=1 a.workers=4 b.capacity=unbounded b.workers=3 budget.host=4GiB]" {
		t.Errorf("%v", got)
	}
	if err := g.Err(); err == nil || !strings.Contains(err.Error(), `"x.y"`) {
		t.Errorf("%v", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(squares)
	f.Add("name = 'x'\n[[stage]]\nname = '''a\nb'''\n[[join]]\nfrom = [\n'a',\n]\n")
	f.Fuzz(func(t *testing.T, text string) {
		var got []string
		g, err := Load(testRegistry(t), text, testBindings(&got))
		if (g == nil) == (err == nil) {
			t.Fatalf("%v, %v", g, err)
		}
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := g.WriteTOML(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(testRegistry(t), b.String(), testBindings(&got)); err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
	})
}

func FuzzSettings(f *testing.F) {
	f.Add("a.workers=4", "[stages.a]\nworkers = 4\n")
	f.Fuzz(func(t *testing.T, item, text string) {
		if s, err := ParseSettings(item); err == nil {
			if back, err := ParseSettings(s.List()...); err != nil || !slices.Equal(back.List(), s.List()) {
				t.Fatalf("%q: %v, %q", item, err, back.List())
			}
		}
		if s, err := ReadSettings(strings.NewReader(text)); err == nil {
			var b bytes.Buffer
			if err := s.WriteTOML(&b); err != nil {
				t.Fatal(err)
			}
			if _, err := ReadSettings(&b); err != nil {
				t.Fatalf("%v in\n%s", err, b.String())
			}
		}
	})
}
