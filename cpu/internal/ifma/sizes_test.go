package ifma

import (
	"fmt"
	"testing"

	"github.com/snarkline/snarkline/curve"
)

// everySize is 1 … 70 and what lies around powers of two.
func everySize(most int) []int {
	var n []int
	for i := 1; i <= 70; i++ {
		n = append(n, i)
	}
	for p := 128; p+1 <= most; p *= 2 {
		n = append(n, p-1, p, p+1)
	}
	return n
}

// TestMSMEverySize has sums of every number of terms, fresh points and scalars
// with the ends of the range among them.
func TestMSMEverySize(t *testing.T) {
	onGroups(t, func(t *testing.T, o oracle, g *Group) {
		most := 1025
		if o.g == curve.InG2 {
			most = 130 // the same code, and slow to check
		}
		pts := o.random(most)
		s := randomScalars(o.id, most)
		for i, e := range edgeScalars(o.id) {
			s[(i*7)%most] = e
		}
		for _, n := range everySize(most) {
			checkMSM(t, o, g, pts, nil, s[:n], 1+n%2)
		}
	})
}

// TestShortScalars has plans for short scalars, by their length and weight.
func TestShortScalars(t *testing.T) {
	onGroups(t, func(t *testing.T, o oracle, g *Group) {
		const n = 700
		pts := o.random(n)
		for _, bits := range []int{1, 2, 5, 17, 63, 64, 65, 130} {
			t.Run(fmt.Sprint(bits), func(t *testing.T) {
				s := make([]curve.Scalar, n)
				for i, r := range randomScalars(o.id, n) {
					for j := range bits { // bit by bit: as plain as can be
						s[i][j/64] |= r[j/64] & (1 << (j % 64))
					}
				}
				want := o.msm(pts, montgomery(o.id, s))
				for i := 0; i < n; i += 3 { // −s of the negative point
					s[i][3] |= signBit
					copy(pts[i*g.k.pointBytes():], o.neg(pts[i*g.k.pointBytes():(i+1)*g.k.pointBytes()]))
				}
				for _, weight := range []int{1, n * bits / g.bits, n} {
					p := g.Plan(n, bits, weight, 2, 0)
					if p.windows > (bits+p.c)/p.c {
						t.Errorf("%d windows of %d bits", p.windows, p.c)
					}
					out := make([]uint64, g.k.pointBytes()/8)
					if err := g.Folded(t.Context(), p, pts, nil, append([]curve.Scalar(nil), s...), make([]byte, p.Bytes(g)), out); err != nil {
						t.Fatal(err)
					}
					if string(mem(out)) != string(want) {
						t.Errorf("weight %d: wrong sum", weight)
					}
				}
				for i := 0; i < n; i += 3 {
					copy(pts[i*g.k.pointBytes():], o.neg(pts[i*g.k.pointBytes():(i+1)*g.k.pointBytes()]))
				}
				long := append([]curve.Scalar(nil), s...)
				long[n-1] = curve.Scalar{}
				long[n-1][bits/64] = 1 << (bits % 64)
				p := g.Plan(n, bits, n, 1, 0)
				if g.Folded(t.Context(), p, pts, nil, long, make([]byte, p.Bytes(g)), make([]uint64, g.k.pointBytes()/8)) == nil {
					t.Error("a scalar that is longer than planned passes")
				}
				if g.Folded(t.Context(), p, pts, nil, long[1:], make([]byte, p.Bytes(g)), make([]uint64, g.k.pointBytes()/8)) == nil {
					t.Error("a plan for another number of scalars passes")
				}
			})
		}
	})
}
