package circom

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/snarkline/snarkline/curve"
)

// FormatError says what is wrong with a file and where.
type FormatError struct {
	File    string // the name it was opened by
	Section string // "4 (coefficients)" of a binary file, "pi_a" or a signal of a JSON one; empty if it is about the whole
	Offset  int64  // byte in the file; −1 if there is no one place
	Err     error
}

// Error names the file, the section, the offset and the cause.
func (e *FormatError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	switch {
	case e.Section == "":
	case e.Section[0] >= '0' && e.Section[0] <= '9':
		b.WriteString(": section " + e.Section)
	default:
		b.WriteString(": field " + e.Section)
	}
	if e.Offset >= 0 {
		b.WriteString(": at byte " + strconv.FormatInt(e.Offset, 10))
	}
	b.WriteString(": ")
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap is the cause.
func (e *FormatError) Unwrap() error { return e.Err }

// The causes that programs ask about with errors.Is.
var (
	// ErrTruncated: the file ends before what it announces.
	ErrTruncated = errors.New("the file ends too early")
	// ErrProtocol: the file belongs to another proving system than Groth16.
	ErrProtocol = errors.New("not a Groth16 file")
	// ErrValue: a number is not below the modulus of its field.
	ErrValue = errors.New("a value is not below the field's modulus")
)

// CurveError says that a file is of another curve than what it is used with.
type CurveError struct {
	Got, Want curve.ID
}

// Error names both curves.
func (e *CurveError) Error() string {
	return fmt.Sprintf("the curve is %v, not %v", e.Got, e.Want)
}
