package cuda

import (
	"fmt"
	"slices"
	"testing"

	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// TestQuotientInParts holds quotients for which there is no room for all vectors
// against the CPU: with a on the card, and with none.
func TestQuotientInParts(t *testing.T) {
	both(t, func(t *testing.T, id curve.ID) {
		h := host(t, id)
		e := newEngine(t, id, emulator.Config{}, Chunk(4096))
		e.o.unguarded.parts = true
		for _, log := range []int{3, 9, 11} {
			for _, basis := range []curve.Basis{curve.Coset, curve.Monomial} {
				for _, folded := range []bool{false, true} {
					for tier := 2; tier <= 3; tier++ {
						t.Run(fmt.Sprintf("2^%d %v folded %v tier %d", log, basis, folded, tier), func(t *testing.T) {
							d, err := groth16.NewDomain(id, 1<<log, basis)
							if err != nil {
								t.Fatal(err)
							}
							a, b := scalars(id, 1<<log, 3, 3, 1), scalars(id, 1<<log, 3, 3, 2)
							var c []curve.Scalar
							if !folded {
								c = make([]curve.Scalar, 1<<log)
								if err := h.Hadamard(ctx(), a, b, c); err != nil {
									t.Fatal(err)
								}
							}
							want := slices.Clone(a)
							if err := h.Quotient(ctx(), scope(), d, basis, want, slices.Clone(b), slices.Clone(c)); err != nil {
								t.Fatal(err)
							}
							size := int64(len(a)) * curve.ScalarBytes
							e.expectJobs(len(a))
							leaveStanding(t, e, e.tables.coming(tableKey{d, basis})+int64(3-tier)*size+size/2)
							if got := staged(t, e, d, basis, a, b, c); !slices.Equal(got, want) {
								t.Error("it differs from the CPU's")
							}
						})
					}
				}
			}
		}
	})
}

// TestPartsOnSmallCard makes quotients on a card that has no room for a, b and c
// with the tables: they are made in parts without having been told to.
func TestPartsOnSmallCard(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	// tables of 8 MiB, a vector of 4, and pieces; not two vectors more
	e := newEngine(t, id, smallCard(15*1<<20))
	d, a, b, c := vectors(t, id)
	v, err := e.Prestage(ctx(), scope(), d, curve.Coset, a, b, c)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Flush()
	defer releaseAll(v)
	q, err := e.QuotientOf(ctx(), scope(), v)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseAll(q)
	got := fetchVector(t, e, q.(*quotient).h)
	big := newBig(t, id, d)
	if !slices.Equal(got, big) {
		t.Error("it differs from the CPU's")
	}
}

// newBig is the quotient of vectors, by the CPU.
func newBig(t *testing.T, id curve.ID, d curve.Domain) []curve.Scalar {
	t.Helper()
	s := scalars(id, 1<<10, 3, 3, 1)
	var a []curve.Scalar
	for len(a) < d.Size() {
		a = append(a, s...)
	}
	out := slices.Clone(a)
	if err := host(t, id).Quotient(ctx(), scope(), d, curve.Coset, out, slices.Clone(a), slices.Clone(a)); err != nil {
		t.Fatal(err)
	}
	return out
}
