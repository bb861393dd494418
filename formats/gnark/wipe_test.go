package gnark

import (
	"bytes"
	"testing"

	"github.com/snarkline/snarkline/curve"
)

func TestWipe(t *testing.T) {
	Wipe(nil)
	for _, id := range curve.All() {
		w, _ := full(t, id, &hinted{X: 14, Y: 49})
		before, err := w.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		Wipe(w)
		after, err := w.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		const header = 12
		if len(after) != len(before) || bytes.Equal(after, before) || !bytes.Equal(after[header:], make([]byte, len(after)-header)) {
			t.Errorf("%v: after Wipe the witness is %x", id, after)
		}
	}
}
