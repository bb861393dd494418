// Card: a batch of proofs on every CUDA card there is, and on the CPU where there
// is none. The circuit is in circuit.go; what differs from a program without a card
// is in openCards and onCards.
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
	engines, closeCards, err := openCards(host)
	if errors.Is(err, gpu.ErrNoDevice) {
		fmt.Fprintln(w, "no card:", err)
	} else if err != nil {
		return err
	}
	// Deferred before the key's Close, and so called after it: some of the key's
	// points are on the card.
	defer func() { err = errors.Join(err, closeCards()) }()

	prover, err := newProver(ctx, host)
	if err != nil {
		return err
	}
	defer prover.Key.Close()
	var o stages.BatchOptions
	if len(engines) > 0 {
		if o.Settings, err = onCards(ctx, prover, engines, host); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(w, "proving on the CPU")
	}
	for _, engine := range engines {
		d, err := engine.Describe()
		if err != nil {
			return err
		}
		fmt.Fprintln(w, "proving on", d)
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
	for _, engine := range engines {
		fmt.Fprintf(w, "\n%v\n", engine.Stats())
	}
	return nil
}

// openCards makes the arithmetics of all cards that can be used. Without any, the
// error is gpu.ErrNoDevice and says what is missing. closeCards is never nil.
func openCards(host *cpu.Engine) (engines []*cuda.Engine, closeCards func() error, err error) {
	drv, err := cuda.Open("") // one in a process
	if err != nil {
		return nil, func() error { return nil }, err
	}
	closeCards = func() (err error) {
		for _, e := range engines {
			err = errors.Join(err, e.Close())
		}
		return errors.Join(err, drv.Close())
	}
	for _, card := range drv.Cards() {
		e, err := cuda.New(card, id, host)
		if err != nil {
			return nil, func() error { return nil }, errors.Join(err, closeCards())
		}
		engines = append(engines, e)
	}
	return engines, closeCards, nil
}

// onCards has a prover of the CPU's prove on cards, with host beside them, and
// returns the budgets of the cards' memory.
func onCards(ctx context.Context, p *stages.Prover, engines []*cuda.Engine, host *cpu.Engine) (pipeline.Settings, error) {
	p.Elsewhere = []groth16.Arithmetic{host} // for what no card can finish

	// What one job needs at most of each card. It is asked for before Keep, so that
	// the card keeps that much free of the key.
	var needs []int64
	var members []groth16.Arithmetic
	for _, e := range engines {
		p.Arith = e
		need, err := stages.Need(p, stages.BatchOptions{})
		if err != nil {
			return pipeline.Settings{}, err
		}
		needs, members = append(needs, need[e.Card().Space()]), append(members, e)
	}
	// Each proof is made on one card: on that which will be done with it first. A
	// single card may as well be p.Arith itself.
	set, err := stages.Spread(nil, members...)
	if err != nil {
		return pipeline.Settings{}, err
	}
	p.Arith = set
	p.B2 = stages.Either(set, host)             // whichever is faster; nil: the card
	if err := stages.Keep(ctx, p); err != nil { // points stay on the cards from proof to proof
		return pipeline.Settings{}, err
	}

	// Jobs enter as long as what they may need fits: here two of them on a card, or
	// one where there is room for no more.
	var budgets []string
	for i, e := range engines {
		free, _, err := e.Card().Memory()
		if err != nil {
			return pipeline.Settings{}, err
		}
		room := min(2*needs[i], free-gpu.DefaultMargin)
		budgets = append(budgets, fmt.Sprintf("budget.%v=%d", e.Card().Space(), max(room, needs[i])))
	}
	return pipeline.ParseSettings(budgets...)
}
