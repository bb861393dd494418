package alloc

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
)

// Space says where memory lies: [Host], [Pinned] or a [Device].
type Space uint8

// The spaces. Devices follow pinned memory.
const (
	Host   Space = 0 // pageable memory of this process
	Pinned Space = 1 // page-locked host memory that devices can copy from
)

// MaxSpaces is the number of spaces there can be: host, pinned, eight devices.
const MaxSpaces = 10

// Device is the space of the memory of device n, 0 to 7. Any other n yields a
// space that is not Valid, in which nothing can be allocated.
func Device(n int) Space {
	if n < 0 || n > MaxSpaces-3 {
		return MaxSpaces
	}
	return Pinned + 1 + Space(n)
}

// Valid reports whether s is one of the MaxSpaces spaces.
func (s Space) Valid() bool { return s < MaxSpaces }

// DeviceIndex is n for Device(n), and −1 for host and pinned memory.
func (s Space) DeviceIndex() int {
	if s <= Pinned || !s.Valid() {
		return -1
	}
	return int(s - Pinned - 1)
}

// String is "host", "pinned" or "device0" and so on.
func (s Space) String() string {
	switch {
	case s == Host:
		return "host"
	case s == Pinned:
		return "pinned"
	case s.Valid():
		return fmt.Sprintf("device%d", s.DeviceIndex())
	}
	return fmt.Sprintf("space(%d)", uint8(s))
}

// ParseSpace reads what String writes.
func ParseSpace(name string) (Space, error) {
	for s := Host; s.Valid(); s++ {
		if s.String() == name {
			return s, nil
		}
	}
	return MaxSpaces, fmt.Errorf("unknown memory space %q (known: host, pinned, device0 to device%d)", name, MaxSpaces-3)
}

// MarshalText makes a space its name in JSON, as a value and as a key.
func (s Space) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *Space) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSpace(string(b))
	return err
}

// Amount is a number of bytes in each space.
type Amount [MaxSpaces]int64

// HostBytes is n bytes of host memory.
func HostBytes(n int64) Amount { return Amount{Host: n} }

// BytesIn is n bytes in space s; nothing if s is not valid.
func BytesIn(s Space, n int64) (a Amount) {
	if s.Valid() {
		a[s] = n
	}
	return a
}

// Add is a + b in each space.
func (a Amount) Add(b Amount) Amount {
	for i := range a {
		a[i] += b[i]
	}
	return a
}

// Sub is a − b in each space; it may be negative.
func (a Amount) Sub(b Amount) Amount {
	for i := range a {
		a[i] -= b[i]
	}
	return a
}

// Max is the larger of a and b in each space.
func (a Amount) Max(b Amount) Amount {
	for i := range a {
		a[i] = max(a[i], b[i])
	}
	return a
}

// Scale is n·a in each space.
func (a Amount) Scale(n int64) Amount {
	for i := range a {
		a[i] *= n
	}
	return a
}

// IsZero reports whether a is nothing in every space.
func (a Amount) IsZero() bool { return a == Amount{} }

// Fits reports whether a is at most limit in every space. A limit of 0 is none,
// as in [NewBudget].
func (a Amount) Fits(limit Amount) bool {
	for i := range a {
		if limit[i] > 0 && a[i] > limit[i] {
			return false
		}
	}
	return true
}

// FitsBeside reports whether a can be admitted where taken is taken already: in
// each space that it asks for, both are at most limit. 0 is no limit.
func (a Amount) FitsBeside(taken, limit Amount) bool {
	for i := range a {
		// What a request does not ask for cannot hold it up, even where the
		// limit has been lowered below what is taken.
		if a[i] > 0 && limit[i] > 0 && taken[i]+a[i] > limit[i] {
			return false
		}
	}
	return true
}

// String lists the spaces that are not zero: "host 1.5 GiB, device0 12 GiB"; "0 B" if all are.
func (a Amount) String() string {
	var parts []string
	for i, n := range a {
		if n != 0 {
			parts = append(parts, Space(i).String()+" "+formatBytes(n))
		}
	}
	if parts == nil {
		return "0 B"
	}
	return strings.Join(parts, ", ")
}

// MarshalJSON makes an amount an object from the names of its spaces to bytes,
// without those that are zero.
func (a Amount) MarshalJSON() ([]byte, error) {
	m := make(map[Space]int64)
	for i, n := range a {
		if n != 0 {
			m[Space(i)] = n
		}
	}
	return json.Marshal(m)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *Amount) UnmarshalJSON(b []byte) error {
	var m map[Space]int64
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("read an amount of memory: %w", err)
	}
	*a = Amount{}
	for s, n := range m {
		a[s] = n
	}
	return nil
}

// Units of memory in bytes.
const (
	KiB int64 = 1 << 10
	MiB int64 = 1 << 20
	GiB int64 = 1 << 30
	TiB int64 = 1 << 40
)

// ParseBytes reads a number of bytes such as "4GiB", "512 MiB", "1.5G" or
// "4096". The letters alone (K, M, G, T) are powers of 1024 as well; KB, MB, GB
// are powers of 1000.
func ParseBytes(s string) (int64, error) {
	t := strings.TrimSpace(s)
	if t != "" && strings.ContainsAny(t[len(t)-1:], "kKmMgGtT") {
		t += "iB"
	}
	n, err := humanize.ParseBytes(t)
	if err != nil { // its text shows what was left when letters were cut off
		return 0, fmt.Errorf("%q is no number of bytes, such as 4GiB, 512MiB or 4096", s)
	}
	if n > 1<<62 {
		return 0, fmt.Errorf("%q is too large a number of bytes", s)
	}
	return int64(n), nil
}

// formatBytes is a size for people, of either sign.
func formatBytes(n int64) string {
	if n < 0 {
		return "-" + humanize.IBytes(uint64(-n))
	}
	return humanize.IBytes(uint64(n))
}
