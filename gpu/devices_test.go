package gpu_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/gpu/gputest"
)

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
