package main

import (
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/snarkline/snarkline/benchmarks/internal/meter"
)

// table prints rows as they come and counts what missed its bar.
type table struct {
	rows, missed int
}

func (t *table) head() {
	t.line("operation", "threads", "gnark-crypto", "ours", "ratio", "bar")
}

// compare has theirs and ours take turns and prints a row: the medians of the
// rounds, divided by per. The first round does not count. No bar is 0.
func (t *table) compare(what string, threads, rounds, per int, bar float64, theirs, ours func() error) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
	var took [2][]time.Duration
	for round := range rounds + 1 {
		for i, f := range []func() error{theirs, ours} {
			runtime.GC() // so that nobody's garbage is collected in the other one's time
			start := time.Now()
			if err := f(); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			if d := time.Since(start); round > 0 {
				took[i] = append(took[i], d)
			}
		}
	}
	a, b := meter.Median(took[0], same), meter.Median(took[1], same)
	t.row(what, threads, a, b, per, bar)
	return nil
}

func same(d time.Duration) time.Duration { return d }

func (t *table) row(what string, threads int, theirs, ours time.Duration, per int, bar float64) {
	ratio := ours.Seconds() / theirs.Seconds()
	verdict := ""
	if bar > 0 {
		t.rows++
		verdict = fmt.Sprintf("%.2f ok", bar)
		if ratio > bar {
			t.missed++
			verdict = fmt.Sprintf("%.2f missed by %.0f%%", bar, 100*(ratio/bar-1))
		}
	}
	t.line(what, strconv.Itoa(threads), show(theirs, per), show(ours, per), fmt.Sprintf("%.3f", ratio), verdict)
}

// line prints at once: a run takes minutes.
func (t *table) line(what, threads, theirs, ours, ratio, bar string) {
	fmt.Printf("%-52s %7s %14s %12s %7s  %s\n", what, threads, theirs, ours, ratio, bar)
}

func show(d time.Duration, per int) string {
	if per > 1 {
		return fmt.Sprintf("%.2f ns", float64(d.Nanoseconds())/float64(per))
	}
	return fmt.Sprintf("%.2f ms", d.Seconds()*1e3)
}

func (t *table) end(strict bool) error {
	fmt.Printf("%d of %d bars met\n", t.rows-t.missed, t.rows)
	if strict && t.missed > 0 {
		return fmt.Errorf("%d bars are missed", t.missed)
	}
	return nil
}
