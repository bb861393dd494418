package kernels

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

func TestSetLoadsOnceAndCloses(t *testing.T) {
	r := newRig(t, emulator.TestDevice(t), curve.BN254)
	if n := len(r.set.Images()); n != 0 {
		t.Errorf("%d families are loaded before they are needed", n)
	}
	var wg sync.WaitGroup
	got := make([]*WiresKernels, 8)
	for i := range got {
		wg.Go(func() {
			k, err := r.set.WiresKernels()
			if err != nil {
				t.Error(err)
			}
			got[i] = k
			if _, err := r.set.FillKernels(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range got {
		if k != got[0] {
			t.Error("a family was loaded twice")
		}
	}
	im := r.set.Images()
	if len(im) != 2 || !strings.HasPrefix(im["wires"], "wires_bn254") {
		t.Errorf("loaded: %v", im)
	}
	if err := r.set.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.set.WiresKernels(); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestSetLoadsAnewAfterAReset(t *testing.T) {
	if emulator.Real() {
		t.Skip("breaks the card's context")
	}
	r := newRig(t, emulator.TestDevice(t), curve.BN254)
	old, err := r.set.FillKernels()
	if err != nil {
		t.Fatal(err)
	}
	emulator.Fault("cuLaunchKernel", 1, 719, true)
	if err := old.FillScalars(r.st, gpu.Linear(1, 32), r.args, 256, 1, 0, 0, 0); err == nil || r.dev.Sticky() == nil {
		t.Fatalf("the injected fault gives %v", err)
	}
	if k, err := r.set.WiresKernels(); !errors.Is(err, gpu.ErrSticky) {
		t.Errorf("a family loads in a broken context: %v, %v", k, err)
	}
	if err := r.dev.Reset(); err != nil {
		t.Fatal(err)
	}
	k, err := r.set.FillKernels()
	if err != nil {
		t.Fatal(err)
	}
	if k == old {
		t.Error("kernels of before the reset are handed out")
	}
	st, err := r.dev.NewStream(false)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	p, err := st.AllocAsync(32)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.FillScalars(st, gpu.Linear(1, 32), r.args, p, 1, uint32(Ones), 0, 1); err != nil {
		t.Error(err)
	}
	for _, err := range []error{st.FreeAsync(p), st.Sync()} {
		if err != nil {
			t.Error(err)
		}
	}
}

var entry = regexp.MustCompile(`\.visible \.entry (\w+)\(`)

// TestEmbedded looks at all PTX: it is for the right machine, entry points have
// names of their own, and the integer kernels keep their arrays in registers.
func TestEmbedded(t *testing.T) {
	files, err := ptx.ReadDir("ptx")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".ptx.gz") {
			continue
		}
		img, err := unpack("ptx/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(img.data, []byte(".version 7.8\n.target sm_80\n")) {
			t.Errorf("%s is for another machine", f.Name())
		}
		for _, m := range entry.FindAllSubmatch(img.data, -1) {
			if other, ok := seen[string(m[1])]; ok {
				t.Errorf("%s and %s both have %s", other, f.Name(), m[1])
			}
			seen[string(m[1])] = f.Name()
		}
		for _, family := range []string{"sort_", "wires_", "fill_"} {
			if strings.HasPrefix(f.Name(), family) && bytes.Contains(img.data, []byte(".local")) {
				t.Errorf("%s uses local memory", f.Name())
			}
		}
	}
	if len(seen) == 0 {
		t.Error("nothing is embedded")
	}
}

func TestImagesPrefersACubin(t *testing.T) {
	for _, id := range curve.All() {
		names := images("wires", id, 9, 0)
		if len(names) == 0 || !strings.HasSuffix(names[len(names)-1], ".ptx.gz") {
			t.Errorf("%v: %v", id, names)
		}
	}
	if names := images("none", curve.BN254, 9, 0); len(names) != 0 {
		t.Errorf("of no family: %v", names)
	}
	if _, err := unpack("ptx/none"); err == nil {
		t.Error("an image that is not there")
	}
}
