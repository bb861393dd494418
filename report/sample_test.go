package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/trace"
)

// eight is the graph of the eight stages.
func eight() pipeline.Topology {
	stage := func(name string, workers int, preds ...int) pipeline.Node {
		return pipeline.Node{Name: name, Kind: pipeline.KindStage, Workers: workers, Capacity: 2, Preds: preds}
	}
	return pipeline.Topology{Name: "groth16", Policy: "fail-key", Budget: alloc.HostBytes(6 * alloc.GiB), Nodes: []pipeline.Node{
		{Name: "jobs", Kind: pipeline.KindSource},
		stage("synthesize", 3, 0),
		stage("prestage", 1, 1),
		stage("ntt", 1, 2),
		stage("h-msm", 2, 3),
		stage("batch-add", 1, 1),
		stage("tail-msm", 1, 5),
		stage("b_g2_msm", 1, 1),
		{Name: "sums", Kind: pipeline.KindJoin, Preds: []int{4, 6, 7}},
		stage("assemble", 1, 8),
		{Name: "proofs", Kind: pipeline.KindSink, Workers: 1, Capacity: 1, Preds: []int{9}},
	}}
}

// sample is a run of the eight stages on a made-up schedule: stages take what
// their names suggest, workers are taken greedily, room is never short.
func sample(items int) *trace.Trace {
	g := eight()
	t := &trace.Trace{Version: trace.Version, Graph: g, Meta: trace.Meta{
		Program: "snarkline prove", Started: "2026-03-04T05:06:07Z", Cores: 4, Memory: 16 * alloc.GiB, Budget: g.Budget,
		Labels:   map[string]string{"curve": "bls12-381"},
		Settings: pipeline.Settings{Stages: map[string]pipeline.StageSetting{"synthesize": {Workers: 3, Capacity: 2}}},
		Devices:  []trace.Device{{Name: "H200", Space: alloc.Device(0), Memory: 16 * alloc.GiB, Link: "pcie"}},
		Links:    []trace.Link{{Name: "pcie", BytesPerSecond: 25e9}},
	}}
	spans := []int{0, 900, 120, 200, 520, 260, 150, 330, 0, 40, 1} // ms
	bytes := []int64{0, 1200, 700, 260, 1, 80, 1, 1, 0, 1, 0}      // MiB of its output
	free := make([][]time.Duration, len(g.Nodes))
	for n := range free {
		free[n] = make([]time.Duration, max(1, g.Nodes[n].Workers))
	}
	t.Buffers = append(t.Buffers, trace.Buffer{Space: alloc.Host, Stage: "key", Purpose: "key", Bytes: 800 * alloc.MiB, Item: trace.None, Call: trace.None})
	doneAt := make([][]time.Duration, items)
	for i := range items {
		at := make([]time.Duration, len(g.Nodes))
		out := make([]int, len(g.Nodes)) // its buffer
		arrived := time.Duration(i) * 10 * time.Millisecond
		if i > 3 {
			at[0] = max(arrived, doneAt[i-4][9])
		} else {
			at[0] = arrived
		}
		for n := 1; n < len(g.Nodes); n++ {
			var ready time.Duration
			for _, p := range g.Nodes[n].Preds {
				ready = max(ready, at[p])
			}
			if n == 8 {
				for slot, p := range g.Nodes[n].Preds {
					t.Visits = append(t.Visits, trace.Visit{Item: i, Node: n, Slot: slot, From: at[p], Until: ready, Buffers: []int{out[p]}})
				}
				at[n] = ready
				continue
			}
			w := slices.IndexFunc(free[n], func(d time.Duration) bool { return d == slices.Min(free[n]) })
			begin := max(ready, free[n][w])
			took := time.Duration(spans[n]) * time.Millisecond * time.Duration(100+(i*37+n*11)%23) / 100
			c := trace.Call{Item: i, Node: n, Worker: w, Queued: ready, Begin: begin, End: begin + took, Out: begin + took, Device: trace.None}
			if n == 1 && i%3 == 1 {
				c.Out += 90 * time.Millisecond
			}
			free[n][w] = c.Out
			at[n] = c.Out
			space := alloc.Host
			if n == 2 || n == 3 || n == 4 {
				space, c.Device = alloc.Device(0), 0
			}
			for _, p := range g.Nodes[n].Preds {
				if out[p] > 0 {
					c.Reads = append(c.Reads, trace.Ref{Buffer: out[p], Until: c.End})
					t.Buffers[out[p]].Died = max(t.Buffers[out[p]].Died, c.End)
				}
			}
			if bytes[n] > 0 {
				out[n] = len(t.Buffers)
				t.Buffers = append(t.Buffers, trace.Buffer{Space: space, Stage: g.Nodes[n].Name, Purpose: "evaluation", Bytes: bytes[n] * alloc.MiB, Item: i, Call: len(t.Calls), Born: begin})
				c.Makes = []int{out[n]}
			}
			t.Calls = append(t.Calls, c)
			t.Wall = max(t.Wall, c.Out)
		}
		last := t.Calls[len(t.Calls)-2] // assemble reads the join's
		for _, p := range g.Nodes[8].Preds {
			t.Buffers[out[p]].Died = max(t.Buffers[out[p]].Died, last.End)
		}
		doneAt[i] = at
		t.Items = append(t.Items, trace.Item{Key: pipeline.Key{Job: "sector", Part: i}, Arrived: arrived, Admitted: at[0], Left: at[10]})
	}
	return tidy(t)
}

// tidy puts calls and buffers in the order that a trace has.
func tidy(t *trace.Trace) *trace.Trace {
	order := make([]int, len(t.Calls))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(t.Calls[a].End, t.Calls[b].End) })
	calls, to := make([]trace.Call, len(order)), make([]int, len(order))
	for i, o := range order {
		calls[i], to[o] = t.Calls[o], i
	}
	t.Calls = calls
	for i := range t.Buffers {
		if c := t.Buffers[i].Call; c >= 0 {
			t.Buffers[i].Call = to[c]
		}
	}
	return t
}

// hostile is a run in which everything goes wrong, and whose names are markup.
func hostile() *trace.Trace {
	t := sample(6)
	t.Graph.Name = `<script>alert(1)</script>`
	t.Graph.Nodes[1].Name = `<script>alert("stage")</script>`
	t.Graph.Nodes[3].Name = `ntt"><img src=x onerror=alert(1)>`
	t.Items[2].Key.Job = `</script><b>`
	t.Items[2].Err = "no"
	t.Meta.Labels["</dd><script>"] = "<b>bold</b>"
	t.Err = "stage <ntt>: out of memory & more"
	t.Cut = true
	for i := range t.Calls {
		if t.Calls[i].Item == 2 && t.Calls[i].Node == 3 {
			t.Calls[i].Err = "<i>failed</i>"
		}
	}
	for k := range trace.Lost + 1 {
		t.Notes = append(t.Notes, trace.Note{At: time.Second, Kind: k, Item: 2, Node: 3, N: 3, Text: "because of <u>" + fmt.Sprint(k) + "</u>"})
	}
	return t
}
