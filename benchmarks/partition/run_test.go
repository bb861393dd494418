package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/consensys/gnark/logger"

	"github.com/snarkline/snarkline/cuda/driver"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
)

// TestEveryEngineEvaluates: where a, b and c are evaluated is what was asked, with
// every engine of a run, not only with the first.
func TestEveryEngineEvaluates(t *testing.T) {
	path := emulator.Need(t, emulator.Config{})
	t.Setenv(driver.LibraryEnv, path)
	t.Setenv(driver.NVMLEnv, path)
	logger.Disable()
	file := filepath.Join(t.TempDir(), "batches.json")
	s := setting{
		id: curve.BN254, log: 10, bits: 0.8, batches: []int{1}, device: "cuda:0", b2s: "device", workers: []string{""},
		first: []int{0}, carve: []string{"", "100"}, eval: []string{"card", "host"}, keep: true, pack: true, json: file, cores: 2,
	}
	if err := s.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range bytes.Lines(lines) {
		var m measured
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		seen[m.Carveout]++
		want := m.Batch
		if m.Host {
			want = 0
		}
		if m.There != want {
			t.Errorf("%s, host evaluation %v: %d of %d proofs were evaluated on the card", m.Carveout, m.Host, m.There, m.Batch)
		}
	}
	if len(seen) != 2 {
		t.Errorf("engines: %v", seen)
	}
}
