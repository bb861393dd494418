package gnark

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// The file that a constraint system is read from is mapped whole and not copied,
// anything else is copied once, and nothing of either is kept. Neither takes room
// on Go's heap beside gnark's own copy.
func TestR1CSFileIsMapped(t *testing.T) {
	noLeak(t)
	id := curve.BN254
	circuit, _ := chainOf(30_000, 1)
	ccs := compile(t, id, circuit)
	var b bytes.Buffer
	if err := WriteR1CS(&b, ccs); err != nil {
		t.Fatal(err)
	}
	size := int64(b.Len())
	path := filepath.Join(t.TempDir(), "r1cs")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	heap := func(do func() error) int64 {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := do(); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return int64(after.TotalAlloc - before.TotalAlloc)
	}
	least := heap(func() error {
		ccs, err := decodeR1CS(id, b.Bytes())
		if err != nil {
			return err
		}
		counts, err := precheck(newReader(nil, size, "", nil), b.Bytes())
		if err != nil {
			return err
		}
		return checkSystem(ccs, id, counts)
	})
	// What was counted in the name of the files: mapped, copied, and still there.
	counters := func() (mapped, copied, live int64) {
		for _, r := range alloc.Default().Snapshot().Rows {
			switch {
			case r.Stage != "files":
				continue
			case r.Kind == alloc.MappedFile:
				mapped += r.Allocated
			default:
				copied += r.Allocated
			}
			live += r.Live
		}
		return mapped, copied, live
	}
	for _, c := range []struct {
		name           string
		r              io.ReaderAt
		mapped, copied int64
	}{
		{"file", f, size, 0},
		{"memory", bytes.NewReader(b.Bytes()), 0, size},
	} {
		mapped, copied, live := counters()
		got := heap(func() error {
			_, err := ReadR1CS(c.r, size, Options{})
			return err
		})
		// With checks for debugging, alloc takes its memory from Go's heap and notes
		// who asked for it.
		if over := got - least; !alloc.Debug && over > size/2 {
			t.Errorf("%s: %d bytes of heap more than gnark takes, the file has %d", c.name, over, size)
		}
		m, k, l := counters()
		if m-mapped != c.mapped || k-copied < c.copied || k-copied > 2*c.copied || l != live {
			t.Errorf("%s: %d bytes mapped, %d copied and %d kept, want %d, about %d and 0", c.name, m-mapped, k-copied, l-live, c.mapped, c.copied)
		}
	}
}
