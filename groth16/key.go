package groth16

import (
	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// CommitmentKey is the Pedersen key of one commitment of a gnark circuit: the
// points of the private wires that it commits to, in order, and the same times σ
// for the proof of knowledge.
type CommitmentKey struct {
	Wire          uint32   // holds the hash of the commitment; has no point in L
	Wires         []uint32 // of the points, ascending; they have none in L either
	Basis         curve.Points
	BasisExpSigma curve.Points
}

// ProvingKey is a Groth16 proving key in the memory layout of gnark-crypto.
// It does not change after it was made: any number of goroutines may prove
// with one key. Close gives its memory back (buffers and mappings); nothing
// may use the key then.
//
// With A_i, B_i, C_i the wires' polynomials, n the domain size and Z = Xⁿ − 1:
// A, B1, B2 hold A_i(τ), B_i(τ); L the wires' part of C; H the quotient's.
type ProvingKey struct {
	Curve  curve.ID
	Domain curve.Domain
	Basis  curve.Basis
	Folded bool // the C matrix is folded into L: c is never computed

	NbConstraints int // rows of the R1CS, identity rows for public inputs included
	NbWires       int // length of the witness, the leading one included
	NbPublic      int // public inputs, the leading one not included

	Alpha1, Beta1, Delta1 curve.G1
	Beta2, Delta2         curve.G2

	A, B1, L curve.Query
	B2       curve.Query
	H        curve.Points // Domain.Size() or one less; Basis says the order

	// Commitments are the Pedersen keys of a gnark circuit that commits
	// (BSB22); empty otherwise.
	Commitments []CommitmentKey

	release []func() error
	rest    func(curve.Points)
}

// OnClose adds f to what Close runs, last first.
func (k *ProvingKey) OnClose(f func() error) { k.release = append(k.release, f) }

// OnRest sets what Rest does: whoever maps a key's file gives the pages back
// with it. It is set before the key is used.
func (k *ProvingKey) OnRest(f func(curve.Points)) { k.rest = f }

// Rest says that the caller is done with the points p of the key for now. The
// pages of a mapped key then leave resident memory and come back when they are
// read again, so that a proof keeps one query resident and not all of them; a
// key in buffers stays as it is. Others may be reading p all the while.
func (k *ProvingKey) Rest(p curve.Points) {
	if k.rest != nil {
		k.rest(p)
	}
}

// Close releases the key's memory. It may be called more than once.
func (k *ProvingKey) Close() error {
	var first error
	for i := len(k.release) - 1; i >= 0; i-- {
		if err := k.release[i](); err != nil && first == nil {
			first = err
		}
	}
	k.release = nil
	return first
}

// Bytes is the size of the key's points in memory.
func (k *ProvingKey) Bytes() int64 {
	n := len(k.H.Data)
	for _, q := range []curve.Query{k.A, k.B1, k.L, k.B2} {
		n += len(q.Points.Data) + 4*len(q.Wires)
	}
	for _, c := range k.Commitments {
		n += len(c.Basis.Data) + len(c.BasisExpSigma.Data)
	}
	return int64(n)
}

// own makes Close release b.
func (k *ProvingKey) own(b alloc.Ref) {
	k.OnClose(func() error { b.Release(); return nil })
}

// query makes a query of points whose wires are listed, and takes over the
// list: a run of consecutive wires needs none.
func (k *ProvingKey) query(p curve.Points, wires *alloc.Buffer[uint32]) curve.Query {
	w := wires.Slice()
	if n := len(w); n == 0 || int(w[n-1]-w[0]) == n-1 {
		q := curve.Query{Points: p}
		if n > 0 {
			q.First = w[0]
		}
		wires.Release()
		return q
	}
	k.own(wires)
	return curve.Query{Points: p, Wires: w}
}
