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

// The file that a constraint system is read from takes no room on Go's heap
// beside gnark's own copy, and none at all afterwards.
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
	mapped := func() (n int64) {
		for _, r := range alloc.Default().Snapshot().Rows {
			if r.Kind == alloc.MappedFile {
				n += r.Allocated
			}
		}
		return n
	}
	for name, r := range map[string]io.ReaderAt{"file": f, "memory": bytes.NewReader(b.Bytes())} {
		before := mapped()
		got := heap(func() error {
			_, err := ReadR1CS(r, size, Options{})
			return err
		})
		if over := got - least; over > size/2 {
			t.Errorf("%s: %d bytes of heap more than gnark takes, the file has %d", name, over, size)
		}
		want := int64(0)
		if name == "file" {
			want = size
		}
		if n := mapped() - before; n != want {
			t.Errorf("%s: %d bytes were mapped, want %d", name, n, want)
		}
	}
}
