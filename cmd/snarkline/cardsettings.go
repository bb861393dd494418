package main

import (
	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// cardStages are the workers of the stages when n cards prove. The stages that
// compute on a card get one for each card; those whose jobs wait for uploads get
// two, so that the card has work meanwhile; and synthesize, which is the host's,
// gets two, since the card would wait for it.
func cardStages(n int) map[string]pipeline.StageSetting {
	return map[string]pipeline.StageSetting{
		stages.NameSynthesize: {Workers: 2},
		stages.NameNTT:        {Workers: n},
		stages.NameHMSM:       {Workers: n},
		stages.NameTailMSM:    {Workers: n},
		stages.NameBatchAdd:   {Workers: 2 * n},
		stages.NameBG2MSM:     {Workers: 2 * n},
	}
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
	own := cardStages(len(p.cards))
	for _, name := range except {
		delete(own, name)
	}
	return base.Merge(pipeline.Settings{Stages: own})
}

// budgets puts the memory of the cards under what settings say: what is free
// there, but for the margin. A job that needs more at its largest is let in
// alone, since the engine cuts its operations to what there is.
func (p *processors) budgets(settings pipeline.Settings) pipeline.Settings {
	room := map[alloc.Space]int64{}
	for _, c := range p.cards {
		room[c.card.Space()] = max(c.room, c.need, 1)
	}
	return cardBudgets(settings, room)
}

// cardBudgets is settings over those budgets.
func cardBudgets(settings pipeline.Settings, room map[alloc.Space]int64) pipeline.Settings {
	base := pipeline.Settings{Budget: map[string]pipeline.Size{}}
	for space, n := range room {
		base.Budget[space.String()] = pipeline.Size(n)
	}
	return base.Merge(settings)
}
