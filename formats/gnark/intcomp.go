package gnark

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// gnark packs integers with ronanh/intcomp, which trusts its input: a wrong
// length panics or allocates without bound, in a goroutine where nobody can
// catch it. The functions here walk over packed data without unpacking it.

var errPacked = errors.New("packed integers are malformed")

// packed32 checks one block of packed 32-bit integers (u64 number of words, then
// words) at the start of b. It returns how many integers unpack from it and how
// many bytes it takes.
func packed32(b []byte) (count, size int64, err error) {
	w, size, err := packedWords(b, 4)
	if err != nil || len(w) == 0 {
		return 0, size, err
	}
	at := func(i int64) uint32 { return binary.LittleEndian.Uint32(w[4*i:]) }
	end := int64(len(w)/4) - 1 // the last word is the length of the last block
	for i := int64(0); i < end; {
		if end-i < 2 {
			return 0, 0, errPacked
		}
		n, length := int64(at(i)), int64(at(i+1))
		if length < 2 || length > end-i {
			return 0, 0, errPacked
		}
		if n < 128 {
			if varBytes(w[4*(i+2):4*(i+length)], 4) != n {
				return 0, 0, errPacked
			}
		} else if err := bitPacked(n, length, 128, 3, 32, func(k int64) uint32 { return at(i + k) }); err != nil {
			return 0, 0, err
		}
		count += n
		i += length
	}
	return count, size, nil
}

// packed64 is packed32 for 64-bit integers.
func packed64(b []byte) (count, size int64, err error) {
	w, size, err := packedWords(b, 8)
	if err != nil || len(w) == 0 {
		return 0, size, err
	}
	at := func(i int64) uint64 { return binary.LittleEndian.Uint64(w[8*i:]) }
	end := int64(len(w)/8) - 1
	for i := int64(0); i < end; {
		n, length := int64(uint32(at(i))), int64(at(i)>>32)
		if length < 1 || length > end-i || n > 1<<31-1 {
			return 0, 0, errPacked
		}
		if n < 256 {
			if varBytes(w[8*(i+1):8*(i+length)], 8) != n {
				return 0, 0, errPacked
			}
		} else if err := bitPacked(n, length, 256, 2, 64, func(k int64) uint32 { return uint32(at(i + k)) }); err != nil {
			return 0, 0, err
		}
		count += n
		i += length
	}
	return count, size, nil
}

// packedWords is the words of a block, and the size of the whole.
func packedWords(b []byte, word int64) (w []byte, size int64, err error) {
	if len(b) < 8 {
		return nil, 0, fmt.Errorf("%w: %d bytes are left", ErrTruncated, len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	if left := uint64(len(b)-8) / uint64(word); n > left {
		return nil, 0, fmt.Errorf("%w: %d packed words, %d bytes are left", ErrTruncated, n, len(b)-8)
	}
	size = 8 + int64(n)*word
	return b[8:size], size, nil
}

// varBytes is how many integers of seven bits a byte end in w, whose words hold
// their bytes from the most significant down. The order within a word does not
// matter for the count.
func varBytes(w []byte, word int) (n int64) {
	for _, c := range w[:len(w)/word*word] {
		if c&0x80 == 0 {
			n++
		}
	}
	return n
}

// bitPacked checks a block of n integers in groups of four widths.
func bitPacked(n, length, group, header, widest int64, at func(int64) uint32) error {
	if n%group != 0 || length < header {
		return errPacked
	}
	pos := header
	for range n / group {
		if pos >= length {
			return errPacked
		}
		widths := at(pos)
		pos++
		for _, shift := range []int{24, 16, 8, 0} {
			width := int64(widths>>shift) & 0x7f
			if width > widest {
				return errPacked
			}
			pos += width
		}
	}
	if pos != length {
		return errPacked
	}
	return nil
}
