package groth16

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
)

// shape is what a made circuit should look like.
type shape struct {
	curve     curve.ID
	rows      int
	public    int
	inputRows bool
	zeros     bool // a witness of zeros, but for the leading one
	same      bool // all public inputs alike
}

// makeCircuit makes a random circuit of the shape and a witness that satisfies
// it. Some wires are in no row of A or B, so their points are at infinity.
func makeCircuit(t testing.TB, s shape, seed uint64) (*R1CS, Witness) {
	t.Helper()
	f, err := backendOf(s.curve)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	coeffs := []curve.Scalar{f.One(), f.Sub(curve.Scalar{}, f.One()), f.FromUint64(2), f.FromUint64(rng.Uint64()), {}}
	r := &R1CS{ID: s.curve, Public: s.public, InputRows: s.inputRows}
	w := Witness{f.One()}
	value := f.FromUint64(rng.Uint64())
	for range s.public + 3 {
		if !s.same || len(w) > s.public {
			value = f.FromUint64([]uint64{0, 1, rng.Uint64()}[rng.IntN(3)])
		}
		if s.zeros {
			value = curve.Scalar{}
		}
		w = append(w, value)
	}
	for _, m := range []*curve.Matrix{&r.A, &r.B, &r.C} {
		m.Rows, m.Coeffs = []uint32{0}, coeffs
	}
	line := func(m *curve.Matrix) curve.Scalar {
		var sum curve.Scalar
		for range rng.IntN(4) {
			at := rng.IntN(len(w))
			if s.zeros && at == 0 { // only a homogeneous system has the zero witness
				continue
			}
			c := rng.IntN(len(coeffs))
			m.Terms = append(m.Terms, curve.Term{Wire: uint32(at), Coeff: uint32(c)})
			sum = f.Add(sum, f.Mul(coeffs[c], w[at]))
		}
		return sum
	}
	for range s.rows {
		a, b, c := line(&r.A), line(&r.B), line(&r.C)
		r.C.Terms = append(r.C.Terms, curve.Term{Wire: uint32(len(w))})
		w = append(w, f.Sub(f.Mul(a, b), c))
		for _, m := range []*curve.Matrix{&r.A, &r.B, &r.C} {
			m.Rows = append(m.Rows, uint32(len(m.Terms)))
		}
	}
	r.Wires = len(w)
	return r, w
}

func engine(t testing.TB, id curve.ID) Arithmetic {
	t.Helper()
	e, err := cpu.New(id)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// setUp makes a key that closes with the test.
func setUp(t testing.TB, r *R1CS, o SetupOptions) (*ProvingKey, *VerifyingKey) {
	t.Helper()
	key, vk, err := UnsafeSetup(t.Context(), r, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := key.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := key.Validate(t.Context(), CheckSubgroup); err != nil {
		t.Fatal(err)
	}
	return key, vk
}

// counter is a reader of a fixed sequence, to blind proofs alike.
type counter struct{ n uint64 }

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		if i%8 == 0 {
			c.n++
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], c.n*0x9e3779b97f4a7c15)
		p[i] = b[i%8]
	}
	return len(p), nil
}

// noLeak makes the test fail if buffers made after the call outlive it.
func noLeak(t testing.TB) {
	t.Helper()
	mark := alloc.Marked()
	t.Cleanup(func() { mark.CheckLeaks(t) })
}
