package stages

import (
	"fmt"
	"strings"

	"github.com/snarkline/snarkline/pipeline"
)

// VerifyError says that a proof was put together and does not verify. It was
// not handed over. Either the witness does not satisfy the circuit (possible
// where synthesize cannot tell: with NoCheck, or a circuit without a C matrix,
// as that in a .zkey), or a processor computed wrongly, or the keys do not
// belong together in a way that CheckKeys cannot see.
//
// It is not temporary: to run assemble again on the same sums cannot help, and
// the inputs of the stages under suspicion are gone. Where there is a processor
// whose fault it may be, the job is made again from its input, once, and
// elsewhere if the prover has an Elsewhere.
type VerifyError struct {
	Key      pipeline.Key
	Suspects []string // the stages whose results may be wrong, likeliest first
	On, B2On string   // the processors that made the sums, as in Result
	Err      error    // what the verifier said; wraps groth16.ErrInvalidProof

	again bool
}

// FromStart reports whether the job is worth to be made again from its input.
func (e *VerifyError) FromStart() bool { return e.again }

// Error names stage, key and suspects.
func (e *VerifyError) Error() string {
	return fmt.Sprintf("%s: the proof of %s part %d does not verify and is not handed over (suspects: %s): %v",
		NameAssemble, e.Key.Job, e.Key.Part, strings.Join(e.Suspects, ", "), e.Err)
}

// Unwrap gives what the verifier said.
func (e *VerifyError) Unwrap() error { return e.Err }
