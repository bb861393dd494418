// Command snarkline proves, verifies and inspects Groth16 circuits through a
// pipeline whose memory is bounded and visible. `snarkline --help` lists its
// commands; docs/cli.md describes them.
package main

import (
	"context"
	"os"

	"github.com/consensys/gnark/logger"
)

func main() {
	logger.Disable() // gnark's, which writes to standard output
	ctx, stop := interruptible(context.Background())
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
