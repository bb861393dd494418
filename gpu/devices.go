package gpu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Devices says which devices a user wants. The zero value is Auto.
type Devices struct {
	kind  devicesKind
	index []int // of the cards named, without repetition, in order
}

type devicesKind uint8

const (
	auto devicesKind = iota
	all
	cpu
	named
)

// What can be asked for besides names.
var (
	Auto = Devices{kind: auto} // every card, or the CPU where there is none
	All  = Devices{kind: all}  // every card; none is an error
	CPU  = Devices{kind: cpu}  // no card
)

// Cuda asks for the cards of these numbers.
func Cuda(index ...int) Devices { return Devices{kind: named, index: slices.Clone(index)} }

// ParseDevices reads "auto" (or nothing), "all", "cpu", or the names of cards
// with commas between them: "cuda:0,cuda:1". "cuda" alone is "cuda:0".
func ParseDevices(s string) (Devices, error) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "", "auto":
		return Auto, nil
	case "all":
		return All, nil
	case "cpu":
		return CPU, nil
	}
	d := Devices{kind: named}
	for part := range strings.SplitSeq(s, ",") {
		part = strings.ToLower(strings.TrimSpace(part))
		if part == "cuda" {
			part = "cuda:0"
		}
		digits, ok := strings.CutPrefix(part, "cuda:")
		n, err := strconv.ParseUint(digits, 10, 16)
		if !ok || err != nil || strconv.FormatUint(n, 10) != digits {
			return Devices{}, fmt.Errorf("unknown device %q (known: auto, all, cpu, cuda:0, cuda:1 …, several with commas between them)", part)
		}
		if slices.Contains(d.index, int(n)) {
			return Devices{}, fmt.Errorf("device %q is named twice", part)
		}
		d.index = append(d.index, int(n))
	}
	return d, nil
}

// String is what ParseDevices reads.
func (d Devices) String() string {
	switch d.kind {
	case auto:
		return "auto"
	case all:
		return "all"
	case cpu:
		return "cpu"
	}
	names := make([]string, len(d.index))
	for i, n := range d.index {
		names[i] = fmt.Sprintf("cuda:%d", n)
	}
	return strings.Join(names, ",")
}

// MarshalText is String.
func (d Devices) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is ParseDevices.
func (d *Devices) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDevices(string(b))
	return err
}

// Wanted reports whether it is worth looking for a driver.
func (d Devices) Wanted() bool { return d.kind != cpu }

// Required reports whether having no card is an error.
func (d Devices) Required() bool { return d.kind == all || d.kind == named }

// Of picks what was asked for among the cards there are. None, and no error, is
// the CPU. A card that is named and not there is ErrNoDevice with a list of
// those that are.
func (d Devices) Of(there []Device) ([]Device, error) {
	switch d.kind {
	case cpu:
		return nil, nil
	case auto:
		return slices.Clone(there), nil
	case all:
		if len(there) == 0 {
			return nil, fmt.Errorf("all devices: %w", ErrNoDevice)
		}
		return slices.Clone(there), nil
	}
	var out []Device
	for _, n := range d.index {
		i := slices.IndexFunc(there, func(t Device) bool { return t.Info().Index == n })
		if i < 0 {
			return nil, fmt.Errorf("cuda:%d: %w of that number (%s)", n, ErrNoDevice, listed(there))
		}
		out = append(out, there[i])
	}
	return out, nil
}

func listed(ds []Device) string {
	if len(ds) == 0 {
		return "there is none"
	}
	names := make([]string, len(ds))
	for i, d := range ds {
		names[i] = fmt.Sprintf("%s, %s", name(d), d.Info().Name)
	}
	return "there are: " + strings.Join(names, "; ")
}
