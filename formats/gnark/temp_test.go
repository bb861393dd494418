package gnark

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/spill"
	"github.com/snarkline/snarkline/groth16"
)

// told is a Temp for a folder that writes down what it hears.
type told struct {
	Temp
	folder string
	size   int64
	err    error
	times  int
}

func tempIn(from int64, folders ...string) *told {
	v := &told{Temp: Temp{Folders: folders, from: from}}
	v.Told = func(folder string, size int64, err error) {
		v.folder, v.size, v.err = folder, size, err
		v.times++
	}
	return v
}

// diskFolder is an empty folder that takes temporary files.
func diskFolder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	f, err := spill.Create(dir, 1, false)
	if errors.Is(err, spill.ErrMemory) {
		t.Skipf("the tests' folder is memory: %v", err)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// nothingIn fails if something is in the folder, or open there still.
func nothingIn(t testing.TB, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("in the folder are %v, %v", entries, err)
	}
	fds, _ := filepath.Glob("/proc/self/fd/*") // where there is such a thing
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, dir+"/") {
			t.Errorf("%s is open", to)
		}
	}
}

func vectorsOf(k *groth16.ProvingKey) map[string][]byte {
	v := map[string][]byte{"A": k.A.Points.Data, "B1": k.B1.Points.Data, "B2": k.B2.Points.Data, "L": k.L.Points.Data, "H": k.H.Data}
	for i, c := range k.Commitments {
		v[fmt.Sprint("basis ", i)], v[fmt.Sprint("sigma ", i)] = c.Basis.Data, c.BasisExpSigma.Data
	}
	return v
}

// TestKeyInATemporaryFile: the points are those that are read into memory, and
// so are the proofs; they are counted as mapped, and nothing has a name.
func TestKeyInATemporaryFile(t *testing.T) {
	for _, id := range curve.All() {
		for _, name := range []string{"chain of 1", "commitments"} {
			m := makeFiles(t, id, sampleNamed(t, name))
			for enc, b := range m.keys {
				t.Run(fmt.Sprintf("%v/%s/%s", id, name, enc), func(t *testing.T) {
					noLeak(t)
					dir := diskFolder(t)
					want, err := readKey(t, b, KeyOptions{Circuit: m.ccs})
					if err != nil {
						t.Fatal(err)
					}
					closes(t, want)
					mapped, live := alloc.Default().Mapped(), alloc.Default().Live(alloc.Host)
					temp := tempIn(1, filepath.Join(dir, "none"), dir)
					key, err := readKey(t, b, KeyOptions{Circuit: m.ccs, Temp: temp.Temp})
					if err != nil {
						t.Fatal(err)
					}
					nothingIn(t, dir)
					var sum int64
					got := vectorsOf(key)
					for v, data := range vectorsOf(want) {
						if !bytes.Equal(data, got[v]) {
							t.Errorf("%s is another", v)
						}
						sum += int64(len(data))
					}
					if more := alloc.Default().Mapped() - mapped; more != sum {
						t.Errorf("%d bytes are counted as mapped, the points are %d", more, sum)
					}
					if more := alloc.Default().Live(alloc.Host) - live; more > want.Bytes()-sum {
						t.Errorf("%d bytes are in buffers beside %d that are mapped", more, sum)
					}
					if temp.times != 1 || temp.folder != dir || temp.err != nil || temp.size < sum {
						t.Errorf("told %d times: %q, %d of %d bytes, %v", temp.times, temp.folder, temp.size, sum, temp.err)
					}
					w, _ := full(t, id, m.sample.value)
					var proofs [2]bytes.Buffer
					for i, k := range []*groth16.ProvingKey{want, key} {
						p, err := groth16.ProveDirect(t.Context(), k, newCircuit(t, m.ccs), engine(t, id), w, rand.NewChaCha8([32]byte{7}))
						if err != nil {
							t.Fatal(err)
						}
						if err := WriteProof(&proofs[i], p, true); err != nil {
							t.Fatal(err)
						}
						k.Rest(k.A.Points)
					}
					// gnark's commitments draw randomness of their own.
					if len(want.Commitments) == 0 && !bytes.Equal(proofs[0].Bytes(), proofs[1].Bytes()) {
						t.Error("the proofs differ")
					}
					if err := key.Close(); err != nil {
						t.Fatal(err)
					}
					if alloc.Default().Mapped() != mapped {
						t.Error("something is mapped when the key is closed")
					}
				})
			}
		}
	}
}

// largeKey is a raw key of some 10 MB on BLS12-381.
func largeKey(t testing.TB) []byte {
	t.Helper()
	circuit, _ := chainOf(1<<14-3, 1)
	r, err := R1CSFromGnark(compile(t, curve.BLS12381, circuit))
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := groth16.UnsafeSetup(t.Context(), r, groth16.SetupOptions{Basis: curve.Monomial})
	if err != nil {
		t.Fatal(err)
	}
	closes(t, key)
	var b bytes.Buffer
	if err := WriteProvingKey(&b, key, Raw); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func residentFiles(t testing.TB) int64 {
	t.Helper()
	r, err := alloc.ResidentNow()
	if err != nil {
		t.Fatal(err)
	}
	if r.File < 0 {
		t.Skip("the system does not say what is resident of files")
	}
	return r.File
}

// TestTemporaryKeyRests: after its points were checked, and after each use, the
// key takes next to no memory.
func TestTemporaryKeyRests(t *testing.T) {
	noLeak(t)
	b, dir := largeKey(t), diskFolder(t)
	temp := tempIn(0, dir)
	if key, err := readKey(t, b, KeyOptions{Temp: temp.Temp}); err != nil { // what it touches of the program is there then
		t.Fatal(err)
	} else if err := key.Close(); err != nil {
		t.Fatal(err)
	}
	before := residentFiles(t)
	key, err := readKey(t, b, KeyOptions{Temp: temp.Temp})
	if err != nil {
		t.Fatal(err)
	}
	closes(t, key)
	size := int64(len(b))
	if temp.folder != dir || temp.size < size*9/10 || temp.size > size*11/10 {
		t.Fatalf("%q, %d bytes of %d, %v", temp.folder, temp.size, size, temp.err)
	}
	if more := residentFiles(t) - before; more > size/4 {
		t.Errorf("%d bytes of %d are resident when the key is read", more, size)
	}
	var sum byte
	for range 2 {
		for _, data := range vectorsOf(key) {
			for i := 0; i < len(data); i += 512 {
				sum += data[i]
			}
		}
		runtime.KeepAlive(sum)
		if more := residentFiles(t) - before; more < size*3/4 {
			t.Errorf("%d bytes of %d are resident when all was read", more, size)
		}
		for _, p := range []curve.Points{key.A.Points, key.B1.Points, key.B2.Points, key.L.Points, key.H} {
			key.Rest(p)
		}
		if more := residentFiles(t) - before; more > size/4 {
			t.Errorf("%d bytes of %d are resident when all rests", more, size)
		}
	}
}

// TestFoldersThatTakeNoKey: the key is read into memory, and why is told.
func TestFoldersThatTakeNoKey(t *testing.T) {
	noLeak(t)
	m := makeFiles(t, curve.BN254, sampleNamed(t, "hint"))
	b := m.keys["raw"]
	folders := map[string]string{"none": filepath.Join(t.TempDir(), "none"), "a file": "/dev/null"}
	if f, err := spill.Create("/dev/shm", 1, false); errors.Is(err, spill.ErrMemory) {
		folders["memory"] = "/dev/shm"
	} else {
		_ = f.Close()
	}
	for name, dir := range folders {
		mapped := alloc.Default().Mapped()
		temp := tempIn(1, dir)
		key, err := readKey(t, b, KeyOptions{Temp: temp.Temp})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if temp.times != 1 || temp.folder != "" || temp.err == nil || !strings.Contains(temp.err.Error(), dir) {
			t.Errorf("%s: told %d times: %q, %v", name, temp.times, temp.folder, temp.err)
		}
		if alloc.Default().Mapped() != mapped {
			t.Errorf("%s: something is mapped", name)
		}
		_ = key.Close()
	}
	// A key that is no burden, and no wish.
	for _, temp := range []*told{tempIn(0, diskFolder(t)), tempIn(1)} {
		key, err := readKey(t, b, KeyOptions{Temp: temp.Temp})
		if err != nil || temp.times != 0 {
			t.Errorf("told %d times: %v", temp.times, err)
		}
		_ = key.Close()
	}
}

// TestDiskFillsUp: a file that ceases to grow half-way leaves the key in memory
// and nothing on the disk.
func TestDiskFillsUp(t *testing.T) {
	noLeak(t)
	b, dir := largeKey(t), diskFolder(t)
	want, err := readKey(t, b, KeyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	closes(t, want)
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	few := old
	few.Cur = 4 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &few); err != nil {
		t.Fatal(err)
	}
	temp := tempIn(0, dir)
	key, err := readKey(t, b, KeyOptions{Temp: temp.Temp})
	if e := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); e != nil {
		t.Fatal(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	closes(t, key)
	if temp.times != 1 || temp.folder != "" || !errors.Is(temp.err, syscall.EFBIG) || !strings.Contains(temp.err.Error(), dir) {
		t.Errorf("told %d times: %q, %v", temp.times, temp.folder, temp.err)
	}
	got := vectorsOf(key)
	for v, data := range vectorsOf(want) {
		if !bytes.Equal(data, got[v]) {
			t.Errorf("%s is another", v)
		}
	}
	nothingIn(t, dir)
}

// endsAt is a file during whose reading somebody loses patience.
type endsAt struct {
	io.ReaderAt
	left atomic.Int64
	end  func()
}

func (r *endsAt) ReadAt(b []byte, at int64) (int, error) {
	if r.left.Add(-1) == 0 {
		r.end()
	}
	return r.ReaderAt.ReadAt(b, at)
}

// TestCancelledConversion ends the reading at many places: no file and no
// mapping stays.
func TestCancelledConversion(t *testing.T) {
	noLeak(t)
	b, dir := largeKey(t), diskFolder(t)
	for _, after := range []int64{1, 20, 25, 40, 60, 100, 150} {
		ctx, cancel := context.WithCancel(t.Context())
		r := &endsAt{ReaderAt: bytes.NewReader(b), end: cancel}
		r.left.Store(after)
		mapped := alloc.Default().Mapped()
		temp := tempIn(0, dir)
		key, err := ReadProvingKey(ctx, r, int64(len(b)), KeyOptions{Temp: temp.Temp, Options: Options{SkipSubgroup: true}})
		cancel()
		if err == nil {
			_ = key.Close()
		}
		if !errors.Is(err, context.Canceled) || r.left.Load() > 0 {
			t.Errorf("ended at read %d (%d left): %v", after, r.left.Load(), err)
		}
		if temp.times != 0 {
			t.Errorf("ended at read %d: told of %q, %v", after, temp.folder, temp.err)
		}
		if alloc.Default().Mapped() != mapped {
			t.Errorf("ended at read %d: something stays mapped", after)
		}
		nothingIn(t, dir)
	}
}

// TestBadKeysInATemporaryFile: a file that is cut or changed gives the error
// that it gives without.
func TestBadKeysInATemporaryFile(t *testing.T) {
	noLeak(t)
	dir := diskFolder(t)
	for _, id := range curve.All() {
		m := makeFiles(t, id, sampleNamed(t, "commitments"))
		for enc, b := range m.keys {
			step := max(len(b)/40, 1)
			for at := 0; at < len(b); at += step {
				changed := bytes.Clone(b)
				changed[at] ^= 0x41
				for what, data := range map[string][]byte{"cut": b[:at], "changed": changed} {
					o := KeyOptions{Options: Options{Name: "f"}, Circuit: m.ccs}
					want, wantErr := readKey(t, data, o)
					o.Temp = Temp{Folders: []string{dir}, from: 1}
					got, err := readKey(t, data, o)
					if fmt.Sprint(err) != fmt.Sprint(wantErr) {
						t.Errorf("%v, %s, %s at %d: %v, without the file %v", id, enc, what, at, err, wantErr)
					}
					for _, k := range []*groth16.ProvingKey{want, got} {
						if k != nil {
							_ = k.Close()
						}
					}
				}
			}
		}
	}
	nothingIn(t, dir)
}
