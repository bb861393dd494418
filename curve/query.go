package curve

// Query is one vector of a proving key with the wires that its points belong
// to: the sum of w[Wire(j)]·Points[j] over all j is what a proof needs of it.
// It is a view; the key owns the memory.
type Query struct {
	Points Points
	Wires  []uint32 // the wire of point j; nil when that is First + j
	First  uint32
}

// Len is the number of points.
func (q Query) Len() int { return q.Points.Len() }

// Wire is the index in the witness of the scalar that goes with point j.
func (q Query) Wire(j int) uint32 {
	if q.Wires == nil {
		return q.First + uint32(j)
	}
	return q.Wires[j]
}

// Class says what a witness scalar is, for the split between batch-add and tail-msm.
type Class = uint8

// The classes of a scalar.
const (
	Zero  Class = 0 // contributes nothing
	One   Class = 1 // a plain addition
	Other Class = 2 // a term of the Pippenger MSM
)

// Counts is how many scalars of a witness fall in each class, indexed by Class.
type Counts [3]int

// Basis says in which form a key wants the quotient h.
type Basis uint8

const (
	// Monomial keys (gnark, bellperson) hold [τ^i·Z(τ)/δ] and take the n
	// coefficients of h = (a·b − c)/Z, in bit-reversed order.
	Monomial Basis = 1
	// Coset keys (snarkjs, and this module's own) hold Lagrange polynomials
	// of a coset and take a·b − c (folded keys: a·b) at the points
	// Shift·Generator^i, in natural order, without a division.
	Coset Basis = 2
)

// String is "monomial" or "coset".
func (b Basis) String() string {
	switch b {
	case Monomial:
		return "monomial"
	case Coset:
		return "coset"
	}
	return "unknown basis"
}

// Domain is the multiplicative subgroup over which the constraints are
// interpolated, and the coset of it on which the quotient is taken.
type Domain struct {
	Log       int    // the size is 2^Log
	Generator Scalar // a primitive 2^Log-th root of unity
	Shift     Scalar // the coset is Shift·⟨Generator⟩
}

// Size is the number of points, 2^Log.
func (d Domain) Size() int { return 1 << d.Log }

// Term is one coefficient of a sparse row.
type Term struct {
	Wire  uint32
	Coeff uint32 // index in Matrix.Coeffs
}

// Matrix is one of the sparse matrices A, B, C of an R1CS in compressed row
// form. It is a view; whoever made it owns the memory.
type Matrix struct {
	Rows   []uint32 // row i is Terms[Rows[i]:Rows[i+1]]; len = rows + 1
	Terms  []Term
	Coeffs []Scalar // the distinct coefficients
}

// NumRows is the number of rows.
func (m Matrix) NumRows() int { return max(len(m.Rows)-1, 0) }
