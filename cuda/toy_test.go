package cuda

import (
	"crypto/sha256"
	"math/big"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

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
	one := []curve.Scalar{montgomery(id, big.NewInt(1))}
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
		w[i] = montgomery(t.id, v[i])
	}
	return w
}
