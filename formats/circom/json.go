package circom

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/arith"
)

// Bounds on JSON files. A proof is under 2 KB; a verification key has about
// 200 bytes a public input; public.json about 80.
const (
	maxProofJSON  = 64 << 10
	maxKeyJSON    = 32 << 20
	maxPublicJSON = 32 << 20
	maxInputJSON  = 256 << 20
)

// object is a JSON object whose fields keep their order.
type object []field

type field struct {
	name  string
	value any // string, int, []any, object
}

// writeJSON writes v as snarkjs does: indented by one space a level, an empty
// array over two lines, no newline at the end.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	appendJSON(&b, v, 0)
	_, err := w.Write(b.Bytes())
	return err
}

func appendJSON(b *bytes.Buffer, v any, depth int) {
	line := func(depth int) {
		b.WriteByte('\n')
		b.WriteString(strings.Repeat(" ", depth))
	}
	switch v := v.(type) {
	case string: // digits or names of ours: nothing to escape
		b.WriteByte('"')
		b.WriteString(v)
		b.WriteByte('"')
	case int:
		b.WriteString(strconv.Itoa(v))
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			line(depth + 1)
			appendJSON(b, e, depth+1)
		}
		line(depth)
		b.WriteByte(']')
	case object:
		b.WriteByte('{')
		for i, f := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			line(depth + 1)
			b.WriteString(`"` + f.name + `": `)
			appendJSON(b, f.value, depth+1)
		}
		line(depth)
		b.WriteByte('}')
	}
}

// readJSON reads a whole document of at most limit bytes into v.
func readJSON(name string, r io.Reader, limit int64, v any) error {
	b, err := readAll(name, r, limit)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return jsonError(name, err)
	}
	return nil
}

func readAll(name string, r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(b)) > limit {
		return nil, &FormatError{File: name, Offset: limit, Err: fmt.Errorf("more than %d bytes", limit)}
	}
	return b, nil
}

// jsonError is an error of encoding/json with its place.
func jsonError(name string, err error) error {
	out := &FormatError{File: name, Offset: -1, Err: err}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		out.Offset = syntax.Offset
	case errors.As(err, &kind):
		out.Offset, out.Section = kind.Offset, kind.Field
	}
	return out
}

// inField is an error about a field of a JSON file.
func inField(name, field string, err error) error {
	return &FormatError{File: name, Section: field, Offset: -1, Err: err}
}

// number is an integer in any of the ways that snarkjs reads one: a string of
// decimal or 0x-digits, or a JSON number. What does not read as one is found
// when it is asked for, where its place is known.
type number struct {
	v   big.Int
	err error
}

// maxDigits is above what a field element can have in any of the spellings.
const maxDigits = 256

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	n.err = n.parse(b)
	return nil
}

func (n *number) parse(b []byte) error {
	s := string(b)
	if len(s) > maxDigits {
		return fmt.Errorf("a number of %d characters", len(s))
	}
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	digits, base := s, 10
	if h, ok := strings.CutPrefix(s, "0x"); ok {
		digits, base = h, 16
	}
	for _, c := range []byte(digits) {
		if (c < '0' || c > '9') && (base == 10 || (c|0x20 < 'a' || c|0x20 > 'f')) {
			return fmt.Errorf("%s is not a number", b)
		}
	}
	if _, ok := n.v.SetString(digits, base); !ok {
		return fmt.Errorf("%s is not a number", b)
	}
	return nil
}

// firstError is the first of the numbers' errors.
func firstError(v []number) error {
	for i := range v {
		if v[i].err != nil {
			return v[i].err
		}
	}
	return nil
}

// pointJSON is a point of G1 as snarkjs writes it: x, y, z with z = 1, and
// 0, 1, 0 for infinity.
func pointJSON(id curve.ID, p *curve.G1) []any {
	if p.IsInfinity() {
		return []any{"0", "1", "0"}
	}
	c := arith.Coordinates(id, p)
	return []any{c[0].String(), c[1].String(), "1"}
}

// pointJSON2 is the same in G2, each coordinate a pair.
func pointJSON2(id curve.ID, p *curve.G2) []any {
	if p.IsInfinity() {
		return []any{[]any{"0", "0"}, []any{"1", "0"}, []any{"0", "0"}}
	}
	c := arith.Coordinates2(id, p)
	return []any{
		[]any{c[0].String(), c[1].String()},
		[]any{c[2].String(), c[3].String()},
		[]any{"1", "0"},
	}
}

// point reads a point of G1 and checks it: affine, or projective with z 1 or 0.
func point(id curve.ID, v []number) (curve.G1, error) {
	if len(v) != 2 && len(v) != 3 {
		return curve.G1{}, fmt.Errorf("%d coordinates, not 3", len(v))
	}
	if err := firstError(v); err != nil {
		return curve.G1{}, err
	}
	x, y := &v[0].v, &v[1].v
	if len(v) == 3 {
		switch z := &v[2].v; {
		case z.Sign() == 0:
			if x.Sign() != 0 || y.Cmp(big.NewInt(1)) != 0 {
				return curve.G1{}, errors.New("the point at infinity is written 0, 1, 0")
			}
			return curve.G1{}, nil
		case z.Cmp(big.NewInt(1)) != 0:
			return curve.G1{}, errors.New("the third coordinate must be 1")
		}
	}
	if x.Sign() == 0 && y.Sign() == 0 {
		return curve.G1{}, arith.ErrOffCurve
	}
	return arith.FromCoordinates(id, [2]*big.Int{x, y})
}

// point2 reads a point of G2 and checks it.
func point2(id curve.ID, v [][]number) (curve.G2, error) {
	if len(v) != 2 && len(v) != 3 {
		return curve.G2{}, fmt.Errorf("%d coordinates, not 3", len(v))
	}
	for _, c := range v {
		if len(c) != 2 {
			return curve.G2{}, fmt.Errorf("a coordinate of %d parts, not 2", len(c))
		}
		if err := firstError(c); err != nil {
			return curve.G2{}, err
		}
	}
	c := [4]*big.Int{&v[0][0].v, &v[0][1].v, &v[1][0].v, &v[1][1].v}
	is := func(v []number, n int64) bool { return v[0].v.Cmp(big.NewInt(n)) == 0 && v[1].v.Sign() == 0 }
	if len(v) == 3 {
		switch {
		case is(v[2], 0):
			if !is(v[0], 0) || !is(v[1], 1) {
				return curve.G2{}, errors.New("the point at infinity is written [0, 0], [1, 0], [0, 0]")
			}
			return curve.G2{}, nil
		case !is(v[2], 1):
			return curve.G2{}, errors.New("the third coordinate must be [1, 0]")
		}
	}
	if is(v[0], 0) && is(v[1], 0) {
		return curve.G2{}, arith.ErrOffCurve
	}
	return arith.FromCoordinates2(id, c)
}

// head is what all of snarkjs' JSON objects say of themselves.
type head struct {
	Protocol string `json:"protocol"`
	Curve    string `json:"curve"`
}

// check finds the curve and refuses other proving systems.
func (h *head) check(name string) (curve.ID, error) {
	if h.Protocol != "groth16" {
		return 0, inField(name, "protocol", fmt.Errorf("%w: protocol %q", ErrProtocol, h.Protocol))
	}
	id, err := curve.Parse(h.Curve)
	if err != nil {
		return 0, inField(name, "curve", err)
	}
	return id, nil
}
