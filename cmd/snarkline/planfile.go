package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
	"github.com/snarkline/snarkline/stages"
	"github.com/snarkline/snarkline/trace"
)

// planFile is a recording or a model, made ready to be simulated.
type planFile struct {
	path  string
	graph pipeline.Topology
	costs *plan.Costs
	set   plan.Settings
	trace *trace.Trace // nil for a model
}

// openPlanFile reads a recording, or a model if the name ends in .toml. A
// recording says of which graph it is; a model is of the pipeline that a file
// describes, or of the standard one.
func openPlanFile(path, description string) (*planFile, error) {
	if strings.HasSuffix(path, ".toml") {
		return openModel(path, description)
	}
	if description != "" {
		return nil, usagef("--pipeline is for models; the recording %s says of which pipeline it is", path)
	}
	t, err := trace.ReadFile(path)
	if err != nil {
		return nil, inputError(err)
	}
	return planOfTrace(path, t)
}

// planOfTrace is a recording with its costs.
func planOfTrace(path string, t *trace.Trace) (*planFile, error) {
	costs, err := plan.FromTrace(t)
	if err != nil {
		return nil, inputError(fmt.Errorf("%s: %w", path, err))
	}
	p := &planFile{path: path, graph: t.Graph, costs: costs, trace: t}
	for _, it := range t.Items {
		if it.Admitted >= 0 && it.Attempt == 0 {
			p.set.Items++
		}
	}
	return p, nil
}

// stages are the names of the graph's stages.
func (p *planFile) stages() (names []string) {
	for _, n := range p.graph.Nodes {
		if n.Kind == pipeline.KindStage {
			names = append(names, n.Name)
		}
	}
	return names
}

// settings are those of the graph.
func (p *planFile) settings() pipeline.Settings {
	s := pipeline.Settings{Stages: make(map[string]pipeline.StageSetting)}
	for _, n := range p.graph.Nodes {
		if n.Kind == pipeline.KindStage {
			s.Stages[n.Name] = pipeline.StageSetting{Workers: n.Workers, Capacity: pipeline.Count(n.Capacity)}
		}
	}
	for i, n := range p.graph.Budget {
		if n > 0 {
			if s.Budget == nil {
				s.Budget = make(map[string]pipeline.Size)
			}
			s.Budget[alloc.Space(i).String()] = pipeline.Size(n)
		}
	}
	return s
}

// known finds settings for stages that the graph has not.
func (p *planFile) known(s pipeline.Settings) error {
	names := p.stages()
	for name := range s.Stages {
		if !slices.Contains(names, name) && p.graph.Index(name) < 0 {
			return usagef("%s has no stage %q%s (stages: %s)", p.path, name, didYouMean(name, names), strings.Join(names, ", "))
		}
	}
	return nil
}

// recorded is what the recorded run came to.
func (p *planFile) recorded() *plan.Outcome {
	t := p.trace
	o := &plan.Outcome{Wall: t.Wall}
	var latency time.Duration
	for _, it := range t.Items {
		if it.Admitted < 0 || it.Left < 0 || it.Err != "" {
			continue
		}
		o.Items++
		latency += it.Left - it.Admitted
		o.Door += it.Admitted - it.Arrived
	}
	if o.Items > 0 {
		o.Latency = latency / time.Duration(o.Items)
		o.Throughput = float64(o.Items) / t.Wall.Seconds()
	}
	base := p.costs.Machine.Base
	for s := alloc.Host; s.Valid(); s++ {
		_, bytes, _ := t.Peak(s)
		o.Peak[s] = max(bytes-base[s], 0)
	}
	for _, s := range t.Stages() {
		if s.Kind == pipeline.KindStage {
			o.Stages = append(o.Stages, plan.StageOutcome{Name: s.Stage, Workers: s.Workers, Capacity: s.Capacity,
				Busy: s.Utilisation, WaitOut: s.WaitOut, Full: s.Capacity > 0 && s.Length >= s.Capacity})
		}
	}
	for _, d := range t.Devices() {
		o.Use = append(o.Use, plan.UseOutcome{Name: d.Name, Kind: "device", Busy: d.Utilisation})
	}
	if t.Err != "" {
		o.Failure = &plan.Failure{Kind: plan.Broken, Text: t.Err, At: t.Wall}
	} else if t.Cut {
		o.Failure = &plan.Failure{Kind: plan.Broken, Text: "the recording ends before the run did", At: t.Wall}
	}
	return o
}

// openModel reads a model of the pipeline that a file describes.
func openModel(path, description string) (*planFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, inputError(err)
	}
	defer func() { _ = f.Close() }()
	costs, err := plan.ReadModel(f)
	if err != nil {
		return nil, inputError(fmt.Errorf("%s: %w", path, err))
	}
	text := stages.StandardTOML
	if description != "" {
		b, err := os.ReadFile(description)
		if err != nil {
			return nil, usagef("--pipeline: %w", err)
		}
		text = string(b)
	}
	p := &planFile{path: path, costs: costs}
	if p.graph, err = plan.TopologyOf(text); err != nil {
		return nil, usagef("--pipeline %s: %w", description, err)
	}
	if _, err := plan.NewSimulator(p.graph, costs); err != nil {
		return nil, inputError(fmt.Errorf("%s: %w", path, err))
	}
	return p, nil
}
