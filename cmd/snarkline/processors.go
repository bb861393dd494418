package main

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/cuda"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// processors are what an invocation proves on: cards, or the CPU alone.
type processors struct {
	a      *app
	driver *cuda.Driver // nil where no card is used
	picked []*cuda.Card // what --device asks for, before a key is known
	cards  []*onCard    // that prove
	refuse []string     // why cards that are there do not
	set    *stages.Set  // of cards, where there are several
	tally  tally
}

// onCard is a card at work.
type onCard struct {
	card   *cuda.Card
	engine *cuda.Engine
	info   gpu.Info
	free   int64 // before the key came
	margin int64 // kept back

	bounded bool // by --device-memory
	told    bool // that it is lost; under tally.mu
	placement
}

// openProcessors looks for the cards that --device asks for. Where it asks by
// name and they cannot be used, that is an error; else the CPU is what is left.
func (a *app) openProcessors() (*processors, error) {
	p := &processors{a: a}
	f := &a.flags.deviceFlags
	if err := f.check(); err != nil {
		return nil, err
	}
	if !f.Device.Wanted() {
		return p, nil
	}
	drv, err := cuda.Open("")
	if err != nil {
		if f.Device.Required() {
			return nil, f.unusable(err)
		}
		if cardThere(err) {
			p.refuse = append(p.refuse, err.Error())
		}
		return p, nil
	}
	p.driver = drv
	there, err := f.Device.Of(drv.Devices())
	if err != nil {
		p.close()
		return nil, f.unusable(err)
	}
	for _, dev := range there {
		if c, ok := dev.(*cuda.Card); ok {
			p.picked = append(p.picked, c)
		}
	}
	return p, nil
}

// close gives the cards back, after the key is closed, whose points may be there.
func (p *processors) close() {
	if p == nil {
		return
	}
	for _, c := range p.cards {
		c.close()
	}
	if p.driver != nil {
		if err := p.driver.Close(); err != nil && p.a.flags.Debug {
			p.a.messagef("close the cards: %v", err)
		}
	}
	p.cards, p.driver = nil, nil
}

func (c *onCard) close() {
	if c.engine != nil {
		_ = c.engine.Close() // what a card that failed last cannot give back is gone with the process
	}
}

// take makes the cards prove for prover, whose arithmetic is the CPU's until
// then, and brings its key there. total is the number of jobs, below 0 if
// unknown: auto takes no more cards than there are jobs.
func (p *processors) take(prover *stages.Prover, total int) error {
	f := &p.a.flags.deviceFlags
	host, err := cpu.New(prover.Key.Curve, cpu.Workers(hostWorkers(runtime.GOMAXPROCS(0))))
	if err != nil {
		return fmt.Errorf("the host's arithmetic beside a card: %w", err)
	}
	for _, card := range p.picked {
		c, err := p.start(card, prover.Key, host)
		if err == nil {
			p.cards = append(p.cards, c)
			continue
		}
		switch {
		case f.Device.Required() && !f.all():
			if errors.Is(err, gpu.ErrNoMemory) {
				return f.tooLittle(err)
			}
			return f.unusable(err)
		default:
			p.refuse = append(p.refuse, err.Error())
		}
	}
	if len(p.cards) == 0 {
		if f.Device.Required() {
			return f.tooLittle(errors.New(strings.Join(p.refuse, "; ")))
		}
		return nil
	}
	if !f.Device.Required() && total > 0 && total < len(p.cards) {
		p.fewer(total)
	}
	return p.join(prover, host)
}

// fewer keeps the n cards with the most free memory.
func (p *processors) fewer(n int) {
	slices.SortStableFunc(p.cards, func(a, b *onCard) int {
		switch {
		case a.free > b.free:
			return -1
		case a.free < b.free:
			return 1
		}
		return 0
	})
	for _, c := range p.cards[n:] {
		c.close()
	}
	p.cards = p.cards[:n]
}

// start makes an engine on a card if there is room for the vectors of a job.
func (p *processors) start(card *cuda.Card, key *groth16.ProvingKey, host *cpu.Engine) (c *onCard, err error) {
	c = &onCard{card: card, info: card.Info(), margin: gpu.DefaultMargin}
	var total int64
	if c.free, total, err = card.Memory(); err != nil {
		return nil, fmt.Errorf("%v (%s): %w", card, c.info.Name, err)
	}
	if want := int64(p.a.flags.DeviceMemory); want > 0 {
		c.margin, c.bounded = max(c.margin, c.free-want), true
	}
	if c.engine, err = cuda.New(card, key.Curve, host, cuda.Margin(c.margin)); err != nil {
		return nil, fmt.Errorf("%v (%s): %w", card, c.info.Name, err)
	}
	// The quotient is made of all vectors at once; whatever else a job needs is
	// cut to what there is.
	n := c.engine.Needs(key.Load())
	need := n.A[card.Space()] + n.BC[card.Space()]
	if room := c.free - c.margin; room < need {
		c.close()
		return nil, fmt.Errorf("%v (%s): %w: the vectors of one proof are %s, and %s may be used (%s of %s are free, %s stay so)",
			card, c.info.Name, gpu.ErrNoMemory, sizeText(need), sizeText(room), sizeText(c.free), sizeText(total), sizeText(c.margin))
	}
	return c, nil
}

// join makes the cards the prover's arithmetic, with host beside them. Elsewhere
// is what it had, with all of the CPU: what comes there no card is busy with.
func (p *processors) join(prover *stages.Prover, host *cpu.Engine) error {
	err := p.settle(func(c *onCard) error { return p.ask(c, prover, host) })
	if err != nil || len(p.cards) == 0 {
		return err
	}
	ar, err := p.arithmetic()
	if err != nil {
		return err
	}
	if err := p.keep(prover, ar, host); err != nil {
		return err
	}
	before := len(p.cards)
	if err := p.settle(func(c *onCard) error { return p.place(c, prover) }); err != nil || len(p.cards) == 0 {
		return err
	}
	if len(p.cards) < before { // lost, with what was kept there
		if ar, err = p.arithmetic(); err != nil {
			return err
		}
	}
	if !p.a.flags.NoElsewhere {
		prover.Elsewhere = []groth16.Arithmetic{prover.Arith}
	}
	prover.Arith, prover.B2 = ar, p.forB2(ar, host)
	return nil
}

// forB2 is where the sum of b_g2_msm is made if the other stages run on ar.
func (p *processors) forB2(ar groth16.Arithmetic, host *cpu.Engine) groth16.Arithmetic {
	switch p.a.flags.B2 {
	case "cpu":
		return host
	case "device":
		return nil
	}
	return stages.Either(ar, host)
}

// arithmetic is that of all cards together.
func (p *processors) arithmetic() (groth16.Arithmetic, error) {
	p.set = nil
	if len(p.cards) == 1 {
		return p.cards[0].engine, nil
	}
	var members []groth16.Arithmetic
	for _, c := range p.cards {
		members = append(members, c.engine)
	}
	settings, err := p.a.flags.settings(pipeline.Settings{}, true)
	if err != nil {
		return nil, err
	}
	p.set, err = stages.SpreadOptions{Lanes: cardLanes(settings, len(members))}.Spread(members...)
	return p.set, err
}
