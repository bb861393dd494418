package main

import (
	"fmt"

	"github.com/snarkline/snarkline/live"
)

// cards says which cards the run that is watched may use.
func (w *watching) cards(p *processors) {
	if w == nil || p == nil {
		return
	}
	var devices []live.Device
	for _, c := range p.cards {
		devices = append(devices, live.Device{Name: fmt.Sprint(c.card), Model: c.info.Name, Space: c.card.Space(), Memory: c.info.Total})
	}
	w.state.SetDevices(devices)
}
