package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// yard is several emulated cards with a set over them, and what was seen of it.
type yard struct {
	engines []*Engine
	set     *stages.Set

	mu      sync.Mutex
	has     []int // jobs of each card, by what the balance tells
	waiting int
	must    bool // a card has nothing and a job waits: the next event has to place one
	waits   int
	placed  []int
	bad     []string
	running map[string]int // jobs in each stage
	most    map[string]int
	second  []int  // times that a card got a job beside another
	gone    []bool // cards that were lost at the event before
}

// watch follows the balance by its events alone.
func (y *yard) watch(e gpu.BalanceEvent) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.must && e.Kind != gpu.Placed {
		y.bad = append(y.bad, fmt.Sprintf("a job waits beside a card that has none: %v, jobs %v, then event %v of card %d", y.waiting, y.has, e.Kind, e.Member))
	}
	if e.Kind == gpu.Placed && y.gone[e.Member] {
		y.bad = append(y.bad, fmt.Sprintf("a job is placed on card %d, which is lost", e.Member))
	}
	switch e.Kind {
	case gpu.Waiting:
		y.waiting++
		y.waits++
	case gpu.GaveUp:
		y.waiting--
	case gpu.Placed:
		y.waiting = max(y.waiting-1, 0)
		y.has[e.Member]++
		y.placed[e.Member]++
		if y.has[e.Member] > 1 {
			y.second[e.Member]++
		}
	case gpu.Left:
		y.has[e.Member]--
	}
	y.must = false
	for i, n := range y.has {
		y.gone[i] = y.engines[i].Lost() != nil
		y.must = y.must || y.waiting > 0 && n == 0 && !y.gone[i]
	}
}

// listen counts how many jobs each stage has at once.
func (y *yard) listen() pipeline.Option {
	return pipeline.Listen(pipeline.ListenerFunc(func(e pipeline.Event) {
		y.mu.Lock()
		defer y.mu.Unlock()
		switch e.Kind {
		case pipeline.Begin:
			y.running[e.Stage]++
			y.most[e.Stage] = max(y.most[e.Stage], y.running[e.Stage])
		case pipeline.End:
			y.running[e.Stage]--
		}
	}))
}

// openYard opens cards for as long as the test runs.
func openYard(t *testing.T, id curve.ID, config emulator.Config) *yard {
	t.Helper()
	onlyEmulated(t)
	leakFree(t)
	d, err := Open(emulator.Need(t, config))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		clean(t)
	})
	n := len(d.Cards())
	y := &yard{has: make([]int, n), placed: make([]int, n), second: make([]int, n), gone: make([]bool, n), running: map[string]int{}, most: map[string]int{}}
	var members []groth16.Arithmetic
	for _, c := range d.Cards() {
		e, err := New(c, id, host(t, id), small...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
		y.engines, members = append(y.engines, e), append(members, e)
	}
	y.set, err = stages.SpreadOptions{Balance: gpu.BalanceOptions{Places: 3, Watch: y.watch}}.Spread(members...)
	if err != nil {
		t.Fatal(err)
	}
	return y
}

// prove runs a batch in which each card has room for room[i] jobs, and holds what
// has to be so of every batch against what was seen.
func (y *yard) prove(t *testing.T, k *keptKey, jobs int, room []int, lost int, opts ...pipeline.Option) ([]*stages.Result, *pipeline.Report) {
	t.Helper()
	p := prover(k, y.set)
	p.Again, p.Elsewhere = 0, []groth16.Arithmetic{host(t, k.pk.Curve)}
	if err := stages.Keep(ctx(), p); err != nil {
		t.Fatal(err)
	}
	kept := make([]int64, len(y.engines))
	var limits alloc.Amount
	for i, e := range y.engines {
		one := *p
		one.Arith, one.Elsewhere = e, nil
		need, err := stages.Need(&one, stages.BatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s := e.card.space
		limits[s] = int64(room[i]) * need[s]
		opts = append(opts, pipeline.Budget(s, limits[s]))
		alloc.Default().TrimPoolOf(s)
		kept[i] = e.keys.bytes()
	}
	alloc.Default().ResetPeaks()
	out := make([]*stages.Result, jobs)
	var mu sync.Mutex
	report, err := stages.Batch(ctx(), p, func(yield func(stages.Job) bool) {
		for i := range jobs {
			if !yield(stages.Job{Key: pipeline.Key{Job: "toy", Part: i}, Input: k.toy.witness(i)}) {
				return
			}
		}
	}, func(_ context.Context, r *stages.Result) error {
		mu.Lock()
		defer mu.Unlock()
		if out[r.Key.Part] != nil {
			return errors.New("a key is answered twice")
		}
		out[r.Key.Part] = r
		return nil
	}, stages.BatchOptions{Options: append(opts, y.listen())})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range out {
		if r == nil {
			t.Errorf("key %d is not answered", i)
		} else if err := k.vk.Verify(r.Proof, k.toy.witness(i)[1:2]); err != nil {
			t.Errorf("proof %d is refused: %v", i, err)
		}
	}
	for _, e := range y.engines {
		settle(e)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	if len(y.bad) > 0 {
		t.Errorf("%d times: %s", len(y.bad), y.bad[0])
	}
	if y.waits == 0 {
		t.Error("no job waited for a card: there is nothing to see")
	}
	for stage, n := range y.most {
		// One worker was free at any time: none of a card's jobs waited for
		// those of another.
		if w := report.Stage(stage).Workers; stages.DefaultLanes()[stage] > 0 && n >= w {
			t.Errorf("%d jobs in %s at once, %d workers", n, stage, w)
		}
	}
	for i, e := range y.engines {
		s := e.card.space
		if peak := alloc.Default().Peak(s) - kept[i] - e.tables.bytes(); peak > limits[s] {
			t.Errorf("%s: jobs had %d bytes, %d are its budget", e.Name(), peak, limits[s])
		}
		if peak := report.Budget.Peak[s]; peak > limits[s] || e.Lost() == nil && peak == 0 {
			t.Errorf("%s: %d bytes were reserved of %d", e.Name(), peak, limits[s])
		}
	}
	if lost == 0 && report.Budget.Waits > 0 {
		t.Errorf("%d jobs waited for a card's budget after they were placed there", report.Budget.Waits)
	}
	if err := y.set.Balance().Check(); err != nil {
		t.Error(err)
	}
	t.Logf("placed %v, %d waits, most at once %v; %v", y.placed, y.waits, y.most, y.set.Balance().Stats())
	return out, report
}

// cards are emulated ones of unequal speed and memory: the first is the fastest and
// has most, the last takes slowest microseconds a launch.
func cards(n int, slowest int64) (out []emulator.Card) {
	for i := range n {
		out = append(out, emulator.Card{Total: int64(64+16*(n-i)) << 20, Launch: 50 + slowest*int64(i)/int64(n-1)})
	}
	return out
}

// TestTwoUnequalCards: each card gets what it can finish, and neither has nothing
// to do while a job waits: where the slow one has room for one job, and where it has
// room for more, but would not be done with them before the fast one.
func TestTwoUnequalCards(t *testing.T) {
	id := curve.BN254
	k := key(t, id, 8, 4, keyKinds["coset folded"])
	y := openYard(t, id, emulator.Config{Cards: cards(2, 12000)})
	for _, room := range [][]int{{4, 1}, {4, 4}} {
		y.waits, y.placed, y.second, y.most = 0, make([]int, 2), make([]int, 2), map[string]int{}
		y.prove(t, k, 16, room, 0)
		if 2*y.placed[0] < 3*y.placed[1] || y.placed[1] == 0 {
			t.Errorf("the fast card had %d jobs, the slow one %d", y.placed[0], y.placed[1])
		}
		if y.second[1] > 1 || y.second[0] == 0 {
			t.Errorf("the slow card had %d jobs beside others, which the fast one would have finished sooner", y.second[1])
		}
	}
}

// TestEightUnequalCards: the same of eight, of which one is lost in the middle.
func TestEightUnequalCards(t *testing.T) {
	id := curve.BN254
	k := key(t, id, 8, 4, keyKinds["coset folded"])
	y := openYard(t, id, emulator.Config{NoRevival: true, Cards: cards(8, 3000)})
	const jobs, at = 40, 12
	out, report := y.prove(t, k, jobs, []int{3, 3, 3, 2, 2, 1, 1, 1}, 1, strike(stages.NameHMSM, at, "kernel", 700))
	if emulator.Clear() != 0 || len(report.Notes) != 1 {
		t.Fatalf("lost: %q", report.Notes)
	}
	gone := slices.IndexFunc(y.engines, func(e *Engine) bool { return e.Lost() != nil })
	again := 0
	for i, r := range out {
		if r.Attempts > 1 {
			again++
		}
		if i > at+int(report.PeakInFlight)+1 && r.On == y.engines[gone].Name() {
			t.Errorf("proof %d is made on %s, which is lost", i, r.On)
		}
		if r.On == host(t, id).Name() {
			t.Errorf("proof %d is made on the CPU, with cards left", i)
		}
	}
	if again == 0 {
		t.Error("nothing was made again")
	}
	for i, n := range y.placed {
		if n == 0 {
			t.Errorf("card %d had no job", i)
		}
	}
	// What the others copy through is their own: it is page-locked still.
	s, err := emulator.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if s.Pageable != 0 {
		t.Errorf("%d copies were of memory that is page-locked no more", s.Pageable)
	}
	for i, c := range s.Cards {
		if i != gone && c.PinnedBlocks+c.Registrations == 0 {
			t.Errorf("card %d has no page-locked memory of its own", i)
		}
	}
	// Of those that worked to the end: which card is lost depends on the order.
	fast, slow := 0, 7
	switch gone {
	case fast:
		fast = 1
	case slow:
		slow = 6
	}
	if y.placed[fast] <= y.placed[slow] {
		t.Errorf("the fastest card had %d jobs, the slowest %d", y.placed[fast], y.placed[slow])
	}
}
