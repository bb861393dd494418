// Command arithmetic measures package cpu against gnark-crypto, operation by
// operation, in one process: products in the fields, multi-scalar
// multiplications, transforms. The two take turns, medians are compared, and
// each ratio (time of ours over time of theirs) is printed beside its bar.
// Whole proofs are measured by command peers.
//
//	arithmetic -parts fields
//	arithmetic -parts msm -groups g1 -curves bls12-381 -log 16,18
//	arithmetic -parts ntt,portable -log 20 -threads 2
//
// Results are compared with gnark-crypto's, bit for bit, before they count.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
)

// bench is what was asked for.
type bench struct {
	parts, kinds []string
	curves       []curve.ID
	groups       []curve.Group
	logs         []int
	threads      []int
	rounds       int
	strict       bool
	table
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "arithmetic:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	b, err := parse(args)
	if err != nil {
		return err
	}
	if !cpu.HasVectors() {
		fmt.Fprintln(os.Stderr, "NO AVX-512 IFMA HERE: the bars are for machines that have it; only -parts portable means something")
	}
	debug.SetGCPercent(400) // gnark-crypto's bucket arrays are garbage after each sum
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	b.head()
	for _, part := range b.parts {
		f := map[string]func(context.Context) error{
			"fields": b.fields, "msm": b.msm, "ntt": b.ntt, "portable": b.portable,
		}[part]
		if f == nil {
			return fmt.Errorf("-parts: %q is none of fields, msm, ntt, portable", part)
		}
		if err := f(ctx); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return b.end(b.strict)
}

func parse(args []string) (*bench, error) {
	fs := flag.NewFlagSet("arithmetic", flag.ContinueOnError)
	parts := fs.String("parts", "fields,ntt,msm,portable", "what to measure, a list")
	curves := fs.String("curves", "bls12-381,bn254", "curves, a list")
	groups := fs.String("groups", "g1,g2", "groups of the sums, a list")
	kinds := fs.String("kinds", strings.Join(scalarKinds, ","), "scalars of the sums, a list")
	logs := fs.String("log", "16", "log2 of the sizes, a list; 20 takes minutes")
	threads := fs.String("threads", "1,2", "numbers of threads, a list")
	rounds := fs.Int("rounds", 5, "measured rounds of each, after one that is not")
	strict := fs.Bool("strict", false, "end with an error if a bar is missed")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	b := &bench{parts: list(*parts), kinds: list(*kinds), rounds: *rounds, strict: *strict}
	var err error
	if b.logs, err = numbers("-log", *logs, 1, 24); err != nil {
		return nil, err
	}
	if b.threads, err = numbers("-threads", *threads, 1, runtime.NumCPU()); err != nil {
		return nil, err
	}
	for _, name := range list(*curves) {
		id, err := curve.Parse(name)
		if err != nil {
			return nil, fmt.Errorf("-curves: %w", err)
		}
		b.curves = append(b.curves, id)
	}
	for _, name := range list(*groups) {
		switch name {
		case "g1":
			b.groups = append(b.groups, curve.InG1)
		case "g2":
			b.groups = append(b.groups, curve.InG2)
		default:
			return nil, fmt.Errorf("-groups: %q is neither g1 nor g2", name)
		}
	}
	for _, k := range b.kinds {
		if !slices.Contains(scalarKinds, k) {
			return nil, fmt.Errorf("-kinds: %q is none of %s", k, strings.Join(scalarKinds, ", "))
		}
	}
	if b.rounds < 1 {
		return nil, errors.New("-rounds: less than one")
	}
	return b, nil
}

func list(s string) []string {
	v := strings.Split(s, ",")
	for i := range v {
		v[i] = strings.TrimSpace(v[i])
	}
	return v
}

func numbers(name, s string, from, to int) ([]int, error) {
	var out []int
	for _, f := range list(s) {
		n, err := strconv.Atoi(f)
		if err != nil || n < from || n > to {
			return nil, fmt.Errorf("%s: %q is not a number from %d to %d", name, f, from, to)
		}
		out = append(out, n)
	}
	return out, nil
}
