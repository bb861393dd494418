// Command filecoin replays the published history of a proving engine for 32 GiB
// PoReps in the simulator, and prints what was published beside what the model
// says: seconds a proof and peak memory by partition workers, the fault by which
// memory piled up until the process was killed and its cure, two workers of one
// card, and vectors brought to a card of 16 GiB ahead of time. All of it comes from
// one set of figures, those of engine-costs.toml. It ends with an error if a row is off by more
// than 15% without a reason, or fits though a reason is given why it cannot, or if
// a fault does not come back or its cure does not help.
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := replay(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "filecoin:", err)
		os.Exit(1)
	}
}

var errOff = errors.New("the model and the published figures do not agree as they should")
