package plan

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// randomModel is a graph and costs that are drawn by a seed: the standard
// pipeline, a chain, or branches that meet again, on a machine with few cores,
// with buffers that make a budget matter.
func randomModel(seed uint64) (pipeline.Topology, *Costs, pipeline.Settings) {
	rng := rand.New(rand.NewPCG(seed, 77))
	t := pipeline.Topology{Name: "random", Policy: "stop-all", Nodes: []pipeline.Node{{Name: "source", Kind: pipeline.KindSource}}}
	stage := func(preds ...int) int {
		t.Nodes = append(t.Nodes, pipeline.Node{Name: fmt.Sprintf("s%d", len(t.Nodes)), Kind: pipeline.KindStage,
			Preds: preds, Workers: 1, Capacity: 1, Uses: true})
		return len(t.Nodes) - 1
	}
	if seed%2 == 0 { // a chain
		at := 0
		for range 4 {
			at = stage(at)
		}
		t.Nodes = append(t.Nodes, pipeline.Node{Name: "out", Kind: pipeline.KindSink, Preds: []int{at}, Workers: 1, Capacity: 1})
	} else { // two branches
		first := stage(0)
		a, b := stage(first), stage(first)
		t.Nodes = append(t.Nodes, pipeline.Node{Name: "join", Kind: pipeline.KindJoin, Preds: []int{a, b}})
		last := stage(len(t.Nodes) - 1)
		t.Nodes = append(t.Nodes, pipeline.Node{Name: "out", Kind: pipeline.KindSink, Preds: []int{last}, Workers: 1, Capacity: 1})
	}
	c := &Costs{Machine: Machine{Cores: float64(2 + rng.IntN(7))}, Nodes: map[string]Node{}}
	var most int64
	for _, n := range t.Nodes {
		if n.Kind != pipeline.KindStage {
			continue
		}
		size := (1 + rng.Int64N(8)) * 64 * alloc.MiB
		most += size
		c.Nodes[n.Name] = Node{
			Steps: []Step{{Seconds: 0.1 + 2*rng.Float64(), Spread: 0.3 * rng.Float64(), Cores: 0.5 + 1.5*rng.Float64()}},
			Makes: []Buffer{{Name: "out of " + n.Name, Bytes: size}},
		}
	}
	return t, c, pipeline.Settings{Budget: map[string]pipeline.Size{"host": pipeline.Size(most * (1 + rng.Int64N(4)))}}
}

func stageNames(t pipeline.Topology) (names []string) {
	for _, n := range t.Nodes {
		if n.Kind == pipeline.KindStage {
			names = append(names, n.Name)
		}
	}
	return names
}

// against compares a tuning with the exhaustive sweep of the same space.
func against(t *testing.T, topology pipeline.Topology, c *Costs, base pipeline.Settings, items int, axes ...string) (share, cost float64) {
	t.Helper()
	space, err := ParseSpace(stageNames(topology), base, axes...)
	if err != nil {
		t.Fatal(err)
	}
	sim, err := NewSimulated(topology, c, Settings{Items: items})
	if err != nil {
		t.Fatal(err)
	}
	all, err := Sweep(t.Context(), space, sim)
	if err != nil {
		t.Fatal(err)
	}
	tuned, err := Tune(t.Context(), space, sim)
	if err != nil {
		t.Fatal(err)
	}
	best, got := all.Best().Outcome(), tuned.Choice.Outcome()
	share, cost = got.Throughput/best.Throughput, float64(tuned.Runs)/float64(space.Size())
	t.Logf("%d points, best %.4f items/s; tuned %.4f (%.1f%%) in %d runs (%.1f%%); limited by %v",
		space.Size(), best.Throughput, got.Throughput, 100*share, tuned.Runs, 100*cost, tuned.Limits)
	return share, cost
}

// TestTuneAgainstTheGrid: a setting within 5% of the best of all, in a tenth of
// the runs, on graphs and costs that are drawn.
func TestTuneAgainstTheGrid(t *testing.T) {
	for seed := range uint64(12) {
		topology, c, base := randomModel(seed)
		share, cost := against(t, topology, c, base, 16, "each.workers=1..3", "each.capacity=1,3")
		if share < 0.95 || cost > 0.1 {
			t.Errorf("seed %d: %.1f%% of the best throughput in %.1f%% of the runs", seed, 100*share, 100*cost)
		}
	}
}

// standardModel is the standard pipeline with costs like those of a machine with
// few cores, where the quotient and the sums are alike.
func standardModel(t *testing.T) (pipeline.Topology, *Costs) {
	t.Helper()
	topology, err := TopologyOf(stages.StandardTOML)
	if err != nil {
		t.Fatal(err)
	}
	step := func(seconds, cores float64) []Step { return []Step{{Seconds: seconds, Spread: 0.1, Cores: cores}} }
	v := 128 * alloc.MiB
	c := &Costs{Machine: Machine{Cores: 8}, Nodes: map[string]Node{
		stages.NameSynthesize: {Steps: step(1.6, 1), Makes: []Buffer{
			{Name: "w", Bytes: v, Readers: []Reader{{Node: stages.NameBatchAdd}, {Node: stages.NameTailMSM}, {Node: stages.NameBG2MSM}}},
			{Name: "a", Bytes: v, Readers: []Reader{{Node: stages.NameNTT}, {Node: stages.NameHMSM}}},
			{Name: "b", Bytes: v, Readers: []Reader{{Node: stages.NameNTT}}},
			{Name: "c", Bytes: v, Readers: []Reader{{Node: stages.NameNTT}}}}},
		stages.NamePrestage: {Steps: step(0.01, 1)},
		stages.NameNTT:      {Steps: step(0.5, 2)},
		stages.NameHMSM:     {Steps: step(1.1, 3), Scratch: []Buffer{{Name: "buckets", Bytes: v / 4}}},
		stages.NameBatchAdd: {Steps: step(0.2, 1), Makes: []Buffer{{Name: "picks", Bytes: v / 8, Readers: []Reader{{Node: stages.NameTailMSM}}}}},
		stages.NameTailMSM:  {Steps: step(0.9, 2)},
		stages.NameBG2MSM:   {Steps: step(0.7, 2), Scratch: []Buffer{{Name: "buckets", Bytes: v / 4}}},
		stages.NameAssemble: {Steps: step(0.02, 1)},
	}}
	return topology, c
}

func TestTuneTheStandardGraph(t *testing.T) {
	topology, c := standardModel(t)
	for _, budget := range []string{"1GiB", "2GiB", "8GiB"} {
		var base pipeline.Settings
		if err := base.Set("budget.host=" + budget); err != nil {
			t.Fatal(err)
		}
		share, cost := against(t, topology, c, base, 16,
			"synthesize.workers=1..4", "ntt.workers=1..2", "h-msm.workers=1..3", "tail-msm.workers=1..2", "b_g2_msm.workers=1..2",
			"prestage.capacity=1,4", "batch-add.capacity=1,4", "b_g2_msm.capacity=1,unbounded")
		if share < 0.95 || cost > 0.1 {
			t.Errorf("%s: %.1f%% of the best throughput in %.1f%% of the runs", budget, 100*share, 100*cost)
		}
	}
}

// TestTuneChoosesSmall: what brings nothing is not in the choice, and more of the
// stage that limits is.
func TestTuneChoosesSmall(t *testing.T) {
	topology := chain("a", "b")
	c := &Costs{Nodes: map[string]Node{
		"a": {Steps: []Step{{Seconds: 1}}, Makes: []Buffer{{Name: "x", Bytes: alloc.GiB}}},
		"b": {Steps: []Step{{Seconds: 8}}},
	}}
	sim, err := NewSimulated(topology, c, Settings{Items: 400})
	if err != nil {
		t.Fatal(err)
	}
	space := twoStages(t, "each.workers=4,3,2,1", "each.capacity=unbounded,8,1")
	r, err := Tune(t.Context(), space, sim, Within(alloc.HostBytes(8*alloc.GiB)))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Choice.Settings.Stages; got["a"].Workers != 1 || got["b"].Workers != 4 || got["a"].Capacity != 1 || got["b"].Capacity != 1 {
		t.Errorf("%+v", got)
	}
	if len(r.Limits) == 0 || r.Limits[0].Kind != "stage" || r.Limits[0].Name != "b" && r.Limits[0].Name != "a" {
		t.Errorf("%+v", r.Limits)
	}
	kept := slices.ContainsFunc(r.Steps, func(s TuneStep) bool { return s.Kept })
	if !kept || r.Runs != len(r.Steps) {
		t.Errorf("%d runs, %+v", r.Runs, r.Steps)
	}
	// The memory that is allowed holds: a run that is fast in more does not count.
	tight, err := Tune(t.Context(), space, sim, Within(alloc.HostBytes(3*alloc.GiB)))
	if err != nil || tight.Choice.Outcome().Peak[0] > 3*alloc.GiB || tight.Choice.Outcome().Throughput >= r.Choice.Outcome().Throughput {
		t.Errorf("%v, %+v", err, tight.Choice.Outcome())
	}
	_, err = Tune(t.Context(), space, sim, Within(alloc.HostBytes(1)))
	var f *FailureError
	if !errors.As(err, &f) || f.Failure.Kind != TooLarge {
		t.Errorf("%v", err)
	}
}

// chain is a source, these stages one behind the other, and a sink.
func chain(names ...string) pipeline.Topology {
	t := pipeline.Topology{Name: "chain", Policy: "stop-all", Nodes: []pipeline.Node{{Name: "source", Kind: pipeline.KindSource}}}
	for i, name := range names {
		t.Nodes = append(t.Nodes, pipeline.Node{Name: name, Kind: pipeline.KindStage, Preds: []int{i}, Workers: 1, Capacity: 1, Uses: true})
	}
	t.Nodes = append(t.Nodes, pipeline.Node{Name: "out", Kind: pipeline.KindSink, Preds: []int{len(names)}, Workers: 1, Capacity: 1})
	return t
}

// TestTuneBuys: a core brings something where cores limit, memory where memory
// does, and neither anything where the other does.
func TestTuneBuys(t *testing.T) {
	c := &Costs{Machine: Machine{Cores: 2}, Nodes: map[string]Node{
		"a": {Steps: []Step{{Seconds: 1, Cores: 1}}, Makes: []Buffer{{Name: "x", Bytes: alloc.GiB}}},
		"b": {Steps: []Step{{Seconds: 1, Cores: 1}}},
	}}
	for _, k := range []struct {
		cores        float64
		budget       string
		core, memory bool
	}{
		{2, "20GiB", true, false},
		{16, "2GiB", false, true},
	} {
		c.Machine.Cores = k.cores
		sim, err := NewSimulated(chain("a", "b"), c, Settings{Items: 40})
		if err != nil {
			t.Fatal(err)
		}
		base, err := pipeline.ParseSettings("budget.host=" + k.budget)
		if err != nil {
			t.Fatal(err)
		}
		space, err := ParseSpace([]string{"a", "b"}, base, "each.workers=1..6", "each.capacity=1,4")
		if err != nil {
			t.Fatal(err)
		}
		r, err := Tune(t.Context(), space, sim)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Buys) != 2 || !strings.Contains(r.Buys[0].Text, "one more core") || !strings.Contains(r.Buys[1].Text, "1 GiB more of host memory") {
			t.Fatalf("%+v", r.Buys)
		}
		if core, memory := r.Buys[0].Gain > 0.1, r.Buys[1].Gain > 0.1; core != k.core || memory != k.memory {
			t.Errorf("%v cores, %s: %+v", k.cores, k.budget, r.Buys)
		}
	}
}

// TestTuneForReal: the same search on a runner that is no simulator, with a file
// to go on from.
func TestTuneForReal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tune.jsonl")
	space := twoStages(t, "a.workers=1..4", "b.workers=1..4", "device=x,y")
	f := &fake{}
	r, err := Tune(t.Context(), space, f, ResultsFile(path))
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Choice.Settings.Stages; s["a"].Workers != 2 || s["b"].Workers != 2 || r.Choice.Measured == nil || len(r.Buys) != 0 {
		t.Errorf("%+v", r.Choice)
	}
	g := &fake{}
	if again, err := Tune(t.Context(), space, g, ResultsFile(path)); err != nil || g.ran.Load() != 0 || again.Choice.Key() != r.Choice.Key() {
		t.Errorf("%v, %d runs", err, g.ran.Load())
	}
	if r, err = Tune(t.Context(), space, &fake{}, MaxRuns(4)); err != nil || r.Runs > 4 {
		t.Errorf("%v, %d runs", err, r.Runs)
	}
	broken := errors.New("out of luck")
	if _, err := Tune(t.Context(), space, &fake{fail: func(int64) error { return broken }}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	if _, err := Tune(ctx, space, &fake{}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestTuneVerifies(t *testing.T) {
	real := &fake{factor: 0.8}
	r, err := Tune(t.Context(), twoStages(t, "a.workers=1..3", "b.workers=1..3"), &fake{simulates: true}, Verify(1, real))
	if err != nil || real.ran.Load() != 1 || r.Choice.Measured == nil || r.Choice.Simulated == nil {
		t.Errorf("%v %+v", err, r)
	}
}

// TestUntil: a long run ends soon after its context, and the next one is as if
// nothing had been.
func TestUntil(t *testing.T) {
	costs := &Costs{Machine: Machine{Cores: 1}, Nodes: map[string]Node{"a": {Steps: []Step{{Seconds: 1, Cores: 1}}}}}
	why := errors.New("enough")
	sim, err := NewSimulated(chain("a"), costs, Settings{Items: MaxItems})
	if err != nil {
		t.Fatal(err)
	}
	soon := func() context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
		return ctx
	}
	if _, err := sim.Run(soon(), Point{}); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	if _, err := sim.Predict(Point{}, Until(soon())); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	o, err := sim.Run(t.Context(), Point{Choices: map[string]string{"items": "3"}})
	if err != nil || o.Items != 3 {
		t.Errorf("%v %+v", err, o)
	}
}

func TestSimulatedChoices(t *testing.T) {
	topology := chain("a")
	slow := &Costs{Machine: Machine{Cores: 1}, Nodes: map[string]Node{"a": {Steps: []Step{{Seconds: 2, Cores: 1}}, Makes: []Buffer{{Name: "x", Bytes: alloc.GiB}}}}}
	quick := &Costs{Machine: Machine{Cores: 1}, Nodes: map[string]Node{"a": {Steps: []Step{{Seconds: 1, Cores: 1}}}}}
	sim, err := NewSimulated(topology, slow, Settings{Items: 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.When("device", "cuda:0", quick); err != nil {
		t.Fatal(err)
	}
	if err := sim.When("device", "cpu", slow); err != nil {
		t.Fatal(err)
	}
	space, err := ParseSpace([]string{"a"}, pipeline.Settings{}, "device=cpu,cuda:0", "a.workers=2", "cores=1,2", "memory=1GiB,16GiB", "items=20")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Sweep(t.Context(), space, sim)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"cpu 1": 0.5, "cpu 2": 1, "cuda:0 1": 1, "cuda:0 2": 2}
	for _, row := range r.Rows {
		o := row.Simulated
		if row.Choices["memory"] == "1GiB" && row.Choices["device"] == "cpu" {
			if o.OK() || o.Failure.Kind != Killed || o.Failure.Text == "" {
				t.Errorf("%v: %+v", row.Values, o)
			}
			continue
		}
		if w := want[row.Values[0]+" "+row.Values[2]]; !o.OK() || o.Items != 20 || o.Throughput < w*0.99 || o.Throughput > w*1.01 {
			t.Errorf("%v: %+v, want %v", row.Values, o, w)
		}
	}
	if err := space.Base.Set("budget.host=1MiB"); err != nil {
		t.Fatal(err)
	}
	if r, err = Sweep(t.Context(), space, sim); err != nil {
		t.Fatal(err)
	}
	if o := r.Rows[0].Simulated; o.OK() || o.Failure.Kind != TooLarge {
		t.Errorf("an item that is larger than the budget: %+v", o.Failure)
	}
	for axis, want := range map[string]string{
		"device=cuda:7": `knows no device "cuda:7", only cpu, cuda:0`,
		"b2=auto":       "has no such choice",
		"cores=0":       "more than 0",
		"items=x":       "items",
	} {
		space, err := ParseSpace([]string{"a"}, pipeline.Settings{}, axis)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Sweep(t.Context(), space, sim); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", axis, err)
		}
	}
	if other, err := sim.Vary(func(m *Machine) { m.Cores = 4 }); err != nil || other.Meaning()["model"] == sim.Meaning()["model"] {
		t.Errorf("%v: another machine is not another model", err)
	}
}

func TestTopologyOf(t *testing.T) {
	topology, _ := standardModel(t)
	if got := stageNames(topology); !slices.Equal(got, stages.Names()) {
		t.Errorf("%v", got)
	}
	if i := topology.Index("sums"); i < 0 || len(topology.Nodes[i].Preds) != 3 || topology.Nodes[topology.Index(stages.NameBG2MSM)].Capacity != pipeline.Unbounded {
		t.Errorf("%+v", topology)
	}
	for text, want := range map[string]string{
		"[[stage]]\nname=\"a\"\nfrom=\"b\"":              `reads from "b"`,
		"[[stage]]\nname=\"a\"":                          "reads from 0 nodes",
		"[[source]]\nname=\"a\"\n[[source]]\nname=\"a\"": "that of another",
		"[budget]\nhots=1":                               "unknown memory space",
		"a = ":                                           "read a pipeline",
	} {
		if _, err := TopologyOf(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
