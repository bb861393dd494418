package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/benchmarks/internal/meter"
)

// bench runs the provers in turns and prints the table.
type bench struct {
	self           string
	rounds, proofs int
	provers        []string
	snarkjs        string // cli.cjs; empty leaves snarkjs out
	snarkjsLog     int
	command        string // the command snarkline, built for the run
}

func (b *bench) all(ctx context.Context, settings []setting, cache string) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	b.command = filepath.Join(cache, "snarkline")
	build := exec.CommandContext(ctx, "go", "build", "-o", b.command, "github.com/snarkline/snarkline/cmd/snarkline")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the command: %w", err)
	}
	tw := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, s := range settings {
		fmt.Fprintf(os.Stderr, "%v: circuit and keys\n", s)
		if _, err := b.child(ctx, "prepare", s); err != nil {
			return err
		}
		if err := b.inProcess(ctx, tw, s); err != nil {
			return err
		}
		if b.snarkjs != "" && s.log <= b.snarkjsLog {
			if err := b.processes(ctx, tw, s); err != nil {
				return err
			}
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// inProcess measures proofs alone: gnark against Snarkline.
func (b *bench) inProcess(ctx context.Context, tw *tabwriter.Writer, s setting) error {
	provers := b.provers
	samples := map[string][]meter.Sample{}
	for range b.rounds {
		for _, p := range provers {
			fmt.Fprintf(os.Stderr, "%v: %s\n", s, p)
			out, err := b.child(ctx, p, s)
			if err != nil {
				return err
			}
			var got []meter.Sample
			if err := json.Unmarshal(out, &got); err != nil {
				return fmt.Errorf("%s: %w", p, err)
			}
			samples[p] = append(samples[p], got...)
		}
	}
	fmt.Fprintf(tw, "%v\twall\tCPU\tpeak RSS\tloaded\ttime\tRSS\n", s)
	printRows(tw, provers, samples)
	return nil
}

// processes measures whole processes on the same .zkey: snarkjs against the
// command.
func (b *bench) processes(ctx context.Context, tw *tabwriter.Writer, s setting) error {
	file := func(name string) string { return filepath.Join(s.dir, name) }
	proof, public := file("proof.json"), file("public.json")
	commands := map[string][]string{
		"snarkjs groth16 prove": {"node", b.snarkjs, "groth16", "prove", file(fileZkey), file(fileWtns), proof, public},
		"snarkline prove": {b.command, "prove", "--quiet", "--skip-subgroup-check",
			"--key", file(fileZkey), "--witness", file(fileWtns), "--proof", proof, "--public", public},
		"snarkline prove, key checked": {b.command, "prove", "--quiet",
			"--key", file(fileZkey), "--witness", file(fileWtns), "--proof", proof, "--public", public},
	}
	order := []string{"snarkjs groth16 prove", "snarkline prove", "snarkline prove, key checked"}
	samples := map[string][]meter.Sample{}
	for range b.rounds {
		for _, name := range order {
			fmt.Fprintf(os.Stderr, "%v: %s\n", s, name)
			args := commands[name]
			cmd := exec.CommandContext(ctx, args[0], args[1:]...)
			start := time.Now()
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w\n%s", name, err, out)
			}
			wall := time.Since(start)
			usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			if !ok {
				return fmt.Errorf("%s: no resource usage on this system", name)
			}
			samples[name] = append(samples[name], meter.Sample{
				Wall: wall, CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), Peak: usage.Maxrss * 1024,
			})
			check := exec.CommandContext(ctx, "node", b.snarkjs, "groth16", "verify", file(fileVK), public, proof)
			if out, err := check.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("OK!")) {
				return fmt.Errorf("snarkjs refuses the proof of %s: %w\n%s", name, err, out)
			}
		}
	}
	fmt.Fprintf(tw, "%v, .zkey\twall\tCPU\tpeak RSS\t\ttime\tRSS\n", s)
	printRows(tw, order, samples)
	return nil
}

// print writes a line of medians for each prover, with its ratios to the first.
func printRows(tw *tabwriter.Writer, provers []string, samples map[string][]meter.Sample) {
	var first meter.Sample
	for i, p := range provers {
		v := samples[p]
		m := meter.Sample{
			Wall: meter.Median(v, func(s meter.Sample) time.Duration { return s.Wall }),
			CPU:  meter.Median(v, func(s meter.Sample) time.Duration { return s.CPU }),
			Peak: meter.Median(v, func(s meter.Sample) int64 { return s.Peak }),
			Base: meter.Median(v, func(s meter.Sample) int64 { return s.Base }),
		}
		if i == 0 {
			first = m
		}
		base := ""
		if m.Base > 0 {
			base = humanize.IBytes(uint64(m.Base))
		}
		fmt.Fprintf(tw, "  %s\t%.2f s\t%.2f s\t%s\t%s\t%s\t%s\n", p, m.Wall.Seconds(), m.CPU.Seconds(),
			humanize.IBytes(uint64(m.Peak)), base,
			against(m.Wall.Seconds()/first.Wall.Seconds(), ways[p].time),
			against(float64(m.Peak)/float64(first.Peak), ways[p].memory))
	}
	fmt.Fprintln(tw)
}

// against is a ratio beside its bar, if there is one.
func against(ratio, bar float64) string {
	switch {
	case bar == 0:
		return fmt.Sprintf("%.2f", ratio)
	case ratio > bar:
		return fmt.Sprintf("%.2f (%.2f missed)", ratio, bar)
	}
	return fmt.Sprintf("%.2f (%.2f ok)", ratio, bar)
}

func (b *bench) child(ctx context.Context, what string, s setting) ([]byte, error) {
	cmd := exec.CommandContext(ctx, b.self, "child", what, s.id.String(), s.kind, strconv.Itoa(s.log), s.dir,
		strconv.Itoa(b.proofs))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %s: %w", s, what, err)
	}
	return out, nil
}
