package main

import (
	"fmt"

	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// setting is one row.
type setting struct {
	name     string
	settings pipeline.Settings
}

// shapes are workers and capacities. "all" stands for every stage.
var shapes = []struct {
	name string
	set  func(s map[string]pipeline.StageSetting)
}{
	{"as it stands", func(map[string]pipeline.StageSetting) {}},
	{"b_g2_msm cap 1", one(stages.NameBG2MSM, 1, 1)},
	{"all 1×2", every(1, 2)},
	{"all 1×8", every(1, 8)},
	{"all 2×1", every(2, 1)},
	{"all 4×1", every(4, 1)},
	{"all 3×4", every(3, 4)},
	{"synthesize 4, all cap 1", func(s map[string]pipeline.StageSetting) {
		every(1, 1)(s)
		one(stages.NameSynthesize, 4, 1)(s)
	}},
	{"batch-add 4, tail-msm ×8", func(s map[string]pipeline.StageSetting) { // what batch-add has picked piles up
		one(stages.NameBatchAdd, 4, 4)(s)
		one(stages.NameTailMSM, 1, 8)(s)
	}},
	{"synthesize 2, prestage ×8, h-msm 2, assemble 3", func(s map[string]pipeline.StageSetting) {
		one(stages.NameSynthesize, 2, 1)(s)
		one(stages.NamePrestage, 1, 8)(s)
		one(stages.NameHMSM, 2, 2)(s)
		one(stages.NameAssemble, 3, 4)(s)
	}},
}

func one(stage string, workers, capacity int) func(map[string]pipeline.StageSetting) {
	return func(s map[string]pipeline.StageSetting) {
		s[stage] = pipeline.StageSetting{Workers: workers, Capacity: pipeline.Count(capacity)}
	}
}

func every(workers, capacity int) func(map[string]pipeline.StageSetting) {
	return func(s map[string]pipeline.StageSetting) {
		for _, name := range stages.Names() {
			one(name, workers, capacity)(s)
		}
	}
}

// budgets are in tenths of what an item needs at its largest; 0: none.
var budgets = []int64{0, 20, 45}

// settings are all shapes with all budgets. need is in bytes.
func settings(need int64) (all []setting) {
	for _, b := range budgets {
		for _, sh := range shapes {
			s := setting{name: sh.name + ", no budget", settings: pipeline.Settings{Stages: make(map[string]pipeline.StageSetting)}}
			sh.set(s.settings.Stages)
			if b > 0 {
				s.name = fmt.Sprintf("%s, budget of %.1f items", sh.name, float64(b)/10)
				s.settings.Budget = map[string]pipeline.Size{"host": pipeline.Size(need * b / 10)}
			}
			all = append(all, s)
		}
	}
	return all
}
