package alloc

import "fmt"

// UseAfterFreeError is thrown when a freed Ref is used.
type UseAfterFreeError struct {
	What  string // the method
	Ref   string // what was freed: bytes, purpose, stage
	Made  string // debug: the place of the allocation and its callers
	Freed string // debug: the place of the last Release and its callers
}

// Error says what was used and, in debug builds, where it was made and freed.
func (e *UseAfterFreeError) Error() string {
	return fmt.Sprintf("use after free: %s of %s%s", e.What, e.Ref, places(e.Made, e.Freed))
}

// DoubleReleaseError is thrown when Release is called without a reference: some
// reference was ended twice. Its opposite, a reference that was never ended, is
// a [Leak].
type DoubleReleaseError struct {
	Ref   string // what was freed: bytes, purpose, stage
	Made  string // debug: the place of the allocation and its callers
	Freed string // debug: the place of the Release that was the last one, and its callers
}

// Error says what was released and, in debug builds, where it was made and freed.
func (e *DoubleReleaseError) Error() string {
	return fmt.Sprintf("double release of %s%s", e.Ref, places(e.Made, e.Freed))
}

// WriteAfterFreeError is thrown in debug builds when freed memory was written
// to, once that is noticed: when the memory is used again, goes back to the
// system, or CheckLeaks looks.
type WriteAfterFreeError struct {
	Ref    string
	Offset int64 // of the first changed byte; at or past the size for a write past the end
	Made   string
	Freed  string
}

// Error says which byte of what was written, and where it was made and freed.
func (e *WriteAfterFreeError) Error() string {
	return fmt.Sprintf("write after free or out of bounds at byte %d of %s%s", e.Offset, e.Ref, places(e.Made, e.Freed))
}

func places(made, freed string) string {
	if made == "" {
		return " (build with -tags snarkdebug to see where it was made and freed)"
	}
	return "\nmade at:\n" + made + "freed at:\n" + freed
}

// describe says what c is, for messages.
func (c *core) describe() string {
	at := c.at()
	if at == nil {
		return "a reference that was never made"
	}
	return fmt.Sprintf("%d bytes of %v memory, %v of stage %v", c.bytes, c.space, at.purpose, at.stage)
}

func (c *core) throwUse(what string) {
	made, freed := c.rec.stacks()
	panic(&UseAfterFreeError{What: what, Ref: c.describe(), Made: made, Freed: freed})
}

func (c *core) throwDouble() {
	made, freed := c.rec.stacks()
	panic(&DoubleReleaseError{Ref: c.describe(), Made: made, Freed: freed})
}
