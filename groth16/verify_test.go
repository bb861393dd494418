package groth16

import (
	"errors"
	"math/big"
	"strings"
	"sync"
	"testing"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	blsfr "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bn254"
	bnfr "github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/snarkline/snarkline/curve"
)

// plain is the value of a scalar.
func plain(t testing.TB, id curve.ID, s curve.Scalar) *big.Int {
	t.Helper()
	out := new(big.Int)
	switch id {
	case curve.BN254:
		e := bnfr.Element(s)
		return e.BigInt(out)
	case curve.BLS12381:
		e := blsfr.Element(s)
		return e.BigInt(out)
	}
	t.Fatalf("curve %v", id)
	return nil
}

// outside is a point of the curve that is not in the subgroup.
func outside(t testing.TB) (g1 curve.G1, g2 curve.G2, bnG2 curve.G2) {
	t.Helper()
	var x bls.G1Jac
	var a bls.G1Affine
	for i := uint64(1); ; i++ {
		var f = a.X
		f.SetUint64(i)
		x = bls.GeneratePointNotInG1(f)
		a.FromJacobian(&x)
		if a.IsOnCurve() && !a.IsInSubGroup() {
			break
		}
	}
	copy(g1[:6], a.X[:])
	copy(g1[6:], a.Y[:])
	var b bls.G2Affine
	y := bls.GeneratePointNotInG2(b.X)
	b.FromJacobian(&y)
	for k, e := range [][6]uint64{b.X.A0, b.X.A1, b.Y.A0, b.Y.A1} {
		copy(g2[6*k:], e[:])
	}
	var c bn254.G2Affine
	c.X.SetOne()
	z := bn254.GeneratePointNotInG2(c.X)
	c.FromJacobian(&z)
	for k, e := range [][4]uint64{c.X.A0, c.X.A1, c.Y.A0, c.Y.A1} {
		copy(bnG2[4*k:], e[:])
	}
	return g1, g2, bnG2
}

func TestVerifyRefusesWhatIsNotAProof(t *testing.T) {
	out1, out2, out3 := outside(t)
	for _, id := range curve.All() {
		r, w := makeCircuit(t, shape{curve: id, rows: 5, public: 2}, 4)
		key, vk := setUp(t, r, SetupOptions{})
		p, err := ProveDirect(t.Context(), key, r, engine(t, id), w, nil)
		if err != nil {
			t.Fatal(err)
		}
		public := []curve.Scalar(w[1:3])
		off := p.A
		off[0] ^= 1
		unreduced := curve.Scalar{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
		big := p.A
		for i := range id.FieldBytes() / 8 {
			big[i] = ^uint64(0)
		}
		b2, c1 := out3, off
		if id == curve.BLS12381 {
			b2, c1 = out2, out1
		}
		g1, _ := func() (curve.G1, curve.G2) { f, _ := backendOf(id); return f.Generators() }()
		for _, c := range []struct {
			name   string
			change func(q *Proof) []curve.Scalar
			says   string
		}{
			{"too few inputs", func(*Proof) []curve.Scalar { return public[:1] }, "1 public inputs"},
			{"too many inputs", func(*Proof) []curve.Scalar { return append(public[:2:2], public[0]) }, "3 public inputs"},
			{"unreduced input", func(*Proof) []curve.Scalar { return []curve.Scalar{public[0], unreduced} }, "public input 1 is not reduced"},
			{"A off the curve", func(q *Proof) []curve.Scalar { q.A = off; return public }, "A: not on the curve"},
			{"A unreduced", func(q *Proof) []curve.Scalar { q.A = big; return public }, "A: coordinates are not reduced"},
			{"B outside", func(q *Proof) []curve.Scalar { q.B = b2; return public }, "B: not in the subgroup"},
			{"C outside", func(q *Proof) []curve.Scalar { q.C = c1; return public }, "C: not"},
			{"another A", func(q *Proof) []curve.Scalar { q.A = g1; return public }, "not valid"},
			{"swapped", func(q *Proof) []curve.Scalar { q.A, q.C = q.C, q.A; return public }, "not valid"},
			{"nothing", func(q *Proof) []curve.Scalar { *q = Proof{Curve: id}; return public }, "not valid"},
			{"other curve", func(q *Proof) []curve.Scalar { q.Curve = curve.BN254 + curve.BLS12381 - id; return public }, "the verifying key on"},
			{"no curve", func(q *Proof) []curve.Scalar { q.Curve = 0; return public }, "the verifying key on"},
			{"a commitment too many", func(q *Proof) []curve.Scalar { q.Commitments = []curve.G1{g1}; return public }, "1 commitments"},
		} {
			q := *p
			in := c.change(&q)
			if err := vk.Verify(&q, in); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v: %s: %v", id, c.name, err)
			}
		}
		if err := vk.Verify(p, public); err != nil {
			t.Error(err)
		}
		if err := vk.Verify(nil, public); err == nil {
			t.Error("no proof at all passes")
		}
	}
}

// With a commitment that the key knows nothing of, gnark would accept a proof
// for any statement: α, β, and what cancels the public part.
func TestForgedCommitment(t *testing.T) {
	id := curve.BLS12381
	r, _ := makeCircuit(t, shape{curve: id, rows: 5}, 4)
	_, vk := setUp(t, r, SetupOptions{})
	minus := vk.IC[0]
	p, err := curve.View[bls.G1Affine](curve.Bytes(minus[:]))
	if err != nil {
		t.Fatal(err)
	}
	p[0].Neg(&p[0])
	forged := &Proof{Curve: id, A: vk.Alpha1, B: vk.Beta2, Commitments: []curve.G1{minus}}
	if err := gnarkVerify(t, vk, forged, nil); err != nil {
		t.Logf("gnark refuses it by now: %v", err)
	}
	if err := vk.Verify(forged, nil); err == nil {
		t.Error("a forged proof passes")
	}
}

func TestVerifyingKeyIsChecked(t *testing.T) {
	out1, _, _ := outside(t)
	id := curve.BLS12381
	r, w := makeCircuit(t, shape{curve: id, rows: 5, public: 1}, 4)
	key, good := setUp(t, r, SetupOptions{})
	p, err := ProveDirect(t.Context(), key, r, engine(t, id), w, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(vk *VerifyingKey){
		"no IC":         func(vk *VerifyingKey) { vk.IC = nil },
		"no curve":      func(vk *VerifyingKey) { vk.Curve = 0 },
		"γ at infinity": func(vk *VerifyingKey) { vk.Gamma2 = curve.G2{} },
		"α outside":     func(vk *VerifyingKey) { vk.Alpha1 = out1 },
		"IC outside":    func(vk *VerifyingKey) { vk.IC = []curve.G1{vk.IC[0], out1} },
		"δ off":         func(vk *VerifyingKey) { vk.Delta2[3] ^= 1 },
		"committed":     func(vk *VerifyingKey) { vk.Committed = [][]int{{1}} },
		"too many inputs": func(vk *VerifyingKey) {
			vk.Committed = [][]int{{}, {}}
			vk.Commitments = make([]CommitmentVerifyingKey, 2)
		},
	} {
		vk := &VerifyingKey{
			Curve: good.Curve, Alpha1: good.Alpha1, Beta1: good.Beta1, Delta1: good.Delta1,
			Beta2: good.Beta2, Gamma2: good.Gamma2, Delta2: good.Delta2, IC: append([]curve.G1{}, good.IC...),
		}
		change(vk)
		err := vk.Verify(p, w[1:2])
		if err == nil || errors.Is(err, ErrInvalidProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := good.Verify(p, w[1:2]); err != nil {
		t.Error(err)
	}
}

func TestVerifyAtOnce(t *testing.T) {
	id := curve.BN254
	r, w := makeCircuit(t, shape{curve: id, rows: 5, public: 1}, 4)
	key, vk := setUp(t, r, SetupOptions{Folded: true})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			p, err := ProveDirect(t.Context(), key, r, engine(t, id), w, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if err := vk.Verify(p, w[1:2]); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
