// Package kernels holds the device code and its Go faces: number theoretic
// transforms, sorting of scalars into buckets, multi-scalar multiplication,
// classification of scalars. The sources (*.cu) are compiled to PTX by
// go generate and embedded; the emulator compiles the same sources for the CPU.
//
// A face only queues work on a stream. It waits for nothing, and takes device
// memory from its caller: each says how many bytes it needs.
package kernels

import (
	"errors"
	"fmt"
	"sync"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// Set is the kernels of one curve on one device. Families are loaded when they
// are first needed, once for each generation of the device: after a Reset they
// load anew, and what was made from them before is of no use. A Set may be used
// by any number of goroutines. Close unloads it.
type Set struct {
	dev gpu.Device
	id  curve.ID

	mu       sync.Mutex
	closed   bool
	families map[string]*family
}

// family is a loaded module and the struct of its kernels.
type family struct {
	mu         sync.Mutex // held while it loads: others load meanwhile
	closed     bool
	module     gpu.Module // nil: not loaded
	generation uint64
	kernels    any
	image      string
}

// NewSet makes an empty set; nothing is loaded yet.
func NewSet(dev gpu.Device, id curve.ID) *Set {
	return &Set{dev: dev, id: id, families: map[string]*family{}}
}

// Device is the device that the kernels run on.
func (s *Set) Device() gpu.Device { return s.dev }

// Curve is the curve that the kernels are compiled for.
func (s *Set) Curve() curve.ID { return s.id }

// ErrClosed is the error of a Set after Close.
var ErrClosed = errors.New("the set of kernels is closed")

func (s *Set) family(name string) (*family, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	f := s.families[name]
	if f == nil {
		f = new(family)
		s.families[name] = f
	}
	return f, nil
}

// finder collects the functions of a module and the first error.
type finder struct {
	module gpu.Module
	suffix string
	err    error
}

func (f *finder) find(name string) gpu.Function {
	if f.err != nil {
		return nil
	}
	fn, err := f.module.Function(name + "_" + f.suffix)
	if err != nil {
		f.err = fmt.Errorf("find kernel %s: %w", name, err)
		return nil
	}
	return fn
}

// loaded returns the kernels of a family, and loads them if the device's
// generation has none yet. A failure is not kept: the next call tries again.
func loaded[T any](s *Set, name string, fill func(*finder) *T) (*T, error) {
	f, err := s.family(name)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrClosed
	}
	if generation := s.dev.Generation(); f.module != nil && f.generation != generation {
		if err := f.unload(); err != nil {
			return nil, fmt.Errorf("unload %s after a reset: %w", name, err)
		}
	}
	if f.module == nil {
		if err := load(s, f, name, fill); err != nil {
			return nil, fmt.Errorf("load the %s kernels of %v: %w", name, s.id, err)
		}
	}
	k, ok := f.kernels.(*T)
	if !ok {
		return nil, fmt.Errorf("the %s kernels are loaded as %T", name, f.kernels)
	}
	return k, nil
}

// load tries the embedded images in order: a cubin for the device first, if
// there is one, and the PTX if that one cannot be loaded.
func load[T any](s *Set, f *family, name string, fill func(*finder) *T) error {
	info := s.dev.Info()
	names := images(name, s.id, info.Major, info.Minor)
	if len(names) == 0 {
		return fmt.Errorf("no image of them is embedded")
	}
	var failed error
	for _, n := range names {
		img, err := unpack(n)
		if err != nil {
			return err
		}
		generation := s.dev.Generation()
		m, err := s.dev.Load(img.name, img.data)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", img.name, err))
			if errors.Is(err, gpu.ErrSticky) || errors.Is(err, gpu.ErrNoMemory) {
				return failed
			}
			continue
		}
		find := &finder{module: m, suffix: suffix(s.id)}
		k := fill(find)
		if find.err != nil {
			return errors.Join(failed, fmt.Errorf("%s: %w", img.name, find.err), m.Close())
		}
		if s.dev.Generation() != generation {
			// A reset came between: nobody can say on which side of it the module is.
			return errors.Join(failed, &gpu.StaleError{Device: fmt.Sprint(s.dev), What: "module " + img.name}, m.Close())
		}
		f.module, f.generation, f.kernels, f.image = m, generation, k, img.name
		return nil
	}
	return failed
}

func (f *family) unload() error {
	m := f.module
	f.module, f.kernels, f.image = nil, nil, ""
	if m == nil {
		return nil
	}
	return m.Close()
}

// Images names what is loaded, by family: "sort_bn254.ptx".
func (s *Set) Images() map[string]string {
	out := map[string]string{}
	for name, f := range s.snapshot(false) {
		f.mu.Lock()
		if f.module != nil {
			out[name] = f.image
		}
		f.mu.Unlock()
	}
	return out
}

func (s *Set) snapshot(closing bool) map[string]*family {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = s.closed || closing
	all := map[string]*family{}
	for name, f := range s.families {
		all[name] = f
	}
	return all
}

// Close unloads all families. The caller sees to it that no work of theirs is
// queued any more. A second Close does nothing.
func (s *Set) Close() error {
	var errs []error
	for name, f := range s.snapshot(true) {
		f.mu.Lock()
		f.closed = true
		if err := f.unload(); err != nil {
			errs = append(errs, fmt.Errorf("unload %s: %w", name, err))
		}
		f.mu.Unlock()
	}
	return errors.Join(errs...)
}
