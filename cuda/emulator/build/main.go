// Command build builds the stand-in for CUDA's driver and prints its path, to
// be named in SNARKLINE_CUDA_LIBRARY and SNARKLINE_NVML_LIBRARY. What the card
// is, SNARKLINE_EMULATOR says as JSON (see emulator.Config). With -v it says how
// long each file took. Arguments are kernel files to take instead of all.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/snarkline/snarkline/cuda/emulator"
)

func main() {
	verbose := flag.Bool("v", false, "say how long each file took")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o emulator.Options
	if flag.NArg() > 0 {
		o.Kernels = flag.Args()
	}
	b, err := emulator.Build(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if *verbose {
		for _, f := range b.Files {
			fmt.Fprintf(os.Stderr, "%8v  %s\n", f.Took.Round(10*time.Millisecond), f.File)
		}
		fmt.Fprintf(os.Stderr, "%8v  in all, with %s\n", b.Took.Round(10*time.Millisecond), b.Compiler)
	}
	fmt.Println(b.Path)
}
