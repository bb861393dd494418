package groth16

import (
	"testing"

	"github.com/snarkline/snarkline/curve"
)

func BenchmarkUnsafeSetup(b *testing.B) {
	for _, id := range curve.All() {
		b.Run(id.String(), func(b *testing.B) {
			r, _ := makeCircuit(b, shape{curve: id, rows: 1 << 16, public: 2}, 1)
			for b.Loop() {
				key, _, err := UnsafeSetup(b.Context(), r, SetupOptions{Folded: true})
				if err != nil {
					b.Fatal(err)
				}
				if err := key.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAssemble(b *testing.B) {
	for _, id := range curve.All() {
		b.Run(id.String(), func(b *testing.B) {
			r, _ := makeCircuit(b, shape{curve: id, rows: 4}, 1)
			key, _, err := UnsafeSetup(b.Context(), r, SetupOptions{})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = key.Close() }()
			for b.Loop() {
				if _, err := Assemble(key, &Sums{}, nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFold(b *testing.B) {
	for _, id := range curve.All() {
		b.Run(id.String(), func(b *testing.B) {
			r, _ := makeCircuit(b, shape{curve: id, rows: 1 << 10, public: 2}, 1)
			key, _, err := UnsafeSetup(b.Context(), r, SetupOptions{})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = key.Close() }()
			for b.Loop() {
				folded, err := Fold(b.Context(), key, r, FoldOptions{})
				if err != nil {
					b.Fatal(err)
				}
				if err := folded.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
