package plan

import "github.com/snarkline/snarkline/alloc"

// Machine is what a run has for itself.
type Machine struct {
	// Cores is how many cores there are; 0 is as many as are asked for.
	Cores float64
	// Memory is what there is by space: a run that needs more is killed. 0 is no
	// limit. Where Memory names no pinned memory of its own, as it should not,
	// pinned bytes count in host memory too.
	Memory alloc.Amount
	// Base is taken all the time, by keys, tables and programs. It counts against
	// Memory, not against a budget.
	Base    alloc.Amount
	Links   []Link
	Devices []Device
}

// Link is what carries bytes, such as a PCIe slot. Transfers at the same time
// share it equally.
type Link struct {
	Name           string
	BytesPerSecond float64
}

// Device is an accelerator. Devices of the same name are alike: a step that asks
// for one by that name takes one that is free, or that fewest steps are on.
//
// Those of a pool are for items: an item gets one of them when it is admitted, the
// one that would be done with it first by their speeds and the items that they have,
// among those with a place and with room in the budget of their memory. All its steps
// that ask for the pool, by the pool's name, run there, and what the costs put into
// the memory of the pool's first device is in the memory of that one.
type Device struct {
	Name   string
	Space  alloc.Space // of its memory
	Link   string      // that its steps' LinkBytes go over where they name none
	Speed  float64     // 1 is as measured, 2 twice as fast; 0 is taken as 1
	Pool   string      // that it is of; empty: none
	Places int         // items that it has at once, in a pool; 0: as many as come
	Width  float64     // steps that it does at once as fast as one; 0 is taken as 1
}
