package alloc

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/pprof/profile"
	"pgregory.net/rapid"
)

func TestPeaksAreThoseOfTheSum(t *testing.T) {
	tr := newTracker()
	mk := func(stage string, n int) *Buffer[byte] {
		return must[*Buffer[byte]](t)(Make[byte](scope(tr, stage, Host, nil), n, Scratch, 0))
	}
	a := mk("peak-a", 100)
	a.Release()
	b := mk("peak-b", 60)
	c := mk("peak-a", 30)
	s := tr.Snapshot()
	if p := s.Space(Host).Peak; p != 100 {
		t.Fatalf("the peak is %d: the stages' peaks were not at one moment", p)
	}
	if x, y := s.Stage("peak-a", Host), s.Stage("peak-b", Host); x.Peak != 100 || y.Peak != 60 || x.Live != 30 || x.Allocated != 130 || x.Freed != 100 {
		t.Fatalf("%+v %+v", x, y)
	}
	tr.ResetPeaks()
	b.Release()
	s = tr.Snapshot()
	if s.Space(Host).Peak != 90 || s.Space(Host).Live != 30 || s.Stage("peak-a", Host).Peak != 30 {
		t.Fatalf("after ResetPeaks: %+v", s.Space(Host))
	}
	c.Release()
}

// Random allocations by several goroutines: the counters equal what was done,
// and no snapshot taken meanwhile contradicts itself.
func TestCountersAddUp(t *testing.T) {
	tr := newTracker()
	stages := []string{"sum-a", "sum-b", "sum-c"}
	purposes := []Purpose{Witness, Bucket, PurposeOf("sum-own")}
	var mu sync.Mutex
	allocated := map[string]int64{}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			s := tr.Snapshot()
			for _, r := range s.Rows {
				if r.Freed < 0 || r.Live < 0 || r.Allocated < r.Live {
					t.Errorf("a row contradicts itself: %+v", r)
					return
				}
			}
			if h := s.Space(Host); h.Freed < 0 || h.Live < 0 {
				t.Errorf("the total contradicts itself: %+v", h)
				return
			}
		}
	}()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			mine := map[string]int64{}
			for range 500 {
				st, p := stages[rng.IntN(3)], purposes[rng.IntN(3)]
				b, err := Make[byte](scope(tr, st, Host, nil), rng.IntN(9000), p, Dirty)
				if err != nil {
					t.Error(err)
					return
				}
				mine[st+p.String()] += b.Bytes()
				b.Release()
			}
			mu.Lock()
			for k, v := range mine {
				allocated[k] += v
			}
			mu.Unlock()
		})
	}
	wg.Wait()
	close(stop)
	<-done
	s := tr.Snapshot()
	var total int64
	for _, r := range s.Rows {
		if want := allocated[r.Stage+r.Purpose]; r.Allocated != want || r.Freed != want || r.Live != 0 || r.Peak == 0 {
			t.Errorf("%+v, want %d bytes allocated and freed", r, want)
		}
		total += r.Allocated
	}
	if h := s.Space(Host); h.Allocated != total || h.Live != 0 || len(s.Rows) != 9 || len(s.Stages) != 3 {
		t.Errorf("%+v", h)
	}
}

func filled(t testing.TB) (*Tracker, func()) {
	tr := newTracker()
	a := must[*Buffer[byte]](t)(Make[byte](scope(tr, "ntt", Host, nil), 3<<20, Evaluation, 0))
	b := must[*Buffer[byte]](t)(Make[byte](scope(tr, "ntt", Host, nil), 1<<20, Scratch, 0))
	c := must[*Charge](t)(Foreign(scope(tr, "synthesize", Host, nil), External, 5<<20))
	return tr, func() { a.Release(); b.Release(); c.Release() }
}

func TestSnapshotIsJSON(t *testing.T) {
	tr, done := filled(t)
	defer done()
	s := tr.Snapshot()
	s.Time = s.Time.Round(0) // JSON keeps no monotonic clock
	text := must[[]byte](t)(json.Marshal(s))
	var back Snapshot
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if !s.Time.Equal(back.Time) {
		t.Fatal("the time changed")
	}
	back.Time = s.Time
	if !reflect.DeepEqual(s, back) {
		t.Fatalf("%+v\nbecame\n%+v", s, back)
	}
}

func TestTable(t *testing.T) {
	tr, done := filled(t)
	defer done()
	var out bytes.Buffer
	if err := tr.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"space", "host", "9.0 MiB", "ntt", "4.0 MiB", "evaluation", "3.0 MiB", "synthesize", "foreign", "5.0 MiB"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
	if err := tr.WriteTable(failingWriter{}); err == nil {
		t.Error("a failed write is not told")
	}
	if err := tr.WriteProfile(failingWriter{}); err == nil {
		t.Error("a failed write is not told")
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestProfile(t *testing.T) {
	tr, done := filled(t)
	defer done()
	var out bytes.Buffer
	if err := tr.WriteProfile(&out); err != nil {
		t.Fatal(err)
	}
	p := must[*profile.Profile](t)(profile.ParseData(out.Bytes()))
	sums := map[string][]int64{}
	for _, s := range p.Sample {
		leaf := s.Location[0].Line[0].Function.Name
		if sums[leaf] == nil {
			sums[leaf] = make([]int64, len(s.Value))
		}
		for i, v := range s.Value {
			sums[leaf][i] += v
		}
		if caller := s.Location[1].Line[0].Function.Name; !strings.HasPrefix(leaf, caller+"/") {
			t.Errorf("%s is called by %s", leaf, caller)
		}
	}
	want := map[string][]int64{
		"ntt/evaluation":     {3 << 20, 3 << 20, 3 << 20, 1},
		"ntt/scratch":        {1 << 20, 1 << 20, 1 << 20, 1},
		"synthesize/foreign": {5 << 20, 5 << 20, 5 << 20, 1},
	}
	if !reflect.DeepEqual(sums, want) {
		t.Fatalf("%v, want %v", sums, want)
	}
}

func TestGoToolPprofOpensTheProfile(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command")
	}
	gocmd, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command")
	}
	tr, done := filled(t)
	defer done()
	path := filepath.Join(t.TempDir(), "memory.pb.gz")
	f := must[*os.File](t)(os.Create(path))
	if err := tr.WriteProfile(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(gocmd, "tool", "pprof", "-top", "-unit=mb", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"Type: live_space", "5MB 55.56%", "synthesize/foreign", "3MB 33.33%", "ntt/evaluation", "4MB 44.44%  ntt\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("pprof does not say %q:\n%s", want, out)
		}
	}
}

func TestNames(t *testing.T) {
	in := newInterner(4, 1, "none", "rest")
	for range 2 {
		if a, b := in.of("a"), in.of("b"); a != 2 || b != 3 || in.name(a) != "a" || in.name(b) != "b" {
			t.Fatalf("%d, %d", a, b)
		}
		if c := in.of("c"); c != 1 || in.name(c) != "rest" {
			t.Fatalf("a name too many is number %d", c)
		}
	}
	var wg sync.WaitGroup
	many := newInterner(1000, 0, "none")
	for range 4 {
		wg.Go(func() {
			for i := range 200 {
				name := strings.Repeat("x", i+1)
				if many.name(many.of(name)) != name {
					t.Error("a name changed")
				}
			}
		})
	}
	wg.Wait()
	if StageOf("") != Unowned || Unowned.String() != "unowned" || PurposeOf("") != Other || Stage(4000).String() != "unknown" {
		t.Fatal("names that are not given")
	}
	for p := Other; p < nbPurposes; p++ {
		if PurposeOf(p.String()) != p {
			t.Fatalf("%v", p)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"4GiB": 4 * GiB, "512 MiB": 512 * MiB, "1.5G": 3 * GiB / 2, "4096": 4096, "2k": 2 * KiB, "3T": 3 * TiB, "10MB": 10_000_000, "7 b": 7, "0": 0,
	} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "4 gigs", "99999999 TiB", "1e30"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestSpaces(t *testing.T) {
	for s := Host; s.Valid(); s++ {
		if got, err := ParseSpace(s.String()); err != nil || got != s {
			t.Errorf("%v: %v, %v", s, got, err)
		}
	}
	if Device(0) != Pinned+1 || Device(7) != MaxSpaces-1 || Device(8).Valid() || Device(-1).Valid() || Device(3).DeviceIndex() != 3 || Pinned.DeviceIndex() != -1 {
		t.Error("devices have the wrong numbers")
	}
	if _, err := ParseSpace("device8"); err == nil {
		t.Error("a ninth device")
	}
	var a Amount
	if err := json.Unmarshal([]byte(`{"tape":1}`), &a); err == nil {
		t.Error("an unknown space is read")
	}
}

func TestAmountsProperty(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) (a Amount) {
		for i := range a {
			a[i] = rapid.Int64Range(-1<<40, 1<<40).Draw(t, "n")
		}
		return a
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		if a.Add(b).Sub(b) != a || a.Add(b) != b.Add(a) || a.Scale(2) != a.Add(a) || !a.Sub(a).IsZero() {
			t.Fatal("sums")
		}
		m := a.Max(b)
		for i := range m {
			if m[i] != max(a[i], b[i]) {
				t.Fatal("maximum")
			}
		}
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var back Amount
		if err := json.Unmarshal(text, &back); err != nil || back != a {
			t.Fatalf("%v became %v: %v", a, back, err)
		}
	})
	if HostBytes(5).Fits(HostBytes(4)) || !HostBytes(5).Fits(HostBytes(5)) || !HostBytes(5).Fits(BytesIn(Pinned, 1)) {
		t.Error("Fits")
	}
	if s := on(3<<29, 12<<30).String(); s != "host 1.5 GiB, device0 12 GiB" {
		t.Error(s)
	}
	if s := (Amount{}).String(); s != "0 B" {
		t.Error(s)
	}
}
