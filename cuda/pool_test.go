package cuda

import (
	"testing"

	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/stages"
)

// TestFirst proves with streams that come first, and kernels of one carve-out;
// everything ends with the engine.
func TestFirst(t *testing.T) {
	id := curve.BN254
	k := key(t, id, 60, 40, keyKinds["coset folded"])
	e := newEngine(t, id, emulator.Config{}, Streams(4), First(2), Carveout(100))
	if e.ahead == &e.pool || e.workers.Len() != 2 || e.ahead.workers.Len() != 2 {
		t.Errorf("%d workers, %d of them first", e.workers.Len(), e.ahead.workers.Len())
	}
	defer keep(t, e, k)()
	batch(t, prover(k, e), k, 4, stages.BatchOptions{})
	if _, err := New(e.card, id, host(t, id), Streams(2), First(2)); err == nil {
		t.Error("all streams come first")
	}
}
