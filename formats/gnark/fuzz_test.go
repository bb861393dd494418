package gnark

import (
	"bytes"
	"context"
	"testing"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// outsideG1 is the memory of a point of BLS12-381 outside the subgroup.
func outsideG1(t testing.TB) []byte {
	t.Helper()
	var x fp.Element
	for i := uint64(1); ; i++ {
		p := bls.GeneratePointNotInG1(*x.SetUint64(i))
		var a bls.G1Affine
		if a.FromJacobian(&p); a.IsOnCurve() && !a.IsInSubGroup() {
			return bytes.Clone(curve.Bytes([]bls.G1Affine{a}))
		}
	}
}

// seeds adds the files of two small circuits on both curves: the smaller a seed,
// the sooner the fuzzer has minimised what comes of it.
func seeds(f *testing.F, of func(m *made) [][]byte) {
	f.Helper()
	for _, id := range curve.All() {
		for _, name := range []string{"chain of 2", "commitments"} {
			for _, b := range of(makeFiles(f, id, sampleNamed(f, name))) {
				f.Add(b)
			}
		}
	}
	f.Add([]byte{})
}

// sound fails if memory is left behind.
func sound(t *testing.T, fn func()) {
	mark := alloc.Marked()
	fn()
	mark.CheckLeaks(t)
}

func FuzzProvingKey(f *testing.F) {
	seeds(f, func(m *made) [][]byte { return [][]byte{m.keys["compressed"], m.keys["raw"], m.keys["dump"]} })
	ccs := compile(f, curve.BN254, sampleNamed(f, "commitments").circuit)
	f.Fuzz(func(t *testing.T, b []byte) {
		sound(t, func() {
			for _, o := range []KeyOptions{{}, {Circuit: ccs, Options: Options{SkipSubgroup: true}}} {
				key, err := ReadProvingKey(context.Background(), bytes.NewReader(b), int64(len(b)), o)
				if err != nil {
					continue
				}
				if err := key.Validate(context.Background(), groth16.CheckCurve); err != nil {
					t.Error(err)
				}
				if err := key.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	})
}

func FuzzVerifyingKey(f *testing.F) {
	seeds(f, func(m *made) [][]byte { return [][]byte{m.vk, m.vkRaw} })
	f.Fuzz(func(t *testing.T, b []byte) {
		vk, err := ReadVerifyingKey(bytes.NewReader(b), int64(len(b)), Options{})
		if err != nil {
			return
		}
		var buf bytes.Buffer
		if err := WriteVerifyingKey(&buf, vk, false); err != nil {
			t.Error(err)
		}
		_ = vk.Verify(&groth16.Proof{Curve: vk.Curve, Commitments: make([]curve.G1, len(vk.Commitments))}, make([]curve.Scalar, vk.NbPublic()))
	})
}

func FuzzProof(f *testing.F) {
	seeds(f, func(m *made) [][]byte { return [][]byte{m.proof, m.proofRaw} })
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ReadProof(bytes.NewReader(b), int64(len(b)), Options{})
		if err != nil {
			return
		}
		var buf bytes.Buffer
		if err := WriteProof(&buf, p, true); err != nil {
			t.Error(err)
		}
	})
}

func FuzzWitness(f *testing.F) {
	seeds(f, func(m *made) [][]byte { return [][]byte{m.witness, m.publicWitness} })
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, id := range curve.All() {
			w, err := ReadWitness(bytes.NewReader(b), int64(len(b)), Options{Curve: id})
			if err != nil {
				continue
			}
			if _, err := PublicInputs(w, id); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzR1CS also solves what it reads, with a witness of zeros: the checks must
// leave gnark's solver nothing to panic about.
func FuzzR1CS(f *testing.F) {
	seeds(f, func(m *made) [][]byte { return [][]byte{m.r1cs} })
	for _, id := range curve.All() {
		var b bytes.Buffer
		if err := WriteR1CS(&b, compile(f, id, sampleNamed(f, "lookups").circuit)); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		ccs, err := ReadR1CS(bytes.NewReader(b), int64(len(b)), Options{})
		if err != nil {
			return
		}
		if _, err := R1CSFromGnark(ccs); err != nil {
			return
		}
		c, err := NewCircuit(ccs)
		if err != nil {
			t.Fatal(err)
		}
		inputs := c.sys.GetNbPublicVariables() - 1 + c.sys.GetNbSecretVariables()
		if c.Commitments() > 0 || inputs > 1000 {
			return
		}
		w := make([]byte, 12+32*inputs)
		w[3], w[2] = byte(inputs), byte(inputs>>8)
		w[11], w[10] = byte(inputs), byte(inputs>>8)
		wit, err := ReadWitness(bytes.NewReader(w), int64(len(w)), Options{Curve: c.Curve()})
		if err != nil {
			t.Fatal(err)
		}
		d, err := groth16.NewDomain(c.Curve(), c.NbConstraints(), curve.Coset)
		if err != nil {
			return
		}
		sound(t, func() {
			a, err := c.Synthesize(context.Background(), nil, wit, groth16.Want{Domain: d})
			if err == nil {
				a.Release()
			}
		})
	})
}
