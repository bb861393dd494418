package main

import (
	"fmt"
	"strings"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// cardStages are the workers of the stages when a card proves. The stages that
// compute on it get one; those whose jobs wait for uploads get two, so that the
// card has work meanwhile; and synthesize, which is the host's, gets two, since the
// card would wait for it.
func cardStages() map[string]pipeline.StageSetting {
	out := map[string]pipeline.StageSetting{stages.NameSynthesize: {Workers: 2}}
	for name, n := range stages.DefaultLanes() {
		if n > 1 || name != stages.NamePrestage {
			out[name] = pipeline.StageSetting{Workers: n}
		}
	}
	return out
}

// cardsStages is cardStages for the n cards of a set. What the stages of a card
// have at once is the set's to say there: they have a worker for every job that may
// come, so that none of one card waits for those of another.
func cardsStages(set *stages.Set) map[string]pipeline.StageSetting {
	n := len(set.Members())
	out := map[string]pipeline.StageSetting{stages.NameSynthesize: {Workers: 2 * n}, stages.NameAssemble: {Workers: min(n, 4)}}
	for name := range stages.DefaultLanes() {
		out[name] = pipeline.StageSetting{Workers: set.SetWorkers()}
	}
	return out
}

// cardLanes shares the workers that settings ask for out among n cards.
func cardLanes(settings pipeline.Settings, n int) map[string]int {
	out := map[string]int{}
	for name := range stages.DefaultLanes() {
		if w := settings.Stages[name].Workers; w > 0 {
			out[name] = (w + n - 1) / n
		}
	}
	return out
}

// hostWorkers is on how many of n processors the host's arithmetic computes when
// cards prove: the others bring vectors to them.
func hostWorkers(n int) int { return max(n-n/4, 1) }

// suited is base with the workers that suit the cards in place of its own, but
// for those of the stages in except.
func (p *processors) suited(base pipeline.Settings, except ...string) pipeline.Settings {
	if len(p.cards) == 0 {
		return base
	}
	own := cardStages()
	if p.set != nil {
		own = cardsStages(p.set)
	}
	for _, name := range except {
		delete(own, name)
	}
	return base.Merge(pipeline.Settings{Stages: own})
}

// shared is settings in which the stages of a set's cards have a worker for every
// job: what was asked for is shared out among the cards as lanes.
func (p *processors) shared(settings pipeline.Settings) pipeline.Settings {
	if p.set == nil {
		return settings
	}
	all := pipeline.Settings{Stages: map[string]pipeline.StageSetting{}}
	for name, s := range cardsStages(p.set) {
		if settings.Stages[name].Workers > 0 && stages.DefaultLanes()[name] > 0 {
			all.Stages[name] = s
		}
	}
	return settings.Merge(all)
}

// tellFew says which stages of a --pipeline have so few workers that proofs on one
// card of several wait for those on another.
func (p *processors) tellFew(g *pipeline.Graph) {
	if p.set == nil {
		return
	}
	n := p.set.SetWorkers()
	var few []string
	for _, name := range stages.Names() {
		if w := g.Workers(name); stages.DefaultLanes()[name] > 0 && w > 0 && w < n {
			few = append(few, fmt.Sprintf("%s has %d", name, w))
		}
	}
	if len(few) > 0 {
		p.a.notef("proofs on one card may wait for those on another: %s; with %d workers for each of these stages, or --set %s.workers=1 for one proof a card there, they do not",
			strings.Join(few, ", "), n, strings.Fields(few[0])[0])
	}
}

// budgets puts the memory of the cards under what settings say: what is free
// there, but for the margin. A job that needs more at its largest is let in
// alone, since the engine cuts its operations to what there is.
func (p *processors) budgets(settings pipeline.Settings) pipeline.Settings {
	room := map[alloc.Space]int64{}
	for _, c := range p.cards {
		room[c.card.Space()] = max(c.room, c.need, 1)
	}
	return cardBudgets(p.shared(settings), room)
}

// cardBudgets is settings over those budgets.
func cardBudgets(settings pipeline.Settings, room map[alloc.Space]int64) pipeline.Settings {
	base := pipeline.Settings{Budget: map[string]pipeline.Size{}}
	for space, n := range room {
		base.Budget[space.String()] = pipeline.Size(n)
	}
	return base.Merge(settings)
}
