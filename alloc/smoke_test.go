package alloc

import "testing"

func TestSmoke(t *testing.T) {
	defer CheckLeaks(t)
	for _, n := range []int{0, 1, 7, 1000, 100000, 1 << 20} {
		b, err := Make[[4]uint64](nil, n, Scratch, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Slice() {
			if b.Slice()[i] != [4]uint64{} {
				t.Fatal("not zero")
			}
			b.Slice()[i][0] = 1
		}
		b.Retain()
		b.Release()
		b.Release()
	}
}
