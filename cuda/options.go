package cuda

import (
	"fmt"
	"math/big"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// Transfer says how host memory that is not page-locked gets to a card.
type Transfer uint8

// The ways.
const (
	// Bounced memory is copied into page-locked buffers, and from there.
	Bounced Transfer = iota
	// Registered memory is page-locked itself for the time of the copy. What
	// cannot be registered is bounced. Only buffers of package alloc are
	// registered: other memory may be of Go's heap.
	Registered
)

// String is "bounced" or "registered".
func (t Transfer) String() string {
	if t == Registered {
		return "registered"
	}
	return "bounced"
}

type options struct {
	streams  int
	margin   int64 // below 0: as the card has it
	keys     int64 // most bytes of keys on the card; below 0: what fits
	chunk    int64
	pieces   int64 // buffers that a piece of a streamed key may take
	transfer Transfer
	packFrom int // fewest scalars that are worth packing; 0: none

	unguarded unguarded
}

// unguarded takes protections away, so that tests can show what each is for.
type unguarded struct {
	hold   bool // host buffers are not held until their copies are done
	late   bool // b and c stay until the call has ended, and the one after it
	status bool // errors of a stream's end are not looked at
	sync   bool // the host waits for each piece of a streamed key
	trim   bool // pools are not trimmed when memory is short
	reset  bool // the device is not reset after a sticky error
	leak   bool // what failed calls had taken is not freed
	parts  bool // no protection: quotients are made in parts wherever they can be
}

func defaults() options {
	return options{streams: 6, margin: -1, keys: -1, chunk: 32 * alloc.MiB, pieces: 8, transfer: Bounced, packFrom: 1 << 14}
}

func (o *options) check() error {
	switch {
	case o.streams < 1 || o.streams > 64:
		return fmt.Errorf("%d streams (1 to 64 are possible)", o.streams)
	case o.chunk < 4096 || o.chunk > alloc.GiB:
		return fmt.Errorf("pieces of %d bytes (4 KiB to 1 GiB are possible)", o.chunk)
	}
	return nil
}

// Option sets how an Engine works.
type Option func(*options)

// Streams sets how many operations run side by side; 6 by default, one for each
// stage of a proof that computes on the card: none waits for another's to end.
// They share the card's memory in any case.
func Streams(n int) Option { return func(o *options) { o.streams = n } }

// Margin sets the device memory that is kept back for the driver and for
// others. It is the card's: gpu.DefaultMargin unless an engine sets it.
func Margin(bytes int64) Option { return func(o *options) { o.margin = max(bytes, 0) } }

// KeyMemory bounds the device memory that Keep may fill; 0 keeps nothing there.
// By default it is what jobs leave.
func KeyMemory(bytes int64) Option { return func(o *options) { o.keys = max(bytes, 0) } }

// Chunk sets the size that the page-locked buffers which host memory is copied
// through have at most; 32 MiB by default. There are two for each stream and two
// for each of the two uploaders, of vectors and of witnesses: 512 MiB with six
// streams. They are made, and grow, as copies need them.
// The pieces in which points come that are not kept on the card are up to eight
// times as large, where the card is.
func Chunk(bytes int64) Option { return func(o *options) { o.chunk = bytes } }

// Transfers sets how vectors get to the card; Bounced by default.
func Transfers(t Transfer) Option { return func(o *options) { o.transfer = t } }

// Packing sets whether vectors that go through page-locked buffers are packed on
// the way, where they are mostly 0, 1 and 2 or −1. They are, unless it is switched
// off.
func Packing(on bool) Option {
	return func(o *options) {
		o.packFrom = 0
		if on {
			o.packFrom = defaults().packFrom
		}
	}
}

func montgomeryOne(id curve.ID) *big.Int {
	one := new(big.Int).Lsh(big.NewInt(1), 256)
	return one.Mod(one, id.ScalarModulus())
}
