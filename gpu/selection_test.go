package gpu_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/gpu/gputest"
)

func TestItemsGoRoundByFreeMemory(t *testing.T) {
	ds := gputest.New(gputest.Config{Total: 30 << 20}, gputest.Config{Total: 10 << 20}, gputest.Config{Total: 20 << 20})
	s := gpu.NewSelection[int](ds[0], ds[1], ds[2])
	counts := map[gpu.Device]int{}
	for i := range 60 {
		d := must(s.Of(i))(t)
		if again := must(s.Of(i))(t); again != d {
			t.Fatal("an item changes its device")
		}
		counts[d]++
		if i == 2 && len(counts) != 3 {
			t.Fatal("a device is left idle")
		}
	}
	if a, b, c := counts[ds[0]], counts[ds[1]], counts[ds[2]]; a < 28 || a > 32 || b < 8 || b > 12 || c < 18 || c > 22 {
		t.Fatalf("%d, %d, %d of 60 for 30, 10 and 20 MiB", a, b, c)
	}
	for i := range 60 {
		s.Drop(i)
	}
	if !slices.Equal(s.Items(), []int{0, 0, 0}) {
		t.Fatal("dropped items are counted")
	}
}

func TestFailedDevicesAreLeftOut(t *testing.T) {
	ds := gputest.New(gputest.Config{}, gputest.Config{})
	s := gpu.NewSelection[string](ds[0], ds[1])
	first := must(s.Of("x"))(t)
	bad := errors.New("it smokes")
	s.Fail(first, bad)
	second := must(s.Of("x"))(t)
	if second == first {
		t.Fatal("an item stays on a failed device")
	}
	for _, k := range []string{"a", "b", "c"} {
		if must(s.Of(k))(t) != second {
			t.Fatal("a failed device is chosen")
		}
	}
	s.Fail(second, bad)
	if _, err := s.Of("y"); !errors.Is(err, gpu.ErrNoDevice) || !errors.Is(err, bad) {
		t.Fatalf("%v", err)
	}
	s.Restore(first)
	if must(s.Of("x"))(t) != first {
		t.Fatal("not restored")
	}
	if got := s.Items(); got[0]+got[1] != 4 {
		t.Fatalf("%v", got)
	}
}

// A device that cannot be asked is passed over, and is there again afterwards.
func TestADeviceThatCannotBeAsked(t *testing.T) {
	ds := gputest.New(gputest.Config{}, gputest.Config{})
	ds[0].Break()
	s := gpu.NewSelection[int](ds[0], ds[1])
	if must(s.Of(1))(t) != ds[1] || must(s.Of(2))(t) != ds[1] {
		t.Fatal("chosen")
	}
	ok(t, ds[0].Reset())
	if must(s.Of(3))(t) != ds[0] {
		t.Fatal("an idle device is left")
	}
}

// Whatever comes and goes, no new item joins others while a device is idle.
func TestNoDeviceIsLeftIdle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "n")
		var cfg []gputest.Config
		for range n {
			cfg = append(cfg, gputest.Config{Total: rapid.Int64Range(1, 100).Draw(t, "MiB") << 20})
		}
		var ds []gpu.Device
		for _, d := range gputest.New(cfg...) {
			ds = append(ds, d)
		}
		s := gpu.NewSelection[int](ds...)
		on := map[int]gpu.Device{}
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(on) > 0 && rapid.Bool().Draw(t, "drop") {
				for k := range on {
					s.Drop(k)
					delete(on, k)
					break
				}
				continue
			}
			before := s.Items()
			d, err := s.Of(i)
			if err != nil {
				t.Fatal(err)
			}
			on[i] = d
			if k := slices.Index(ds, d); before[k] > 0 && slices.Contains(before, 0) {
				t.Fatalf("device %d of %v", k, before)
			}
		}
		var sum int
		for _, k := range s.Items() {
			sum += k
		}
		if sum != len(on) {
			t.Fatalf("%d items, want %d", sum, len(on))
		}
	})
}

func TestParseDevices(t *testing.T) {
	for in, want := range map[string]string{
		"": "auto", "auto": "auto", "all": "all", "CPU": "cpu", "cuda": "cuda:0", "cuda:1": "cuda:1", " cuda:2 , CUDA:0": "cuda:2,cuda:0",
	} {
		d, err := gpu.ParseDevices(in)
		if err != nil || d.String() != want {
			t.Errorf("%q: %v, %v", in, d, err)
			continue
		}
		var again gpu.Devices
		if err := again.UnmarshalText([]byte(d.String())); err != nil || again.String() != want {
			t.Errorf("%q again: %v, %v", in, again, err)
		}
	}
	for _, in := range []string{"gpu", "cuda:", "cuda:-1", "cuda:01", "cuda:x", "cuda:0,", "cuda:0,cuda:0", "cuda:0,cpu", "cuda:99999999", "rocm:0"} {
		if d, err := gpu.ParseDevices(in); err == nil {
			t.Errorf("%q is %v", in, d)
		}
	}
}

func TestDevicesAreFoundByNumber(t *testing.T) {
	ds := gputest.New(gputest.Config{Name: "One"}, gputest.Config{Name: "Two"})
	there := []gpu.Device{ds[0], ds[1]}
	for _, c := range []struct {
		want gpu.Devices
		of   []gpu.Device
		none bool // whether there being none is an error
	}{
		{gpu.Auto, there, false}, {gpu.All, there, true}, {gpu.CPU, nil, false},
		{gpu.Cuda(1), []gpu.Device{ds[1]}, true}, {gpu.Cuda(1, 0), []gpu.Device{ds[1], ds[0]}, true},
	} {
		got, err := c.want.Of(there)
		if err != nil || !slices.Equal(got, c.of) {
			t.Errorf("%v: %v, %v", c.want, got, err)
		}
		if got, err := c.want.Of(nil); len(got) != 0 || errors.Is(err, gpu.ErrNoDevice) != c.none || c.want.Required() != c.none {
			t.Errorf("%v of none: %v, %v", c.want, got, err)
		}
	}
	_, err := gpu.Cuda(3).Of(there)
	if err == nil || err.Error() != "cuda:3: no usable device of that number (there are: cuda:0, One; cuda:1, Two)" {
		t.Error(err)
	}
	if gpu.CPU.Wanted() || !gpu.Auto.Wanted() {
		t.Error("Wanted")
	}
}

func FuzzParseDevices(f *testing.F) {
	for _, s := range []string{"", "all", "cuda:0,cuda:1", "cpu", "cuda:007"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := gpu.ParseDevices(s)
		if err != nil {
			return
		}
		if again, err := gpu.ParseDevices(d.String()); err != nil || again.String() != d.String() {
			t.Fatalf("%q is %q, which is %v, %v", s, d, again, err)
		}
	})
}
