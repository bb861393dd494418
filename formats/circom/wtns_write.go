package circom

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/arith"
	"github.com/snarkline/snarkline/groth16"
)

// WriteWtns writes a witness as snarkjs and circom's calculators do. The
// witness is filled into memory of ctx's scope that is wiped afterwards.
func WriteWtns(ctx context.Context, w io.Writer, id curve.ID, src groth16.WitnessSource) error {
	field, err := arith.FieldOf(id)
	if err != nil {
		return fmt.Errorf("write .wtns: %w", err)
	}
	n := src.Len()
	if n < 1 || int64(n) > math.MaxUint32 {
		return fmt.Errorf("write .wtns: %d wires", n)
	}
	buf, err := alloc.Make[curve.Scalar](alloc.ScopeOf(ctx), n, alloc.Witness, alloc.Secret|alloc.Dirty)
	if err != nil {
		return fmt.Errorf("write .wtns: %w", err)
	}
	defer buf.Release()
	if err := src.Fill(ctx, buf.Slice()); err != nil {
		return fmt.Errorf("write .wtns: %w", err)
	}
	c := newContainerWriter(w, KindWtns, 2, 2)
	c.section(wtnsHeader, 8+curve.ScalarBytes)
	c.prime(scalarModulus(id))
	c.u32(uint32(n))
	c.section(wtnsValues, uint64(n)*curve.ScalarBytes)
	c.plain(field, buf.Slice())
	if err := c.close(); err != nil {
		return fmt.Errorf("write .wtns: %w", err)
	}
	return nil
}
