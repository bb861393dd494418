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

// TestEvaluates: a, b and c are evaluated where it was asked, with every place of
// b_g2_msm.
func TestEvaluates(t *testing.T) {
	path := emulator.Need(t, emulator.Config{})
	t.Setenv(driver.LibraryEnv, path)
	t.Setenv(driver.NVMLEnv, path)
	logger.Disable()
	file := filepath.Join(t.TempDir(), "batches.json")
	s := setting{
		id: curve.BN254, log: 10, bits: 0.8, batches: []int{1}, device: "cuda:0", b2s: "device,cpu", workers: []string{""},
		eval: []string{"card", "host"}, keep: true, pack: true, json: file, cores: 2,
	}
	if err := s.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	type place struct {
		host bool
		b2   string
	}
	seen := map[place]int{}
	for line := range bytes.Lines(lines) {
		var m measured
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		seen[place{m.Host, m.B2}]++
		want := m.Batch
		if m.Host {
			want = 0
		}
		if m.There != want {
			t.Errorf("b_g2_msm on %s, host evaluation %v: %d of %d proofs were evaluated on the card", m.B2, m.Host, m.There, m.Batch)
		}
	}
	if len(seen) != 4 {
		t.Errorf("places: %v", seen)
	}
}
