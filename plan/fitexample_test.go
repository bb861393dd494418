package plan_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/snarkline/snarkline/plan"
	"github.com/snarkline/snarkline/trace"
)

// Record a run, take its costs, and ask what another setting would do.
func ExampleFromTrace() {
	var file bytes.Buffer
	rec := trace.NewRecorder(&file)
	report, err := piled(rec.Option()).Run(context.Background()) // a stage that makes 1 MiB, and a slower one
	if err != nil {
		log.Fatal(err)
	}
	if err := rec.Close(report); err != nil {
		log.Fatal(err)
	}
	recording, err := trace.Read(&file)
	if err != nil {
		log.Fatal(err)
	}
	costs, err := plan.FromTrace(recording)
	if err != nil {
		log.Fatal(err)
	}
	sim, err := plan.NewSimulator(recording.Graph, costs)
	if err != nil {
		log.Fatal(err)
	}
	for _, what := range []string{"use.capacity=1", "use.workers=2"} {
		set := plan.Settings{Items: 16}
		if err := set.Set(what); err != nil {
			log.Fatal(err)
		}
		p, err := sim.Run(set)
		if err != nil {
			log.Fatal(err)
		}
		// The recorded run had the default capacities.
		fmt.Printf("%s: %s than before\n", what, faster(p.Throughput, float64(len(recording.Items))/recording.Wall.Seconds()))
	}
	// Output:
	// use.capacity=1: no faster than before
	// use.workers=2: faster than before
}

func faster(now, before float64) string {
	if now > 1.3*before {
		return "faster"
	}
	return "no faster"
}
