package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// tally counts what was proved where.
type tally struct {
	mu    sync.Mutex
	on    map[string]int            // proofs by the processor of their stages
	b2    map[string]int            // proofs by the processor of b_g2_msm
	tiers map[string]map[string]int // of a card: proofs by tier
	again int                       // attempts that were made anew
}

// count notes a finished proof.
func (t *tally) count(r *stages.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.on == nil {
		t.on, t.b2, t.tiers = map[string]int{}, map[string]int{}, map[string]map[string]int{}
	}
	t.on[r.On]++
	t.b2[r.B2On]++
	if tier := tierOf(r.Staged); tier != "" {
		if t.tiers[r.On] == nil {
			t.tiers[r.On] = map[string]int{}
		}
		t.tiers[r.On][tier]++
	}
}

// repeat notes that a job is made again.
func (t *tally) repeat() {
	t.mu.Lock()
	t.again++
	t.mu.Unlock()
}

// tierOf is "tier 1 of 3" of "cuda:0, tier 1 of 3: a and b (…) …", or nothing.
func tierOf(staged string) string {
	_, rest, ok := strings.Cut(staged, ", tier ")
	if !ok {
		return ""
	}
	tier, _, _ := strings.Cut(rest, ":")
	return "tier " + tier
}

// processorsReport is what --json and --report say of the processors. Bytes are
// whole numbers.
type processorsReport struct {
	Device    string         `json:"device"` // "cuda:0", "cuda:0+cuda:1" or "cpu"
	Cards     []cardReport   `json:"cards"`  // that proved; empty on the CPU
	Refused   []string       `json:"refused,omitempty"`
	ProofsOn  map[string]int `json:"proofs_on"`   // by the processor of the stages
	B2On      map[string]int `json:"b_g2_msm_on"` // by that of b_g2_msm
	MadeAgain int            `json:"made_again"`  // attempts after the first ones
	Pinned    int64          `json:"pinned_peak_bytes"`
}

// cardReport is about one card.
type cardReport struct {
	Device     string             `json:"device"`
	Name       string             `json:"name"`
	UUID       string             `json:"uuid"`
	Capability string             `json:"compute_capability"`
	Total      int64              `json:"total_bytes"`
	Free       int64              `json:"free_bytes"`     // before the key came
	Margin     int64              `json:"margin_bytes"`   // of it, kept back
	Key        int64              `json:"key_bytes"`      // of the key's points
	Resident   int64              `json:"resident_bytes"` // of them, on the card
	Jobs       int64              `json:"jobs_bytes"`     // left for jobs
	Tier       string             `json:"tier"`           // of the first job, foretold
	Tiers      map[string]int     `json:"tiers"`          // proofs by tier
	Peak       int64              `json:"peak_bytes"`     // of device memory, keys included
	KeyUp      int64              `json:"key_up_bytes"`   // over PCIe, to bring the key
	Up         int64              `json:"up_bytes"`       // over PCIe, to the card, while proving
	Down       int64              `json:"down_bytes"`     // and back
	Resets     int                `json:"resets"`
	Proofs     int                `json:"proofs"`                      // whose stages ran there
	Failed     int64              `json:"failed,omitempty"`            // attempts that ended there without one; of several cards only
	AtOnce     int                `json:"jobs_at_once,omitempty"`      // at most; of several cards only
	Busy       float64            `json:"busy_seconds,omitempty"`      // while a stage worked there; of several cards only
	Utilised   float64            `json:"busy_share,omitempty"`        // of the run's time
	Each       float64            `json:"seconds_per_proof,omitempty"` // measured at the end, by which jobs were shared out
	Lost       string             `json:"lost,omitempty"`              // why the process cannot use it any more
	Operations []cuda.MethodStats `json:"operations"`
}

// report is what the processors did, after a run.
func (p *processors) report(memory alloc.Snapshot, seconds float64) *processorsReport {
	if p == nil {
		return nil
	}
	t := &p.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &processorsReport{Device: "cpu", Cards: []cardReport{}, Refused: p.refuse,
		ProofsOn: t.on, B2On: t.b2, MadeAgain: t.again, Pinned: pinnedPeak(memory)}
	var names []string
	var worked []gpu.BalanceStats
	if p.set != nil {
		worked = p.set.Balance().Stats()
	}
	for i, c := range p.cards {
		s := c.engine.Stats()
		names = append(names, s.Device)
		r.Cards = append(r.Cards, cardReport{
			Device: s.Device, Name: c.info.Name, UUID: c.info.UUID, Capability: capability(c.info), Total: c.info.Total,
			Free: c.free, Margin: c.margin, Key: c.keyBytes, Resident: c.resident, Jobs: c.room,
			Tier: c.tier.String(), Tiers: t.tiers[s.Device], Peak: memory.Space(c.card.Space()).Peak,
			KeyUp: c.keyUp, Up: s.Up - c.keyUp, Down: s.Down, Resets: s.Resets, Lost: s.Lost, Operations: s.Methods,
			Proofs: t.on[s.Device],
		})
		if worked != nil {
			b, r := worked[i], &r.Cards[i]
			r.Failed, r.AtOnce, r.Busy, r.Each = b.Given, b.Most, b.Busy.Seconds(), b.Each.Seconds()
			r.Utilised = b.Busy.Seconds() / max(seconds, 1e-9)
		}
	}
	if names != nil {
		r.Device = strings.Join(names, "+")
	}
	return r
}

func capability(i gpu.Info) string { return fmt.Sprintf("%d.%d", i.Major, i.Minor) }

// attemptText is why an attempt at a proof ended, and where.
func attemptText(err error) string {
	var wrong *stages.VerifyError
	if errors.As(err, &wrong) {
		s := "the proof made on " + wrong.On
		if wrong.B2On != wrong.On {
			s += " (b_g2_msm on " + wrong.B2On + ")"
		}
		return s + " does not verify"
	}
	var stage *pipeline.StageError
	if errors.As(err, &stage) {
		return stage.Stage + ": " + stage.Err.Error()
	}
	return err.Error()
}

// lastAttempt is the error of the last attempt at a job: those before have been
// told when they ended.
func lastAttempt(err error) error {
	var all *pipeline.AttemptsError
	if errors.As(err, &all) && len(all.Errs) > 0 {
		return all.Errs[len(all.Errs)-1]
	}
	return err
}

// attempts is how often the job was made that failed with err, and why each
// attempt but the last ended; 0 for a job of which no stage has failed.
func attempts(err error) (n int, again []error) {
	var all *pipeline.AttemptsError
	if errors.As(err, &all) && len(all.Errs) > 0 {
		return len(all.Errs), all.Errs[:len(all.Errs)-1]
	}
	var stage *pipeline.StageError
	if errors.As(err, &stage) {
		return 1, nil
	}
	return 0, nil
}

// advised adds to an error of a card's memory what can be done about it.
func advised(text string, err error) string {
	if !errors.Is(err, gpu.ErrNoMemory) {
		return text
	}
	return text + " (fewer items at once, as with --budget or --set STAGE.workers=1, a larger --device-memory, or --device cpu may help)"
}

// lines are what stands of the cards below the table of the stages.
func (r *processorsReport) lines(line func(label, format, value string, args ...any)) {
	if r == nil || len(r.Cards) == 0 {
		return
	}
	for _, c := range r.Cards {
		line(c.Device+", key points", "(resident, of %s)", sizeText(c.Resident), sizeText(c.Key))
		if len(r.Cards) > 1 {
			line(c.Device+", proofs", "(%s, at work %.0f%% of the time; %s at most)", fmt.Sprint(c.Proofs), eachText(c.Each), 100*c.Utilised, sizeText(c.Peak))
		}
		line(c.Device+", over PCIe", "(to the card; %s back; the key before that: %s)", sizeText(c.Up), sizeText(c.Down), sizeText(c.KeyUp))
	}
	if len(r.Cards) > 1 {
		line("proofs made on", "", onText(r.ProofsOn))
	}
	line("b_g2_msm made on", "", onText(r.B2On))
	if r.MadeAgain > 0 {
		line("made again", "(attempts beyond the first ones)", fmt.Sprint(r.MadeAgain))
	}
}

// onText is "cpu 3, cuda:0 5".
func onText(n map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, n[name]))
	}
	return strings.Join(parts, ", ")
}

// eachText is "118 ms each", or that none was made.
func eachText(seconds float64) string {
	if seconds == 0 {
		return "none measured"
	}
	return fmt.Sprintf("%v each", time.Duration(seconds*float64(time.Second)).Round(100*time.Microsecond))
}
