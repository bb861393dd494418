// Card: a batch of proofs on a CUDA card, and on the CPU where there is none.
// The circuit is in circuit.go; what differs from a program without a card is in
// openCard and onCard.
//
//	go run ./examples/card
//
// A card takes the NVIDIA driver and nothing else. Without one, the emulator
// shows the same path, slowly:
//
//	SNARKLINE_CUDA_LIBRARY=$(go run ./cuda/emulator/build) go run ./examples/card
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/consensys/gnark/logger"

	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/cuda"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

func main() {
	logger.Disable() // gnark talks to standard output otherwise
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "card:", err)
		os.Exit(1)
	}
}

const jobs = 4

func run(ctx context.Context, w io.Writer) (err error) {
	// The CPU computes witnesses in any case, and proves where there is no card.
	host, err := cpu.New(id)
	if err != nil {
		return err
	}
	engine, closeCard, err := openCard(host)
	if errors.Is(err, gpu.ErrNoDevice) {
		fmt.Fprintln(w, "no card:", err)
	} else if err != nil {
		return err
	}
	// Deferred before the key's Close, and so called after it: some of the key's
	// points are on the card.
	defer func() { err = errors.Join(err, closeCard()) }()

	prover, err := newProver(ctx, host)
	if err != nil {
		return err
	}
	defer prover.Key.Close()
	var o stages.BatchOptions
	if engine != nil {
		if o.Settings, err = onCard(ctx, prover, engine, host); err != nil {
			return err
		}
		d, err := engine.Describe()
		if err != nil {
			return err
		}
		fmt.Fprintln(w, "proving on", d)
	} else {
		fmt.Fprintln(w, "proving on the CPU")
	}

	report, err := stages.Batch(ctx, prover, inputs, func(_ context.Context, r *stages.Result) error {
		// Every proof has been verified. One that a card gets wrong, or cannot
		// finish, has been made again on the CPU: r.Again says why.
		fmt.Fprintf(w, "%v  on %s, b_g2_msm on %s, attempts %d\n", r.Key, r.On, r.B2On, r.Attempts)
		return nil
	}, o)
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := report.WriteTable(w); err != nil { // with a column for each kind of memory
		return err
	}
	if engine != nil {
		fmt.Fprintf(w, "\n%v\n", engine.Stats())
	}
	return nil
}

// openCard makes the arithmetic of the first card that can be used. Without any,
// the error is gpu.ErrNoDevice and says what is missing. closeCard is never nil.
func openCard(host *cpu.Engine) (engine *cuda.Engine, closeCard func() error, err error) {
	none := func() error { return nil }
	drv, err := cuda.Open("") // one in a process
	if err != nil {
		return nil, none, err
	}
	engine, err = cuda.New(drv.Cards()[0], id, host)
	if err != nil {
		return nil, none, errors.Join(err, drv.Close())
	}
	return engine, func() error { return errors.Join(engine.Close(), drv.Close()) }, nil
}

// onCard has a prover of the CPU's prove on a card, with host beside it, and
// returns the budget of the card's memory.
func onCard(ctx context.Context, p *stages.Prover, engine *cuda.Engine, host *cpu.Engine) (pipeline.Settings, error) {
	p.Arith = engine
	p.Elsewhere = []groth16.Arithmetic{host} // for what a card cannot finish
	p.B2 = stages.Either(engine, host)       // whichever is faster; nil: the card

	// What one job needs at most, by kind of memory. It is asked for before Keep,
	// so that the card keeps that much free of the key.
	need, err := stages.Need(p, stages.BatchOptions{})
	if err != nil {
		return pipeline.Settings{}, err
	}
	if err := stages.Keep(ctx, p); err != nil { // points stay on the card from proof to proof
		return pipeline.Settings{}, err
	}

	// Jobs enter as long as what they may need fits: here two of them, or one
	// where there is room for no more.
	space := engine.Card().Space()
	free, _, err := engine.Card().Memory()
	if err != nil {
		return pipeline.Settings{}, err
	}
	room := min(2*need[space], free-gpu.DefaultMargin)
	return pipeline.ParseSettings(fmt.Sprintf("budget.%v=%d", space, max(room, need[space])))
}
