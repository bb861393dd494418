package live

import (
	"cmp"
	"slices"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// Device is a card that a run may use.
type Device struct {
	Name   string      // "cuda:0"
	Model  string      // "NVIDIA H200"
	Space  alloc.Space // its memory
	Memory int64       // bytes; 0: not known
}

// DeviceLevel is a card at one moment.
type DeviceLevel struct {
	Name   string   `json:"name"`
	Model  string   `json:"model,omitempty"`
	Space  string   `json:"space"`
	Memory int64    `json:"memory,omitempty"`
	Live   int64    `json:"live"`      // of items
	Kept   int64    `json:"kept"`      // of keys, there before the run
	Limit  int64    `json:"limit"`     // of the budget; 0: none
	Count  int      `json:"in_flight"` // items that are on it
	Items  []string `json:"items"`     // their names, the oldest first, at most 8
	Done   int64    `json:"done"`      // items that have left it
}

// cardItems is how many items of a card are named.
const cardItems = 8

// SetDevices says which cards the run may use, when that is learned late.
func (s *State) SetDevices(devices []Device) {
	s.mu.Lock()
	s.devices, s.doneOn = slices.Clone(devices), make([]int64, len(devices))
	s.mu.Unlock()
}

// deviceOf is the card of a space, −1 if there is none.
func (s *State) deviceOf(space alloc.Space) int {
	return slices.IndexFunc(s.devices, func(d Device) bool { return d.Space == space })
}

// onCard notes on which card an item is: where a call of it was made last. A card is
// known by the end of the first call there.
func (s *State) onCard(it *item, e *pipeline.Event) {
	if e.Device != alloc.Host {
		it.on = e.Device
	}
}

// offCard counts an item that has left its card.
func (s *State) offCard(it *item) {
	if it.on == alloc.Host {
		return
	}
	if i := s.deviceOf(it.on); i >= 0 {
		s.doneOn[i]++
	}
}

// devicesOf fills the cards in.
func (s *State) devicesOf(snap *Snapshot, r *pipeline.Report) {
	snap.Devices = []DeviceLevel{}
	for i, d := range s.devices {
		l := DeviceLevel{Name: d.Name, Model: d.Model, Space: d.Space.String(), Memory: d.Memory, Kept: s.opt.Base[d.Space], Done: s.doneOn[i], Items: []string{}}
		l.Live = max(r.Live[d.Space]-l.Kept, 0)
		if r.Budget != nil {
			l.Limit = r.Budget.Limit[d.Space]
		}
		var on []*item
		for _, it := range s.items {
			if it.on == d.Space {
				on = append(on, it)
			}
		}
		slices.SortFunc(on, func(a, b *item) int {
			return cmp.Or(cmp.Compare(a.admitted, b.admitted), cmp.Compare(a.key.Job, b.key.Job), cmp.Compare(a.key.Part, b.key.Part))
		})
		l.Count = len(on)
		for _, it := range on[:min(len(on), cardItems)] {
			l.Items = append(l.Items, s.nameOf(it.key))
		}
		snap.Devices = append(snap.Devices, l)
	}
}
