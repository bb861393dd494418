// Command partition proves synthetic circuits of whole partitions on a card: one
// alone, with the time and the memory of each stage, and a batch, with the time a
// proof and how busy the card was. Every proof is verified by gnark's verifier.
//
//	go run ./benchmarks/partition -log 22,24 -batch 8
//
// The key is made on the spot, of the coset basis and folded. A machine without
// a card takes -device cpu, or the emulator (SNARKLINE_CUDA_LIBRARY) for small
// sizes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/consensys/gnark/logger"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

type setting struct {
	id      curve.ID
	log     int
	bits    float64
	batch   int   // of those
	batches []int // partitions in a batch
	rounds  int
	device  string
	b2      string // of those
	b2s     string
	workers []string // of stages, as settings have them; one batch each
	streams int
	check   bool
	keep    bool
	pack    bool
	pool    string
	eval    []string // where a, b and c are evaluated
	trace   string
	json    string
	after   string
	cores   int
}

func main() {
	logs := flag.String("log", "22,24", "log2 of the constraints, a list")
	name := flag.String("curve", "bls12-381", "curve")
	s := setting{}
	flag.Float64Var(&s.bits, "bits", 0.8, "share of scalars that are 0 or 1")
	batches := flag.String("batch", "8", "partitions in the batch; several batches by commas")
	flag.IntVar(&s.rounds, "rounds", 3, "how often the partition alone is proved (0: never); the table is the median's")
	flag.StringVar(&s.device, "device", "cuda:0", "cuda:N, a list of them, or cpu")
	flag.StringVar(&s.b2s, "b2", "auto", "where b_g2_msm runs: auto, cpu or device, or several by commas, one after the other")
	set := flag.String("set", "synthesize.workers=1,batch-add.workers=2,b_g2_msm.workers=2", "workers and capacities of the batch, by commas; several batches by semicolons")
	flag.IntVar(&s.streams, "streams", 0, "operations side by side on a card (0: the engine's default)")
	flag.BoolVar(&s.check, "check", false, "look for an unsatisfied constraint at synthesis")
	flag.BoolVar(&s.keep, "keep", true, "keep the key's points on the card; without, they are streamed")
	flag.BoolVar(&s.pack, "pack", true, "pack vectors on their way to the card; without, they are copied as they are")
	eval := flag.String("evaluate", "card", "where a, b and c are evaluated: card or host, or both by a comma, one after the other")
	flag.StringVar(&s.trace, "trace", "", "file to write when each stage of each item of a batch began and ended")
	flag.StringVar(&s.json, "json", "", "file to append a line for each batch to")
	flag.StringVar(&s.after, "after", "", "file to wait for when the key is made: the card is not touched before it is there")
	flag.StringVar(&s.pool, "pool", "6GiB", "freed host memory that is kept for the next partition")
	n := runtime.GOMAXPROCS(0)
	flag.IntVar(&s.cores, "cores", n-n/4, "cores that synthesis, and sums on the host, share; the others bring vectors to the card")
	flag.Parse()
	s.workers = strings.Split(*set, ";")
	s.eval = strings.Split(*eval, ",")
	logger.Disable()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	begun := time.Now()
	err := func() (err error) {
		for _, n := range strings.Split(*batches, ",") {
			k, err := strconv.Atoi(n)
			if err != nil {
				return fmt.Errorf("-batch: %w", err)
			}
			s.batches = append(s.batches, k)
		}
		if s.id, err = curve.Parse(*name); err != nil {
			return err
		}
		pool, err := alloc.ParseBytes(s.pool)
		if err != nil {
			return err
		}
		alloc.Default().SetPoolLimit(pool)
		for _, l := range strings.Split(*logs, ",") {
			if s.log, err = strconv.Atoi(l); err != nil {
				return err
			}
			if err = s.run(ctx); err != nil {
				return fmt.Errorf("2^%d: %w", s.log, err)
			}
		}
		return nil
	}()
	fmt.Printf("\n%.0f s in all\n", time.Since(begun).Seconds())
	if err != nil {
		fmt.Fprintln(os.Stderr, "partition:", err)
		os.Exit(1)
	}
}
