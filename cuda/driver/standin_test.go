//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ebitengine/purego"

	"github.com/snarkline/snarkline/gpu"
)

// built keeps the stand-ins of this run, by the arguments they were built with.
var built struct {
	sync.Mutex
	dir   string
	paths map[string]string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// buildStandin compiles testdata/standin.c. Symbols to leave out are given as
// names.
func buildStandin(t testing.TB, without ...string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	key := strings.Join(without, " ")
	if p := built.paths[key]; p != "" {
		return p
	}
	cc := ""
	for _, c := range []string{os.Getenv("CC"), "cc", "gcc", "clang", "clang-19"} {
		if p, err := exec.LookPath(c); c != "" && err == nil {
			cc = p
			break
		}
	}
	if cc == "" {
		t.Skip("SKIPPED: no C compiler (CC, cc, gcc, clang), so no stand-in for libcuda: the driver binding is NOT tested here")
	}
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "standin")
		if err != nil {
			t.Fatal(err)
		}
		built.dir, built.paths = dir, map[string]string{}
	}
	path := filepath.Join(built.dir, fmt.Sprintf("standin%d.so", len(built.paths)))
	args := []string{"-shared", "-fPIC", "-O1", "-o", path, filepath.Join("testdata", "standin.c"), "-lpthread"}
	for _, w := range without {
		args = append(args, "-D"+w+"=left_out_"+w)
	}
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("build the stand-in: %v\n%s", err, out)
	}
	built.paths[key] = path
	return path
}

// standin controls a stand-in library.
type standin struct {
	path  string
	Setup func(version, cards, major int32)
	Fault func(name string, n, code int32)
	Ended func(v int32)
	Late  func(v int32)
	Calls func() int64
	NVML  func(code int32)
	live  func(out *byte, n int32)
}

func newStandin(t testing.TB, without ...string) *standin {
	t.Helper()
	if os.Getenv(testDeviceEnv) != "" {
		t.Skip("a real card is tested")
	}
	s := &standin{path: buildStandin(t, without...)}
	h, err := purego.Dlopen(s.path, purego.RTLD_NOW)
	if err != nil {
		t.Fatal(err)
	}
	purego.RegisterLibFunc(&s.Setup, h, "standin_setup")
	purego.RegisterLibFunc(&s.Fault, h, "standin_fault")
	purego.RegisterLibFunc(&s.Ended, h, "standin_ended")
	purego.RegisterLibFunc(&s.Late, h, "standin_late")
	purego.RegisterLibFunc(&s.Calls, h, "standin_calls")
	purego.RegisterLibFunc(&s.NVML, h, "standin_nvml")
	purego.RegisterLibFunc(&s.live, h, "standin_live")
	s.Setup(12040, 1, 8)
	s.NVML(0)
	return s
}

// Live is what the stand-in counts.
func (s *standin) Live() string {
	b := make([]byte, 256)
	s.live(&b[0], int32(len(b)))
	return string(b[:bytes.IndexByte(b, 0)])
}

const nothingLive = "contexts 0 memory 0 streams 0 events 0 modules 0 registered 0"

// open opens the stand-in and gives its first card; both are closed at the
// test's end, when nothing may be left.
func (s *standin) open(t testing.TB) gpu.Device {
	t.Helper()
	d, err := Open(s.path)
	if err != nil {
		t.Fatal(err)
	}
	devices, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Fault("", 1, 0)
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if l := s.Live(); l != nothingLive {
			t.Errorf("left behind: %s", l)
		}
	})
	return devices[0]
}
