package stages_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// scalar is v as an element of the scalar field, in Montgomery form.
func scalar(id curve.ID, v *big.Int) (s curve.Scalar) {
	x := new(big.Int).Lsh(v, 256)
	x.Mod(x, id.ScalarModulus())
	var b [32]byte
	x.FillBytes(b[:])
	for i := range s {
		s[i] = binary.BigEndian.Uint64(b[24-8*i:])
	}
	return s
}

// toy is a circuit of n rows: the first bits of them say that a wire is a bit,
// the others are a chain xᵢ₊₁ = (xᵢ + bⱼ)·(xᵢ + 1), whose last x is public.
type toy struct {
	id   curve.ID
	n    int // rows
	bits int // of them booleans, and as many bit wires
	r1cs *groth16.R1CS
}

// Wires: 0 one, 1 output, 2 x₀, then the bits, then x₁ … without the last.
func newToy(id curve.ID, n, bits int) *toy {
	t := &toy{id: id, n: n, bits: bits}
	chain := n - bits
	one := []curve.Scalar{scalar(id, big.NewInt(1))}
	r := &groth16.R1CS{ID: id, Public: 1, Wires: 3 + bits + chain - 1}
	for _, m := range []*curve.Matrix{&r.A, &r.B, &r.C} {
		m.Coeffs, m.Rows = one, []uint32{0}
	}
	row := func(m *curve.Matrix, wires ...int) {
		for _, w := range wires {
			m.Terms = append(m.Terms, curve.Term{Wire: uint32(w)})
		}
		m.Rows = append(m.Rows, uint32(len(m.Terms)))
	}
	for i := range bits {
		b := 3 + i
		row(&r.A, b)
		row(&r.B, b)
		row(&r.C, b)
	}
	for i := range chain {
		if bits > 0 {
			row(&r.A, t.x(i), 3+i%bits)
		} else {
			row(&r.A, t.x(i))
		}
		row(&r.B, t.x(i), 0)
		row(&r.C, t.x(i+1))
	}
	t.r1cs = r
	return t
}

func (t *toy) x(i int) int {
	switch i {
	case 0:
		return 2
	case t.n - t.bits:
		return 1
	}
	return 2 + t.bits + i
}

// witness satisfies the circuit; seed makes it differ from others.
func (t *toy) witness(seed int) groth16.Witness {
	mod := t.id.ScalarModulus()
	v := make([]*big.Int, t.r1cs.Wires)
	v[0] = big.NewInt(1)
	v[2] = big.NewInt(int64(seed) + 2)
	hash := sha256.Sum256([]byte{byte(seed)})
	for i := range t.bits {
		v[3+i] = big.NewInt(int64(hash[i/8%32]>>(i%8)) & 1)
	}
	for i := range t.n - t.bits {
		x := v[t.x(i)]
		a, b := new(big.Int).Set(x), new(big.Int).Add(x, v[0])
		if t.bits > 0 {
			a.Add(a, v[3+i%t.bits])
		}
		v[t.x(i+1)] = a.Mul(a, b).Mod(a, mod)
	}
	w := make(groth16.Witness, len(v))
	for i := range v {
		w[i] = scalar(t.id, v[i])
	}
	return w
}

// keys holds what set-ups made, so that a key is made once for all tests.
var keys sync.Map // string → *kept

type kept struct {
	once sync.Once
	toy  *toy
	pk   *groth16.ProvingKey
	vk   *groth16.VerifyingKey
	err  error
}

func engine(t testing.TB, id curve.ID) groth16.Arithmetic {
	t.Helper()
	e, err := cpu.New(id)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// newProver gives a prover of a toy circuit, with a key that other tests share.
func newProver(t testing.TB, id curve.ID, n, bits int, o groth16.SetupOptions) (*stages.Prover, *toy) {
	t.Helper()
	v, _ := keys.LoadOrStore(fmt.Sprint(id, n, bits, o.Basis, o.Folded), new(kept))
	k := v.(*kept)
	k.once.Do(func() {
		k.toy = newToy(id, n, bits)
		k.pk, k.vk, k.err = groth16.UnsafeSetup(context.Background(), k.toy.r1cs, o)
	})
	if k.err != nil {
		t.Fatal(k.err)
	}
	return &stages.Prover{Key: k.pk, VK: k.vk, Circuit: k.toy.r1cs, Arith: engine(t, id)}, k.toy
}

// folded is the set-up of most tests.
var folded = groth16.SetupOptions{Basis: curve.Coset, Folded: true}

// small is a prover that is as quick as can be.
func small(t testing.TB) (*stages.Prover, *toy) {
	t.Helper()
	return newProver(t, curve.BN254, 64, 40, folded)
}

// jobs are n jobs of a toy.
func (t *toy) jobs(n int) []stages.Job {
	out := make([]stages.Job, n)
	for i := range out {
		out[i] = stages.Job{Key: pipeline.Key{Job: "toy", Part: i}, Input: t.witness(i)}
	}
	return out
}

// leakFree fails the test if memory or goroutines are left when it ends. The
// keys that tests share are made before.
func leakFree(t *testing.T) {
	t.Helper()
	ignore, mark := goleak.IgnoreCurrent(), alloc.Marked()
	t.Cleanup(func() {
		goleak.VerifyNone(t, ignore)
		mark.CheckLeaks(t)
	})
}

// stream is randomness that two runs can repeat.
func stream(seed string) io.Reader { return &hashes{seed: []byte(seed)} }

type hashes struct {
	mu   sync.Mutex
	seed []byte
	n    uint64
	buf  bytes.Buffer
}

func (h *hashes) Read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.buf.Len() < len(p) {
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(bytes.Clone(h.seed), h.n))
		h.n++
		h.buf.Write(sum[:])
	}
	return h.buf.Read(p)
}

// collect runs jobs through Batch and gives the results by part.
func collect(t testing.TB, ctx context.Context, p *stages.Prover, jobs []stages.Job, o stages.BatchOptions) (map[int]*stages.Result, *pipeline.Report, error) {
	t.Helper()
	out := make(map[int]*stages.Result)
	var mu sync.Mutex
	report, err := stages.Batch(ctx, p, func(yield func(stages.Job) bool) {
		for _, j := range jobs {
			if !yield(j) {
				return
			}
		}
	}, func(_ context.Context, r *stages.Result) error {
		mu.Lock()
		defer mu.Unlock()
		out[r.Key.Part] = r
		return nil
	}, o)
	return out, report, err
}

// stageReport is what the report says of a stage.
func stageReport(t testing.TB, r *pipeline.Report, name string) pipeline.StageReport {
	t.Helper()
	s := r.Stage(name)
	if s == nil {
		t.Fatalf("the report has no stage %q", name)
	}
	return *s
}

func sortedStrings(s []string) []string {
	s = slices.Clone(s)
	for i := range s {
		s[i] = strings.TrimSpace(s[i])
	}
	slices.Sort(s)
	return s
}
