package main

import (
	"fmt"

	"github.com/snarkline/snarkline/gpu"
)

// deviceFlags say which processors prove. They are flags of every command, so
// that a settings file has them in one place.
type deviceFlags struct {
	Device       gpu.Devices `group:"device" default:"auto" env:"SNARKLINE_DEVICE" placeholder:"auto|cpu|cuda:N,…|all" help:"Where to prove: auto (default) is the CUDA cards that work, else the CPU; cuda:0,cuda:1 are these cards or an error; all is every card; cpu is none."`
	DeviceMemory byteSize    `group:"device" placeholder:"SIZE" help:"Memory that may be used of each card, such as 16GiB (default: what is free but for 512 MiB)."`
	B2           string      `group:"device" name:"b2" enum:"auto,cpu,device" default:"auto" placeholder:"auto|cpu|device" help:"Which processor makes the sum of b_g2_msm: auto (default) measures both and chooses for each proof."`
	NoElsewhere  bool        `group:"device" help:"Do not make a proof again on the CPU that a card failed at or got wrong."`
}

// check finds flags that contradict each other.
func (f *deviceFlags) check() error {
	if !f.Device.Wanted() && f.B2 == "device" {
		return usagef("--b2 device needs a card, and --device cpu uses none")
	}
	return nil
}

// all reports whether every card is asked for, whichever these are.
func (f *deviceFlags) all() bool { return f.Device.String() == gpu.All.String() }

// unusable is the error for cards that were asked for by name.
func (f *deviceFlags) unusable(err error) error {
	return usagef("--device %v: %w (`snarkline devices` says what there is)", f.Device, err)
}

// tooLittle is that for cards with too little memory.
func (f *deviceFlags) tooLittle(err error) error {
	return &codedError{codeMemory, fmt.Errorf("--device %v: %w", f.Device, err)}
}
