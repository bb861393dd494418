package stages_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// TestDescription: the text describes the graph that Standard builds.
func TestDescription(t *testing.T) {
	p, toy := small(t)
	leakFree(t)
	graphs := make(map[string]string)
	for name, description := range map[string]string{"built": "", "described": stages.StandardTOML} {
		out, _, err := collect(t, context.Background(), p, toy.jobs(5), stages.BatchOptions{
			Description: description,
			Ready: func(g *pipeline.Graph) {
				var b strings.Builder
				if err := g.WriteTOML(&b); err != nil {
					t.Error(err)
				}
				graphs[name] = b.String()
			},
		})
		if err != nil || len(out) != 5 {
			t.Errorf("%s: %d proofs, %v", name, len(out), err)
		}
	}
	sorted := func(s string) string {
		tables := strings.Split(s, "\n\n")
		return strings.Join(sortedStrings(tables), "\n\n")
	}
	if a, b := sorted(graphs["built"]), sorted(graphs["described"]); a != b {
		t.Errorf("Standard builds\n%s\nand its description\n%s", a, b)
	}
}

// TestOwnDescription: another order of settings, a budget, a parameter, and a
// stage of the reader's own between two of ours.
func TestOwnDescription(t *testing.T) {
	p, toy := small(t)
	leakFree(t)
	text := strings.NewReplacer(
		"# [budget]\n# host = \"8GiB\" ", "[budget]\nhost = \"64MiB\" ",
		"# [stage.params]\n# min-ones = 0.05 ", "[stage.params]\nmin-ones = 1.5 ",
		`from = "batch-add"`, `from = "spy"`,
	).Replace(stages.StandardTOML) + `
[[stage]]
name = "spy"
from = "batch-add"
`
	var whole atomic.Int32
	spy := pipeline.NewStage("spy", func(_ context.Context, s *stages.Split) (*stages.Split, error) {
		if s.Whole {
			whole.Add(1)
		}
		for _, b := range s.Buffers() {
			b.Retain()
		}
		return s, nil
	})
	// Nothing is said to end the picks before tail-msm, so the spy needs nothing.
	out, report, err := collect(t, context.Background(), p, toy.jobs(5), stages.BatchOptions{
		Description: text,
		Own:         func(reg *pipeline.Registry) error { return reg.Add("spy", pipeline.FactoryOf(spy)) },
	})
	if err != nil || len(out) != 5 {
		t.Fatalf("%d proofs, %v", len(out), err)
	}
	if whole.Load() != 5 {
		t.Errorf("min-ones = 1.5 left %d of 5 witnesses whole", whole.Load())
	}
	if report.Budget == nil || report.Budget.Limit[alloc.Host] != 64*alloc.MiB {
		t.Errorf("the budget is %+v", report.Budget)
	}
}

func TestWrongDescription(t *testing.T) {
	p, _ := small(t)
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown stage": {`name = "ntt"`, `name = "fft"`, "fft"},
		"wrong type":    {`from = "ntt"`, `from = "batch-add"`, "batch-add yields"},
		"unknown key":   {`workers = 1`, `wrokers = 1`, "line"},
		"parameter":     {"# [stage.params]\n# min-ones", "[stage.params]\nmin-noes", "min-noes"},
	} {
		text := strings.Replace(stages.StandardTOML, c.old, c.new, 1)
		_, _, err := collect(t, context.Background(), p, nil, stages.BatchOptions{Description: text})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
