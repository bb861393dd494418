package gnark

import (
	"errors"
	"fmt"
	"strings"
)

// FormatError says what is wrong with a file and where.
type FormatError struct {
	File    string // the name given when it was opened
	Section string // "A", "domain", …; empty for the whole
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

// ErrCurve is wrapped by errors that say that a file is of no known curve, or
// not of the one asked for.
var ErrCurve = errors.New("not a file of this curve")
