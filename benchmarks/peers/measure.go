package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/consensys/gnark-crypto/ecc"
	gnarkgroth16 "github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/backend/witness"
	"github.com/consensys/gnark/constraint"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/benchmarks/internal/meter"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark"
	"github.com/snarkline/snarkline/formats/native"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// The provers that run in a process of this program.
const (
	proverGnark  = "gnark Prove"
	proverRead   = "snarkline, gnark's file"
	proverBuffer = "snarkline, gnark's file, in memory"
	proverSame   = "snarkline, that key as .slk"
	proverFolded = "snarkline, folded key"
	proverPlain  = "snarkline, folded key, no vector kernels"
	proverBatch  = "snarkline, folded key, batch of 8, a proof"
	proverReadB  = "snarkline, gnark's file, batch of 8, a proof"
	proverSameB  = "snarkline, that key as .slk, batch of 8, a proof"
	proverTight  = "snarkline, folded key, batch of 8 under a budget, a proof"
	proverReadT  = "snarkline, gnark's file, batch of 8 under a budget, a proof"
)

// batch is how many proofs a batch has; its samples are a proof's share.
const batch = 8

// tight is the budget of a batch under one, in per cent of what a proof can need
// at one moment: the next is synthesized when the one before has given most back.
const tight = 110

// A bar is what a prover may take of gnark's time and of its peak of resident
// memory, on a machine with AVX-512 IFMA. 0 is no bar.
type bar struct{ time, memory float64 }

// A way is how Snarkline proves for a row of the table.
type way struct {
	key     string // its file
	buffers bool   // gnark's key file is read into memory, not mapped
	plain   bool   // without vector kernels
	batch   bool
	budget  bool // of little more than one proof needs
	bar
}

var ways = map[string]way{
	proverRead:   {key: fileGnark, bar: bar{0.38, 0.5}},
	proverBuffer: {key: fileGnark, buffers: true, bar: bar{0.38, 0}},
	proverSame:   {key: fileSame, bar: bar{0.38, 0.5}},
	proverFolded: {key: fileNative, bar: bar{0.38, 0.5}},
	proverPlain:  {key: fileNative, plain: true, bar: bar{1.05, 0}},
	proverBatch:  {key: fileNative, batch: true, bar: bar{0.33, 0}},
	proverReadB:  {key: fileGnark, batch: true, bar: bar{0.33, 0}},
	proverSameB:  {key: fileSame, batch: true, bar: bar{0.33, 0}},
	proverTight:  {key: fileNative, batch: true, budget: true, bar: bar{0.33, 0.5}},
	proverReadT:  {key: fileGnark, batch: true, budget: true, bar: bar{0.33, 0.5}},
}

// measure proves once to warm up, then proofs times, and prints the samples.
// The last proof of each is verified by gnark.
func measure(ctx context.Context, prover string, s setting, proofs int) error {
	if ways[prover].batch {
		return measureBatch(ctx, prover, s)
	}
	prove, err := load(ctx, prover, s)
	if err != nil {
		return err
	}
	vk := gnarkgroth16.NewVerifyingKey(gnarkID(s.id))
	if err := read(s, fileGnarkVK, func(r io.Reader) error { _, err := vk.ReadFrom(r); return err }); err != nil {
		return err
	}
	w, err := readWitness(s)
	if err != nil {
		return err
	}
	public, err := w.Public()
	if err != nil {
		return err
	}
	alloc.Default().ResetPeaks() // of loading, which counts for nobody
	var samples []meter.Sample
	for i := range proofs + 1 {
		var proof gnarkgroth16.Proof
		sample, err := meter.Run(func() (err error) {
			proof, err = prove(w)
			return err
		})
		if err != nil {
			return err
		}
		if i > 0 {
			samples = append(samples, sample)
		}
		if err := gnarkgroth16.Verify(proof, vk, public); err != nil {
			return fmt.Errorf("gnark refuses the proof of %s: %w", prover, err)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(samples)
}

// measureBatch proves one to warm up, then one batch, and prints a proof's
// share of it; memory is that of the whole. Every proof is verified as it comes.
func measureBatch(ctx context.Context, prover string, s setting) error {
	ccs, err := readCircuit(s)
	if err != nil {
		return err
	}
	p, err := proverOf(ctx, prover, s, ccs)
	if err != nil {
		return err
	}
	w, err := readWitness(s)
	if err != nil {
		return err
	}
	if _, err := stages.Prove(ctx, p, w); err != nil {
		return err
	}
	jobs := func(yield func(stages.Job) bool) {
		for i := range batch {
			if !yield(stages.Job{Key: pipeline.Key{Job: "peers", Part: i}, Input: w}) {
				return
			}
		}
	}
	var opt stages.BatchOptions
	if ways[prover].budget {
		need, err := stages.Need(p, opt)
		if err != nil {
			return err
		}
		opt.Settings.Budget = map[string]pipeline.Size{alloc.Host.String(): pipeline.Size(need[alloc.Host] * tight / 100)}
	}
	var proofs []*groth16.Proof
	alloc.Default().ResetPeaks()
	sample, err := meter.Run(func() error {
		_, err := stages.Batch(ctx, p, jobs, func(_ context.Context, r *stages.Result) error {
			proofs = append(proofs, r.Proof)
			return nil
		}, opt)
		return err
	})
	if err != nil {
		return err
	}
	if err := verifyAll(s, w, proofs); err != nil {
		return fmt.Errorf("%s: %w", prover, err)
	}
	sample.Wall, sample.CPU = sample.Wall/batch, sample.CPU/batch
	return json.NewEncoder(os.Stdout).Encode([]meter.Sample{sample})
}

// verifyAll has gnark verify a batch.
func verifyAll(s setting, w witness.Witness, proofs []*groth16.Proof) error {
	if len(proofs) != batch {
		return fmt.Errorf("%d of %d proofs", len(proofs), batch)
	}
	vk := gnarkgroth16.NewVerifyingKey(gnarkID(s.id))
	if err := read(s, fileGnarkVK, func(r io.Reader) error { _, err := vk.ReadFrom(r); return err }); err != nil {
		return err
	}
	public, err := w.Public()
	if err != nil {
		return err
	}
	for _, proof := range proofs {
		theirs, err := groth16.ToGnarkProof(proof)
		if err != nil {
			return err
		}
		if err := gnarkgroth16.Verify(theirs, vk, public); err != nil {
			return fmt.Errorf("gnark refuses a proof of a batch: %w", err)
		}
	}
	return nil
}

func readCircuit(s setting) (constraint.ConstraintSystem, error) {
	ccs := gnarkgroth16.NewCS(gnarkID(s.id))
	err := read(s, fileCircuit, func(r io.Reader) error { _, err := ccs.ReadFrom(r); return err })
	return ccs, err
}

func load(ctx context.Context, prover string, s setting) (func(witness.Witness) (gnarkgroth16.Proof, error), error) {
	ccs, err := readCircuit(s)
	if err != nil {
		return nil, err
	}
	if prover == proverGnark {
		pk := gnarkgroth16.NewProvingKey(gnarkID(s.id))
		if err := read(s, fileGnark, func(r io.Reader) error { _, err := pk.UnsafeReadFrom(r); return err }); err != nil {
			return nil, err
		}
		return func(w witness.Witness) (gnarkgroth16.Proof, error) { return gnarkgroth16.Prove(ccs, pk, w) }, nil
	}
	p, err := proverOf(ctx, prover, s, ccs)
	if err != nil {
		return nil, err
	}
	return func(w witness.Witness) (gnarkgroth16.Proof, error) {
		proof, err := stages.Prove(ctx, p, w)
		if err != nil {
			return nil, err
		}
		return groth16.ToGnarkProof(proof)
	}, nil
}

// proverOf does not verify inside the measured time, since gnark's Prove does
// not either; every proof is verified outside of it.
func proverOf(ctx context.Context, prover string, s setting, ccs constraint.ConstraintSystem) (*stages.Prover, error) {
	w, ok := ways[prover]
	if !ok {
		return nil, fmt.Errorf("unknown prover %q", prover)
	}
	circuit, err := gnark.NewCircuit(ccs)
	if err != nil {
		return nil, err
	}
	ar, err := cpu.New(s.id, cpu.Vectors(!w.plain))
	if err != nil {
		return nil, err
	}
	p := &stages.Prover{Circuit: circuit, Arith: ar, NoVerify: true}
	path := filepath.Join(s.dir, w.key)
	if w.key != fileGnark {
		f, err := native.Open(ctx, path, native.Options{SkipPoints: true})
		if err != nil {
			return nil, err
		}
		p.Key = f.Key
		return p, nil
	}
	opt := gnark.KeyOptions{Circuit: ccs}
	if !w.buffers {
		opt.Temp = gnark.AutoTemp()
		opt.Temp.Told = func(_ string, _ int64, why error) {
			if why != nil { // it is another measurement then
				fmt.Fprintf(os.Stderr, "the key stays in memory: %v\n", why)
			}
		}
	}
	p.Key, err = gnark.OpenProvingKey(ctx, path, opt)
	return p, err
}

func readWitness(s setting) (witness.Witness, error) {
	w, err := witness.New(gnarkID(s.id).ScalarField())
	if err != nil {
		return nil, err
	}
	return w, read(s, fileWitness, func(r io.Reader) error { _, err := w.ReadFrom(r); return err })
}

func gnarkID(id curve.ID) ecc.ID {
	if id == curve.BN254 {
		return ecc.BN254
	}
	return ecc.BLS12_381
}

func read(s setting, name string, body func(io.Reader) error) error {
	f, err := os.Open(filepath.Join(s.dir, name))
	if err != nil {
		return err
	}
	if err := errors.Join(body(bufio.NewReaderSize(f, 1<<20)), f.Close()); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}
