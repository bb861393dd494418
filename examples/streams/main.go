// Streams: a proving pipeline between go-streams sources, flows and sinks, and
// one of its stages inside a go-streams flow.
//
//	go run ./examples/streams
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
	"github.com/consensys/gnark/logger"
	"github.com/reugn/go-streams/extension"
	"github.com/reugn/go-streams/flow"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// Root is the statement: I know a square root of Square.
type Root struct {
	Root   frontend.Variable
	Square frontend.Variable `gnark:",public"`
}

// Define writes the statement as constraints.
func (c *Root) Define(api frontend.API) error {
	api.AssertIsEqual(api.Mul(c.Root, c.Root), c.Square)
	return nil
}

func main() {
	logger.Disable()
	numbers := "2\n3\n5\nseven\n11\n13\n"
	if len(os.Args) > 1 {
		numbers = strings.Join(os.Args[1:], "\n")
	}
	if err := run(context.Background(), os.Stdout, strings.NewReader(numbers)); err != nil {
		fmt.Fprintln(os.Stderr, "streams:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, numbers io.Reader) error {
	prover, err := newProver(ctx)
	if err != nil {
		return err
	}
	defer prover.Key.Close()

	// go-streams: lines of text come from a channel; a flow makes jobs of them.
	lines := make(chan any)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(numbers); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	var mu sync.Mutex // of w
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(w, format, args...)
	}
	jobs := extension.NewChanSource(lines).Via(flow.NewMap(func(line string) any {
		n, err := strconv.Atoi(line)
		if err != nil {
			return line // no job: the pipeline's edge will say so
		}
		return stages.Job{Key: pipeline.Key{Job: "root", Part: n}, Input: &Root{Root: n, Square: n * n}}
	}, 1))

	// The pipeline takes any go-streams outlet and gives to any inlet. An
	// element of a wrong type fails alone, under this policy.
	g := pipeline.New("roots", pipeline.Budget(alloc.Host, 64*alloc.MiB),
		pipeline.OnError(pipeline.FailKey),
		pipeline.OnFail(func(k pipeline.Key, err error) {
			var wrong *pipeline.TypeError
			if errors.As(err, &wrong) {
				say("element %d is no job: %v\n", k.Part, wrong)
				return
			}
			say("job %v: %v\n", k, err)
		}))
	in := pipeline.From(g, jobs, func(j stages.Job) pipeline.Key { return j.Key })
	proofs, err := stages.Standard(prover, in)
	if err != nil {
		return err
	}

	// Behind it, go-streams again: a stage of ours as one of its flows, two
	// workers wide, then a map, then a sink.
	check := pipeline.NewStage("check", func(_ context.Context, r *stages.Result) (*stages.Result, error) {
		return r, prover.VK.Verify(r.Proof, r.Public)
	})
	checked := pipeline.AsFlow(check, pipeline.FlowWorkers(2), pipeline.FlowOnError(func(err error) { say("%v\n", err) }))
	printed := make(chan any)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for line := range printed {
			say("%s\n", line)
		}
	}()
	pipeline.To(proofs, checked)
	go checked.Via(flow.NewMap(func(r *stages.Result) string {
		return fmt.Sprintf("proof %v: I know a square root of %v", r.Key, r.Key.Part*r.Key.Part)
	}, 1)).To(extension.NewChanSink(printed))

	report, err := g.Run(ctx)
	if err != nil {
		return err
	}
	<-done
	fmt.Fprintln(w)
	return report.WriteTable(w)
}

func newProver(ctx context.Context) (*stages.Prover, error) {
	ccs, err := frontend.Compile(ecc.BN254.ScalarField(), r1cs.NewBuilder, &Root{})
	if err != nil {
		return nil, err
	}
	matrices, err := gnark.R1CSFromGnark(ccs)
	if err != nil {
		return nil, err
	}
	circuit, err := gnark.NewCircuit(ccs)
	if err != nil {
		return nil, err
	}
	engine, err := cpu.New(curve.BN254)
	if err != nil {
		return nil, err
	}
	pk, vk, err := groth16.UnsafeSetup(ctx, matrices, groth16.SetupOptions{Folded: true})
	if err != nil {
		return nil, err
	}
	return &stages.Prover{Key: pk, VK: vk, Circuit: circuit, Arith: engine}, nil
}
