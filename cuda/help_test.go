package cuda

import (
	"context"
	"flag"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// long runs the tests that take minutes too.
var long = flag.Bool("long", os.Getenv("SNARKLINE_LONG_TESTS") == "1", "run the tests that take minutes")

// An Engine is what the stages call.
var _ groth16.Staging = (*Engine)(nil)

// small is a card whose figures are those of tests: no margin, small pieces, and
// vectors of few scalars are packed too.
var small = []Option{Margin(0), Chunk(64 << 10), func(o *options) { o.packFrom, o.pieces = 8, 1 }}

// newEngine makes an engine on a card of its own, which is closed at the end of
// the test. Then nothing may be left, of memory, of goroutines or on the card.
func newEngine(t testing.TB, id curve.ID, config emulator.Config, opts ...Option) *Engine {
	t.Helper()
	key(t, id, 300, 200, groth16.SetupOptions{Basis: curve.Coset}) // shared: not a leak
	leakFree(t)
	dev := emulator.TestDevice(t, config)
	e, err := New(dev, id, host(t, id), append(append([]Option{}, small...), opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, e); early = false })
	return e
}

// shut closes an engine and looks for what it left on its card.
func shut(t testing.TB, e *Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if emulator.Real() {
		return
	}
	clean(t)
}

// clean looks for what is left on the emulated cards.
func clean(t testing.TB) {
	t.Helper()
	s, err := emulator.Stats()
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range s.Cards {
		if c.Live() {
			t.Errorf("card %d is not clean: %+v", i, c)
		}
	}
	if s.Early > 0 && !early {
		t.Errorf("host memory went %d times before its copy was done", s.Early)
	}
}

// leakFree fails the test if memory or goroutines are left when it ends.
func leakFree(t testing.TB) {
	t.Helper()
	ignore, mark := goleak.IgnoreCurrent(), alloc.Marked()
	before, _ := alloc.Default().FreeErrors()
	t.Cleanup(func() {
		goleak.VerifyNone(t, ignore)
		mark.CheckLeaks(t)
		if n, err := alloc.Default().FreeErrors(); n > before && !faultsAllowed.Swap(false) {
			t.Errorf("memory could not be freed %d times: %v", n-before, err)
		}
	})
}

var hosts sync.Map

// host is the arithmetic on the CPU, which tests share.
func host(t testing.TB, id curve.ID) *cpu.Engine {
	t.Helper()
	if e, ok := hosts.Load(id); ok {
		return e.(*cpu.Engine)
	}
	e, err := cpu.New(id)
	if err != nil {
		t.Fatal(err)
	}
	hosts.Store(id, e)
	return e
}

// both runs f for both curves.
func both(t *testing.T, f func(t *testing.T, id curve.ID)) {
	for _, id := range curve.All() {
		t.Run(id.String(), func(t *testing.T) { f(t, id) })
	}
}

func scope() *alloc.Scope { return alloc.NewScope(alloc.StageOf("test"), alloc.Host, nil) }

func ctx() context.Context { return context.Background() }

// montgomery is v in Montgomery form.
func montgomery(id curve.ID, v *big.Int) (s curve.Scalar) {
	x := new(big.Int).Lsh(v, 256)
	x.Mod(x, id.ScalarModulus())
	for i, w := range x.Bits() {
		s[i] = uint64(w)
	}
	return s
}

// scalars are n scalars: of 10, zeros and ones as many as said, the others drawn.
func scalars(id curve.ID, n, zeros, ones int, seed uint64) []curve.Scalar {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]curve.Scalar, n)
	for i := range out {
		switch k := r.IntN(10); {
		case k < zeros:
		case k < zeros+ones:
			out[i] = oneOf(id)
		default:
			v := new(big.Int).SetUint64(r.Uint64())
			for range 3 {
				v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(r.Uint64()))
			}
			out[i] = montgomery(id, v)
		}
	}
	return out
}

// buffer is a host buffer of scalars.
func buffer(t testing.TB, s []curve.Scalar, space ...alloc.Space) *alloc.Buffer[curve.Scalar] {
	t.Helper()
	sc := scope()
	if len(space) > 0 {
		sc = sc.In(space[0])
	}
	b, err := alloc.Make[curve.Scalar](sc, len(s), alloc.Evaluation, alloc.Secret)
	if err != nil {
		t.Fatal(err)
	}
	copy(b.Slice(), s)
	return b
}

type keptKey struct {
	once sync.Once
	toy  *toy
	pk   *groth16.ProvingKey
	vk   *groth16.VerifyingKey
	err  error
}

var toyKeys sync.Map

// key is a key of a toy circuit, which tests share.
func key(t testing.TB, id curve.ID, rows, bits int, o groth16.SetupOptions) *keptKey {
	t.Helper()
	v, _ := toyKeys.LoadOrStore(fmt.Sprint(id, rows, bits, o.Basis, o.Folded), new(keptKey))
	k := v.(*keptKey)
	k.once.Do(func() {
		k.toy = newToy(id, rows, bits)
		k.pk, k.vk, k.err = groth16.UnsafeSetup(ctx(), k.toy.r1cs, o)
	})
	if k.err != nil {
		t.Fatal(k.err)
	}
	return k
}
