// Command peers proves the same circuits with the same key and witness by
// gnark, by Snarkline and by snarkjs, one after another in processes of their
// own, and prints time and peak resident memory side by side.
//
// gnark and Snarkline are measured inside a process that has loaded circuit
// and key: the proof alone, or a batch of 8, whose time is divided by 8 (gnark's
// Prove has no batches: it is compared with one proof). snarkjs and the command snarkline are measured as
// whole processes on the same .zkey and .wtns, loading included.
//
// A batch has no budget ("batch"), or one of a tenth more than a proof can need
// ("tight-batch").
//
// gnark's own key file is mapped from a temporary file ("read"), as the command
// does, or read into memory ("buffers").
//
// Keys are made once from one toxic waste in every form (gnark's, folded, .zkey)
// and kept in -cache. With -provers, -curves, -kinds and -log a run takes as
// long as one likes; ratios are printed beside the bars of this project.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/consensys/gnark/logger"

	"github.com/snarkline/snarkline/curve"
)

// setting is one row group of the table.
type setting struct {
	id   curve.ID
	kind string // "bit-heavy" or "dense"
	log  int
	dir  string
}

func (s setting) String() string { return fmt.Sprintf("%v %s 2^%d", s.id, s.kind, s.log) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	logger.Disable()
	if len(args) > 0 && args[0] == "child" {
		return child(ctx, args[1:])
	}
	fs := flag.NewFlagSet("peers", flag.ContinueOnError)
	logs := fs.String("log", "16,18", "log2 of the constraints, a list")
	curves := fs.String("curves", "bn254,bls12-381", "curves, a list")
	kinds := fs.String("kinds", "bit-heavy,dense", "witnesses, a list")
	rounds := fs.Int("rounds", 3, "processes of each prover, in turns")
	proofs := fs.Int("proofs", 2, "measured proofs in each process, after one that is not")
	cache := fs.String("cache", filepath.Join(os.TempDir(), "snarkline-peers"), "folder for circuits and keys")
	snarkjsLog := fs.Int("snarkjs-log", 18, "largest log2 for which snarkjs runs; 0 leaves it out")
	only := fs.String("provers", "gnark,read,buffers,same,folded,plain,batch,read-batch,same-batch,tight-batch,read-tight-batch", "in-process provers, a list that begins with gnark")
	if err := fs.Parse(args); err != nil {
		return err
	}
	settings, err := parseSettings(*curves, *kinds, *logs, *cache)
	if err != nil {
		return err
	}
	b := bench{rounds: *rounds, proofs: *proofs, snarkjs: os.Getenv("SNARKJS"), snarkjsLog: *snarkjsLog}
	for name := range strings.SplitSeq(*only, ",") {
		p, ok := map[string]string{
			"gnark": proverGnark, "read": proverRead, "same": proverSame, "folded": proverFolded,
			"plain": proverPlain, "batch": proverBatch, "same-batch": proverSameB,
			"buffers": proverBuffer, "read-batch": proverReadB,
			"tight-batch": proverTight, "read-tight-batch": proverReadT,
		}[name]
		if !ok || (len(b.provers) == 0) != (p == proverGnark) {
			return fmt.Errorf("-provers: %q is unknown, or not in its place", name)
		}
		b.provers = append(b.provers, p)
	}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	return b.all(ctx, settings, *cache)
}

func parseSettings(curves, kinds, logs, cache string) ([]setting, error) {
	var all []setting
	for l := range strings.SplitSeq(logs, ",") {
		log, err := strconv.Atoi(strings.TrimSpace(l))
		if err != nil {
			return nil, fmt.Errorf("-log: %w", err)
		}
		for c := range strings.SplitSeq(curves, ",") {
			id, err := curve.Parse(c)
			if err != nil {
				return nil, fmt.Errorf("-curves: %w", err)
			}
			for kind := range strings.SplitSeq(kinds, ",") {
				if kind != "bit-heavy" && kind != "dense" {
					return nil, fmt.Errorf("-kinds: %q is neither bit-heavy nor dense", kind)
				}
				dir := filepath.Join(cache, fmt.Sprintf("%v-%s-%d", id, kind, log))
				all = append(all, setting{id, kind, log, dir})
			}
		}
	}
	return all, nil
}

// child is what a process of its own does: prepare DIR…, or prove by one prover.
func child(ctx context.Context, args []string) error {
	if len(args) < 5 {
		return errors.New("child: WHAT CURVE KIND LOG DIR [PROOFS]")
	}
	id, err := curve.Parse(args[1])
	if err != nil {
		return err
	}
	log, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	s := setting{id: id, kind: args[2], log: log, dir: args[4]}
	if args[0] == "prepare" {
		return prepare(ctx, s)
	}
	proofs, err := strconv.Atoi(args[5])
	if err != nil {
		return err
	}
	return measure(ctx, args[0], s, proofs)
}
