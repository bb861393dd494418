package gnark

import (
	"fmt"
	"io"

	"github.com/snarkline/snarkline/groth16"
)

// Encoding is one of the three ways in which gnark writes a proving key.
type Encoding uint8

// The encodings.
const (
	Compressed Encoding = iota // half the size, slow to read
	Raw
	Dump // raw memory of this machine's byte order; fastest
)

// WriteProvingKey writes an unfolded key of the monomial basis as gnark does.
// The points are written from where they lie.
func WriteProvingKey(w io.Writer, key *groth16.ProvingKey, e Encoding) error {
	const doing = "write a gnark proving key"
	pk, err := viewKey(key)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	switch e {
	case Compressed:
		_, err = pk.WriteTo(w)
	case Raw:
		_, err = pk.WriteRawTo(w)
	case Dump:
		err = pk.WriteDump(w)
	default:
		err = fmt.Errorf("unknown encoding %d", e)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
