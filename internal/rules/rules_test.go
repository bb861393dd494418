package rules

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestQueue holds the ring against a slice.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[int]
		q.Reset(rapid.SampledFrom([]int{1, 3, Unbounded}).Draw(t, "capacity"))
		var want []int
		peak := 0
		for i := range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				mod := rapid.IntRange(1, 3).Draw(t, "mod")
				q.Filter(func(v *int) bool { return *v%mod == 0 })
				want = slices.DeleteFunc(want, func(v int) bool { return v%mod == 0 })
			case 1, 2:
				if len(want) > 0 {
					var got int
					if *q.First() != want[0] {
						t.Fatalf("first is %d, want %d", *q.First(), want[0])
					}
					if q.Take(&got); got != want[0] {
						t.Fatalf("took %d, want %d", got, want[0])
					}
					want = want[1:]
				}
			default:
				if full := q.Capacity != Unbounded && len(want) >= q.Capacity; full != q.Full() {
					t.Fatalf("full %v with %d of %d", q.Full(), len(want), q.Capacity)
				}
				q.Put(&i)
				want = append(want, i)
				peak = max(peak, len(want))
			}
			if q.Len() != len(want) || q.Peak != peak {
				t.Fatalf("%d, peak %d, want %d, peak %d", q.Len(), q.Peak, len(want), peak)
			}
		}
	})
}

// TestTable: a tuple completes with its last value; twice is twice; what an ended
// input leaves out is told.
func TestTable(t *testing.T) {
	j := NewTable[string, int](3)
	arrive := func(key string, slot, v int, want Arrival) *Tuple[int] {
		t.Helper()
		p, what := j.Arrive(key, slot, &v)
		if what != want {
			t.Fatalf("%s at %d: %v, want %v", key, slot, what, want)
		}
		return p
	}
	arrive("a", 0, 1, Waits)
	arrive("b", 2, 7, Waits)
	arrive("a", 2, 3, Waits)
	arrive("a", 0, 9, Twice)
	p := arrive("a", 1, 2, Completes)
	if p.Vals != [MaxJoin]int{1, 2, 3} || j.Len() != 1 || j.Peak != 2 {
		t.Errorf("%+v, %d, %d", p, j.Len(), j.Peak)
	}
	j.Recycle(p)
	var stuck []int
	if over := j.End(0, func(v *int) { stuck = append(stuck, *v) }); over || !slices.Equal(stuck, []int{7}) {
		t.Errorf("over %v, stuck %v", over, stuck)
	}
	if p := arrive("c", 1, 5, Stranded); j.Missing(p) != 1 {
		t.Errorf("missing %b", j.Missing(p))
	}
	var out []int
	j.Remove("c", func(v *int) { out = append(out, *v) })
	j.Empty(func(v *int) { out = append(out, *v) })
	if !slices.Equal(out, []int{5, 7}) || j.Len() != 0 {
		t.Errorf("%v, %d", out, j.Len())
	}
	if j.End(1, func(*int) {}) || !j.End(2, func(*int) {}) {
		t.Error("all inputs have ended with the third")
	}
}

// TestOrder: values that come in any order, some never, are taken in order.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 20).Draw(t, "n")
		o := NewOrder[int]()
		var got, want []int
		skipped := make([]bool, n)
		for _, i := range rapid.Permutation(upTo(n)).Draw(t, "order") {
			if rapid.IntRange(0, 3).Draw(t, "skip") == 0 {
				skipped[i] = true
				if rapid.Bool().Draw(t, "had come") {
					o.Put(uint64(i), &i)
					if !o.Due() {
						o.Skip(uint64(i))
					} else {
						skipped[i] = false
					}
				} else {
					o.Skip(uint64(i))
				}
			} else {
				o.Put(uint64(i), &i)
			}
			for o.Due() {
				got = append(got, o.Take())
				o.Pass()
			}
		}
		for i := range n {
			if !skipped[i] {
				want = append(want, i)
			}
		}
		if !slices.Equal(got, want) || o.Len() != 0 {
			t.Fatalf("%v, want %v; %d are left", got, want, o.Len())
		}
	})
	o := NewOrder[int]()
	for _, v := range []int{5, 3} {
		o.Put(uint64(v), &v)
	}
	if o.Due() {
		t.Error("3 is due before 0")
	}
	if o.Jump(); !o.Due() || o.Take() != 3 {
		t.Error("the first of those that are here is not due")
	}
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// TestTopology: what hangs together, in the order of the smallest node.
func TestTopology(t *testing.T) {
	top := NewTopology([]Node{
		{Kind: Source}, {Kind: Source}, {Kind: Stage, Preds: []int{1}}, {Kind: Stage, Preds: []int{0}, Ordered: true},
		{Kind: Join, Preds: []int{3, 0}}, {Kind: Sink, Preds: []int{4}}, {Kind: Sink, Preds: []int{2}},
	})
	if len(top.Parts) != 2 || !slices.Equal(top.Of, []int{0, 1, 1, 0, 0, 0, 1}) {
		t.Fatalf("%+v", top)
	}
	c := top.Parts[0]
	if !slices.Equal(c.Sources, []int{0}) || !slices.Equal(c.Joins, []int{4}) || !slices.Equal(c.Work, []int{3, 5}) || !slices.Equal(c.Ordered, []int{3}) {
		t.Errorf("%+v", c)
	}
	if !slices.Equal(top.Outs[0], []Link{{3, 0}, {4, 1}}) {
		t.Errorf("%v", top.Outs[0])
	}
	var behind []int
	top.Behind(0, func(n int) { behind = append(behind, n) })
	if !slices.Equal(behind, []int{3, 5}) {
		t.Errorf("%v", behind)
	}
}
