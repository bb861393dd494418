package gpu_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/gpu"
)

// F1: two workers each bring 12 of 16 to the card. They ask before either has
// allocated.
func TestTwoItemsNeverCountOnTheSameBytes(t *testing.T) {
	try := func(t *testing.T, naive bool) (tiers [2]int, errs [2]error) {
		b := set(t, 16*kib, 512)
		if naive {
			b.card.Planner.Naive()
		}
		var claims [2]*gpu.Claim
		for i := range claims {
			claims[i] = must(b.card.Planner.Claim(gpu.Vectors(4*kib, false, 0)))(t)
			tiers[i] = claims[i].Decision().Tier
		}
		for i, c := range claims {
			n := int(c.Decision().Chosen().Bytes)
			if n > 0 {
				var buf *alloc.Buffer[byte]
				if buf, errs[i] = gpu.TakeBuffer[byte](c, b.sc, n, alloc.Evaluation, alloc.Dirty); errs[i] == nil {
					defer buf.Release()
				}
			}
			c.Close()
		}
		return tiers, errs
	}
	if tiers, errs := try(t, true); tiers != [2]int{0, 0} || !errors.Is(errs[1], gpu.ErrNoMemory) {
		t.Fatalf("without claims: tiers %v, %v", tiers, errs)
	}
	if tiers, errs := try(t, false); tiers != [2]int{0, 2} || errs != [2]error{} {
		t.Fatalf("tiers %v, %v", tiers, errs)
	}
}

// F2: b and c are dead when the quotient is there; while they stay, the next
// item does not fit.
func TestWhatIsDeadMakesRoomForTheNext(t *testing.T) {
	try := func(t *testing.T, late bool) int {
		b := set(t, 16*kib, 0)
		c := must(b.card.Planner.Claim(gpu.Vectors(4*kib, false, 0)))(t)
		a := must(gpu.TakeBuffer[byte](c, b.sc, 4*kib, alloc.Evaluation, alloc.Dirty))(t)
		bc := must(gpu.TakeBuffer[byte](c, b.sc, 8*kib, alloc.Evaluation, alloc.Dirty))(t)
		c.Close()
		if !late {
			bc.Release()
		}
		next := must(b.card.Planner.Claim(gpu.Vectors(4*kib, false, 0)))(t)
		next.Close()
		if late {
			bc.Release()
		}
		a.Release()
		return next.Decision().Tier
	}
	if tier := try(t, true); tier != 1 {
		t.Fatalf("freed late: tier %d", tier)
	}
	if tier := try(t, false); tier != 0 {
		t.Fatalf("freed early: tier %d", tier)
	}
}

// F4: nobody asked what was free. 12.4 of 16 with 1.5 in use by others fit;
// with both pools full they do once these are trimmed; and what does not fit
// takes a lower tier instead of failing.
func TestTiersByWhatIsFreeAfterTrimming(t *testing.T) {
	b := set(t, 160*kib, 5*kib)
	alloc.Default().SetPoolLimitOf(b.Space(), 1<<20)
	defer alloc.Default().SetPoolLimitOf(b.Space(), 0)
	st := must(b.NewStream(false))(t)
	fill := func() {
		p := must(st.AllocAsync(60 * kib))(t)
		ok(t, st.FreeAsync(p))
		ok(t, st.Sync())
		b.make(t, 70*kib).Release()
		if free, _, _ := b.Memory(); free > 30*kib {
			t.Fatalf("%d free: the pools are not full", free)
		}
	}
	for _, c := range []struct {
		others, n int64
		folded    bool
		later     int64
		tier      int
		says      string
	}{
		{15, 41, false, 0, 0, "tier 1 of 3: a, b and c (123 KiB) in device memory, 145 KiB free"},
		{30, 42, false, 0, 1, "tier 2 of 3: a (42 KiB) in device memory, 130 KiB free, 131 KiB needed for a, b and c"},
		{30, 42, true, 0, 0, "tier 1 of 3: a and b (84 KiB) in device memory, 130 KiB free"},
		{30, 42, true, 60, 1, "tier 2 of 3: a (42 KiB) in device memory, 130 KiB free, 149 KiB needed for a and b"},
		{115, 42, true, 0, 2, "tier 3 of 3: nothing in device memory, 45 KiB free, 47 KiB needed for a"},
		{115, 42, true, 41, 2, "tier 3 of 3: nothing in device memory, 45 KiB free, 88 KiB needed for a, too little"},
	} {
		b.SetOthers(0)
		fill()
		b.SetOthers(c.others * kib)
		claim := must(b.card.Planner.Claim(gpu.Vectors(c.n*kib, c.folded, c.later*kib)))(t)
		d := claim.Decision()
		claim.Close()
		if d.Tier != c.tier {
			t.Errorf("tier %d, want %d: %v", d.Tier, c.tier, d)
		}
		if c.says != d.String() {
			t.Errorf("it says %q, want %q", d.String(), c.says)
		}
		// Whoever does not ask fails where the last tier is chosen.
		all, err := alloc.Make[byte](b.sc, int(d.Tiers[0].Bytes), alloc.Evaluation, alloc.Dirty)
		if err == nil {
			all.Release()
			alloc.Default().TrimPoolOf(b.Space())
		}
		if c.tier == 2 && !errors.Is(err, gpu.ErrNoMemory) {
			t.Errorf("without a question: %v", err)
		}
	}
	ok(t, st.Close())
}

// What fits without trimming leaves the pools as they are.
func TestPoolsAreKeptWhereTheyDoNotMatter(t *testing.T) {
	b := set(t, 100*kib, 0)
	st := must(b.NewStream(false))(t)
	p := must(st.AllocAsync(20 * kib))(t)
	ok(t, st.FreeAsync(p))
	ok(t, st.Sync())
	must(b.card.Planner.Claim(gpu.Vectors(20*kib, false, 0)))(t).Close()
	if _, reserved, _ := b.Pooled(); reserved != 20*kib {
		t.Fatal("trimmed")
	}
	ok(t, st.Close())
}

// Another program takes the memory between the question and the allocation.
func TestPlaceFallsToTheNextTier(t *testing.T) {
	b := set(t, 160*kib, 0)
	for _, others := range []int64{60 * kib, 130 * kib} {
		var tried []int
		var bufs []*alloc.Buffer[byte]
		c, err := b.card.Planner.Place(gpu.Vectors(40*kib, false, 0), func(c *gpu.Claim) error {
			b.SetOthers(others)
			d := c.Decision()
			tried = append(tried, d.Tier)
			if d.Chosen().Bytes == 0 {
				return nil
			}
			buf, err := gpu.TakeBuffer[byte](c, b.sc, int(d.Chosen().Bytes), alloc.Evaluation, alloc.Dirty)
			if err == nil {
				bufs = append(bufs, buf)
			}
			return err
		})
		ok(t, err)
		if want := 1 + len(tried)/3; c.Decision().Tier != want && others == 60*kib {
			t.Errorf("tier %d after %v", c.Decision().Tier, tried)
		}
		if s := c.Decision().String(); !strings.Contains(s, "was not enough for") && others == 60*kib {
			t.Errorf("%q", s)
		}
		if others == 130*kib && c.Decision().Tier != 2 {
			t.Errorf("tier %d after %v", c.Decision().Tier, tried)
		}
		c.Close()
		for _, buf := range bufs {
			buf.Release()
		}
		b.SetOthers(0)
	}
	bad := errors.New("bad")
	if _, err := b.card.Planner.Place(gpu.Vectors(40*kib, false, 0), func(*gpu.Claim) error { return bad }); !errors.Is(err, bad) {
		t.Fatal(err)
	}
}

func TestPlansBeforeThereIsADevice(t *testing.T) {
	r := gpu.Vectors(4*alloc.GiB, false, 0)
	for _, c := range []struct {
		free int64
		tier int
	}{{16, 0}, {12, 1}, {5, 1}, {4, 2}, {0, 2}} {
		if d := r.Fit(c.free*alloc.GiB, gpu.DefaultMargin); d.Tier != c.tier || !d.Fits() && c.free > 0 {
			t.Errorf("%d GiB: %v", c.free, d)
		}
	}
	if d := r.Fit(12*alloc.GiB+gpu.DefaultMargin, gpu.DefaultMargin); d.Tier != 0 {
		t.Error("exactly enough is not enough")
	}
	if s := gpu.Vectors(alloc.GiB/2, true, 0).Fit(120*alloc.GiB, 0).String(); s != "tier 1 of 3: a and b (1.0 GiB) in device memory, 120 GiB free" {
		t.Error(s)
	}
}

func TestWorkersClaimSideBySide(t *testing.T) {
	b := set(t, 1000*kib, 100*kib)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 60 {
				n := int64(40+w*7+i) * kib
				c, err := b.card.Planner.Claim(gpu.Vectors(n, i%2 == 0, 0))
				if err != nil {
					t.Error(err)
					return
				}
				if k := c.Decision().Chosen().Bytes; k > 0 {
					buf, err := gpu.TakeBuffer[byte](c, b.sc, int(k), alloc.Evaluation, alloc.Dirty)
					if err != nil {
						t.Error(err)
					} else {
						if free, _, _ := b.Memory(); free < 100*kib {
							t.Error("the margin is gone")
						}
						buf.Release()
					}
				}
				c.Close()
			}
		})
	}
	wg.Wait()
}

// What is claimed and allocated never passes what there is less the margin.
func TestPlannerModel(t *testing.T) {
	b := set(t, 256*kib, 16*kib)
	rapid.Check(t, func(t *rapid.T) {
		type item struct {
			c    *gpu.Claim
			left int64
			bufs []*alloc.Buffer[byte]
		}
		var items []*item
		var taken, claimed int64
		t.Repeat(map[string]func(*rapid.T){
			"claim": func(t *rapid.T) {
				r := gpu.Vectors(256*rapid.Int64Range(0, 400).Draw(t, "n"), rapid.Bool().Draw(t, "folded"), 256*rapid.Int64Range(0, 100).Draw(t, "later"))
				c, err := b.card.Planner.Claim(r)
				if err != nil {
					t.Fatal(err)
				}
				want := r.Fit(256*kib-taken-claimed, 16*kib)
				if d := c.Decision(); d.Tier != want.Tier || d.Fits() != want.Fits() {
					t.Fatalf("%v, want %v", d, want)
				}
				items = append(items, &item{c: c, left: c.Left()})
				claimed += c.Left()
			},
			"take": func(t *rapid.T) {
				if len(items) == 0 {
					return
				}
				i := rapid.SampledFrom(items).Draw(t, "item")
				n := rapid.Int64Range(0, i.left/256).Draw(t, "n") * 256
				buf, err := gpu.TakeBuffer[byte](i.c, b.sc, int(n), alloc.Scratch, alloc.Dirty)
				if err != nil {
					t.Fatal(err)
				}
				i.bufs = append(i.bufs, buf)
				i.left -= n
				claimed -= n
				taken += n
			},
			"end": func(t *rapid.T) {
				if len(items) == 0 {
					return
				}
				k := rapid.IntRange(0, len(items)-1).Draw(t, "k")
				i := items[k]
				items = append(items[:k], items[k+1:]...)
				for _, buf := range i.bufs {
					taken -= buf.Bytes()
					buf.Release()
				}
				claimed -= i.left
				i.c.Close()
				i.c.Close()
			},
			"": func(t *rapid.T) {
				if b.card.Planner.Claimed() != claimed {
					t.Fatalf("%d claimed, want %d", b.card.Planner.Claimed(), claimed)
				}
				if taken+claimed > 240*kib {
					t.Fatalf("%d taken and %d claimed", taken, claimed)
				}
			},
		})
		for _, i := range items {
			for _, buf := range i.bufs {
				buf.Release()
			}
			i.c.Close()
		}
	})
}

// Items that hold nothing can wait for each other's memory, and all get some.
func TestItemsWaitTheirTurn(t *testing.T) {
	b := set(t, 100*kib, 10*kib)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			c, err := b.card.Planner.Wait(ctx, gpu.Request{Tiers: []gpu.Tier{{Holds: "all", Bytes: 40 * kib}}, Later: 20 * kib})
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			buf, err := gpu.TakeBuffer[byte](c, b.sc, 40*kib, alloc.Scratch, alloc.Dirty)
			if err != nil {
				t.Error(err)
				return
			}
			defer buf.Release()
			later, err := gpu.TakeBuffer[byte](c, b.sc, 20*kib, alloc.Scratch, alloc.Dirty)
			if err != nil {
				t.Error(err)
				return
			}
			later.Release()
		})
	}
	wg.Wait()

	one := gpu.Request{Tiers: []gpu.Tier{{Holds: "all", Bytes: 91 * kib}}}
	if _, err := b.card.Planner.Wait(ctx, one); !errors.Is(err, gpu.ErrNoMemory) {
		t.Fatalf("it can never fit: %v", err)
	}
	hold := b.make(t, 60*kib)
	c, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	one.Tiers[0].Bytes = 50 * kib
	for range 2 { // at the front, and behind
		wg.Go(func() {
			if _, err := b.card.Planner.Wait(c, one); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
	hold.Release()
}
