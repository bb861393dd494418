package cuda

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// faultsAllowed says that a test makes frees fail.
var faultsAllowed atomic.Bool

// TestQuotient holds QuotientOf and Quotient against the CPU.
func TestQuotient(t *testing.T) {
	both(t, func(t *testing.T, id curve.ID) {
		e := newEngine(t, id, emulator.Config{})
		h := host(t, id)
		for _, log := range []int{0, 1, 4, 7, 10, 11} {
			for _, basis := range []curve.Basis{curve.Coset, curve.Monomial} {
				for _, folded := range []bool{false, true} {
					t.Run(fmt.Sprintf("2^%d %v folded %v", log, basis, folded), func(t *testing.T) {
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
						got := slices.Clone(a)
						if err := e.Quotient(ctx(), scope(), d, basis, got, slices.Clone(b), slices.Clone(c)); err != nil {
							t.Fatal(err)
						}
						if !slices.Equal(got, want) {
							t.Errorf("Quotient differs from the CPU's")
						}
						if got := staged(t, e, d, basis, a, b, c); !slices.Equal(got, want) {
							t.Errorf("QuotientOf differs from the CPU's")
						}
					})
				}
			}
		}
	})
}

// staged is the quotient by Prestage and QuotientOf.
func staged(t *testing.T, e *Engine, d curve.Domain, basis curve.Basis, a, b, c []curve.Scalar) []curve.Scalar {
	t.Helper()
	ba, bb := buffer(t, a), buffer(t, b)
	var bc *alloc.Buffer[curve.Scalar]
	if c != nil {
		bc = buffer(t, c)
	}
	v, err := e.Prestage(ctx(), scope(), d, basis, ba, bb, bc)
	if err != nil {
		t.Fatal(err)
	}
	ba.Release()
	bb.Release()
	if bc != nil {
		bc.Release()
	}
	q, err := e.QuotientOf(ctx(), scope(), v)
	releaseAll(v)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseAll(q)
	return fetchVector(t, e, q.(*quotient).h)
}

func releaseAll(v held) {
	for _, r := range v.Buffers() {
		r.Release()
	}
}

// fetchVector reads a vector back.
func fetchVector(t *testing.T, e *Engine, v *vector) []curve.Scalar {
	t.Helper()
	out := make([]curve.Scalar, v.n)
	err := e.run(ctx(), scope(), &op{name: "read back", body: func(t *task) error {
		p, err := v.ready(t.ctx, t.st)
		if err != nil {
			return err
		}
		return t.takeBack(curve.Bytes(out), p)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// points are n points of a group: of a set-up's key, with infinity, repeated and
// opposite ones among them.
func points(t testing.TB, id curve.ID, g curve.Group, n int) curve.Points {
	t.Helper()
	k := key(t, id, 300, 200, groth16.SetupOptions{Basis: curve.Coset})
	from := k.pk.A.Points
	if g == curve.InG2 {
		from = k.pk.B2.Points
	}
	size := id.PointBytes(g)
	out := curve.Points{Curve: id, Group: g, Data: make([]byte, n*size)}
	for i := range n {
		j := i % (from.Len() - 1)
		if i%17 == 16 {
			continue // infinity
		}
		copy(out.Data[i*size:], from.Data[j*size:(j+1)*size])
	}
	return out
}

// TestMSM holds the sums of host slices against the CPU.
func TestMSM(t *testing.T) {
	both(t, func(t *testing.T, id curve.ID) {
		e := newEngine(t, id, emulator.Config{})
		h := host(t, id)
		for _, g := range []curve.Group{curve.InG1, curve.InG2} {
			for _, n := range []int{0, 1, 2, 3, 33, 700} {
				if g == curve.InG2 && n > 100 && !*long {
					continue
				}
				for _, kept := range []bool{false, true} {
					for _, form := range []string{"run", "wires", "picked"} {
						t.Run(fmt.Sprintf("%v %d kept %v %s", g, n, kept, form), func(t *testing.T) {
							q := curve.Query{Points: points(t, id, g, n), First: 3}
							w := scalars(id, 2*n+10, 2, 2, uint64(n))
							var pick []uint32
							if form != "run" {
								q.Wires = make([]uint32, n)
								for j := range q.Wires {
									q.Wires[j] = uint32(2*j + j%2)
								}
							}
							if form == "picked" {
								pick = []uint32{}
								for j := n - 1; j >= 0; j -= 3 {
									pick = append(pick, uint32(j))
								}
							}
							if kept {
								drop, err := e.Keep(ctx(), q.Points)
								if err != nil {
									t.Fatal(err)
								}
								defer drop()
								if n > 0 && !e.Resident(q.Points) {
									t.Error("the points are not on the card")
								}
							}
							if g == curve.InG1 {
								got, err := e.MSMG1(ctx(), scope(), q, w, pick)
								want, werr := h.MSMG1(ctx(), scope(), q, w, pick)
								if err != nil || werr != nil || got != want {
									t.Errorf("differs from the CPU's: %v, %v", err, werr)
								}
							} else {
								got, err := e.MSMG2(ctx(), scope(), q, w, pick)
								want, werr := h.MSMG2(ctx(), scope(), q, w, pick)
								if err != nil || werr != nil || got != want {
									t.Errorf("differs from the CPU's: %v, %v", err, werr)
								}
							}
						})
					}
				}
			}
		}
	})
}

// TestWires holds Split, SumOnes, Others, SumOthers and SumB2 against the CPU, with the
// witness on the card and not.
func TestWires(t *testing.T) {
	both(t, func(t *testing.T, id curve.ID) {
		for _, where := range []string{"card", "host"} {
			t.Run(where, func(t *testing.T) {
				e := newEngine(t, id, emulator.Config{})
				h := host(t, id)
				for _, n := range []int{1, 40, 900} {
					for _, kept := range []bool{false, true} {
						for _, listed := range []bool{false, true} {
							t.Run(fmt.Sprintf("%d kept %v listed %v", n, kept, listed), func(t *testing.T) {
								w := buffer(t, scalars(id, 2*n+10, 4, 4, uint64(n)))
								defer w.Release()
								q := curve.Query{Points: points(t, id, curve.InG1, n), First: 5}
								q2 := curve.Query{Points: points(t, id, curve.InG2, min(n, 50)), First: 7}
								if listed {
									q.Wires = make([]uint32, n)
									for j := range q.Wires {
										q.Wires[j] = uint32(2*j + j%2)
									}
								}
								if kept {
									drop, err := e.Keep(ctx(), q.Points, q2.Points)
									if err != nil {
										t.Fatal(err)
									}
									defer drop()
								}
								if where == "host" {
									e.card.mem.setMargin(1 << 50)
								}
								s, counts, err := e.Split(ctx(), scope(), w)
								e.card.mem.setMargin(0)
								if err != nil {
									t.Fatal(err)
								}
								defer releaseAll(s)
								if on := s.(*split).x.classes != nil; on != (where == "card") {
									t.Fatalf("the witness is on the card: %v", on)
								}
								classes := make([]curve.Class, w.Len())
								want, err := h.Classify(ctx(), w.Slice(), classes)
								if err != nil || counts != want {
									t.Fatalf("counts are %v, want %v (%v)", counts, want, err)
								}
								one, err := e.SumOnes(ctx(), scope(), q, s)
								if err != nil {
									t.Fatal(err)
								}
								if v, err := h.SumG1(ctx(), scope(), q, classes); err != nil || one != v {
									t.Errorf("the sum of ones differs from the CPU's (%v)", err)
								}
								b2, err := e.SumB2(ctx(), scope(), q2, w)
								if err != nil {
									t.Fatal(err)
								}
								if v, err := h.MSMG2(ctx(), scope(), q2, w.Slice(), nil); err != nil || b2 != v {
									t.Errorf("the sum in G2 differs from the CPU's (%v)", err)
								}
								for _, whole := range []bool{false, true} {
									o, err := e.Others(ctx(), scope(), s, whole, q)
									if err != nil {
										t.Fatal(err)
									}
									got, err := e.SumOthers(ctx(), scope(), q, o)
									releaseAll(o)
									if err != nil {
										t.Fatal(err)
									}
									var pick []uint32
									if !whole {
										pick = make([]uint32, n)
										k, err := h.Tail(ctx(), q, classes, pick)
										if err != nil {
											t.Fatal(err)
										}
										pick = pick[:k]
									}
									if v, err := h.MSMG1(ctx(), scope(), q, w.Slice(), pick); err != nil || got != v {
										t.Errorf("whole %v: the sum of others differs from the CPU's (%v)", whole, err)
									}
								}
							})
						}
					}
				}
			})
		}
	})
}
