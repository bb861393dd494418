package main

import (
	"context"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/emulator"
)

func proves(t *testing.T, want ...string) {
	t.Helper()
	var out strings.Builder
	if err := run(context.Background(), &out); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	for _, s := range append(want, "card/0  on", "card/3  on") {
		if !strings.Contains(out.String(), s) {
			t.Errorf("the output lacks %q", s)
		}
	}
	alloc.CheckLeaks(t)
}

func TestWithoutCard(t *testing.T) {
	t.Setenv("SNARKLINE_CUDA_LIBRARY", "/no/such/library.so")
	proves(t, "no card: ", "/no/such/library.so", "proving on the CPU", "card/1  on cpu, b_g2_msm on cpu, attempts 1")
}

func TestOnCard(t *testing.T) {
	t.Setenv("SNARKLINE_CUDA_LIBRARY", emulator.Need(t))
	proves(t, "proving on cuda:0", "card/1  on cuda:0, b_g2_msm on ", "device0")
}

func TestOnTwoCards(t *testing.T) {
	t.Setenv("SNARKLINE_CUDA_LIBRARY", emulator.Need(t, emulator.Config{Cards: make([]emulator.Card, 2)}))
	proves(t, "proving on cuda:0", "proving on cuda:1", "  on cuda:0, b_g2_msm on ", "  on cuda:1, b_g2_msm on ", "device0", "device1")
}
