package plan

import (
	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// Costs are what a simulation knows of the work: the machine, and what an item
// costs in each node. They come from a recording, from a model file (ReadModel),
// or from code.
type Costs struct {
	Machine Machine
	Nodes   map[string]Node // by node name; one that is missing costs nothing
	Items   []Class         // kinds of items; empty: all are alike
}

// Node is what one item costs in one node.
type Node struct {
	Steps   []Step   // one after another
	Makes   []Buffer // live from From in the call until their last reader is done
	Scratch []Buffer // live from From until Until within the call
	// Need is what the stage states for admission. Where it is zero it follows from
	// Makes and Scratch: all of the scratch at once, a part for each buffer, and its
	// readers as those that end it.
	Need pipeline.Need
	// Fails is the chance, from 0 to 1, that a call ends with an error that says
	// that trying again may help.
	Fails float64
	// Lanes is how many calls of the node one device of a pool has at once; 0: as many
	// as there are workers. With several devices there are as many workers as items
	// come, and a setting of workers is shared out among the devices as lanes.
	Lanes int
}

// Step is a part of a call that uses the same things from its beginning to its
// end. Its Seconds and its LinkBytes run side by side: it ends when both are done.
type Step struct {
	Name    string
	Seconds float64 // alone on the machine
	// Spread is σ of the lognormal factor, of mean 1, by which Seconds differ from
	// item to item; 0: not at all.
	Spread float64
	// Cores is how many cores it keeps busy. While more cores are asked for than
	// there are, all who ask are slowed by the same factor.
	Cores float64
	// Device is the name of the one that it runs on; empty: none. An exclusive step
	// has the device for itself, in order of asking, and an exclusive step behind it
	// goes on with the same one; others share its speed equally.
	Device    string
	Exclusive bool
	Link      string // over which LinkBytes go; empty: the device's
	LinkBytes int64
}

// Buffer is memory that a call takes. Fractions of a call are of its Seconds as
// stated, over all steps: with steps of 3 s and 1 s, 0.75 is where the second
// begins, whatever they take in the end.
type Buffer struct {
	Name    string
	Space   alloc.Space
	Bytes   int64
	From    float64  // 0: with the call
	Until   float64  // of scratch: its end; 0 is taken as 1
	Readers []Reader // of what a node makes; empty: all direct consumers, to the end of their calls
}

// Reader is a node that reads a buffer, up to a fraction of its call.
type Reader struct {
	Node  string
	Until float64 // 0 is taken as 1
}

// Class is a kind of item. Items are dealt to classes by chance, with the weights.
type Class struct {
	Name   string
	Weight float64 // 0 is taken as 1
	Time   float64 // factor on Seconds and LinkBytes; 0 is taken as 1
	Bytes  float64 // factor on the bytes of buffers and needs; 0 is taken as 1
}
