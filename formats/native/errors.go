package native

import (
	"errors"
	"fmt"
	"strings"
)

// FormatError says what is wrong with a file and where.
type FormatError struct {
	File    string
	Section string // empty for the header or the whole
	Offset  int64  // byte in the file; −1 if there is no one place
	Err     error
}

// Error names file, section, offset and cause.
func (e *FormatError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Section != "" {
		b.WriteString(": section " + e.Section)
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&b, ": at byte %d", e.Offset)
	}
	return b.String() + ": " + e.Err.Error()
}

// Unwrap is the cause.
func (e *FormatError) Unwrap() error { return e.Err }

// ErrTruncated is wrapped by errors that say that a file is too short for what
// it announces.
var ErrTruncated = errors.New("the file is too short")

// ErrMagic is wrapped when a file is not of this format at all.
var ErrMagic = errors.New("this is no .slk file")
