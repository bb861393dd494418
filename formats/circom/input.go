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
)

// Inputs are the values of a circuit's input signals by name, arrays flattened
// in row-major order. Values of any size and sign are reduced modulo r.
type Inputs map[string][]*big.Int

const (
	maxInputDigits = 1 << 16
	maxInputDepth  = 64
	maxExponent    = 1000
)

// ReadInput reads an input.json: an object whose values are numbers, as decimal
// or 0x strings or JSON numbers of any size, arrays of them nested to any
// shape, or objects for the fields of a bus ("bus.field", "bus[0].field").
// Nothing is rounded, as JavaScript would. The name is for messages.
func ReadInput(name string, r io.Reader) (Inputs, error) {
	b, err := readAll(name, r, maxInputJSON)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	p := inputParser{name: name, d: d, out: Inputs{}}
	t, err := p.token()
	if err != nil {
		return nil, err
	}
	if t != json.Delim('{') {
		return nil, p.fail("", errors.New("not an object of signals"))
	}
	if err := p.object("", 1); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, p.fail("", errors.New("something follows the object"))
	}
	return p.out, nil
}

type inputParser struct {
	name string
	d    *json.Decoder
	out  Inputs
}

func (p *inputParser) fail(signal string, err error) error {
	return &FormatError{File: p.name, Section: signal, Offset: p.d.InputOffset(), Err: err}
}

func (p *inputParser) token() (json.Token, error) {
	t, err := p.d.Token()
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, p.fail("", ErrTruncated)
	case err != nil:
		return nil, p.fail("", err)
	}
	return t, nil
}

// object reads the fields of an object whose brace has been read.
func (p *inputParser) object(prefix string, depth int) error {
	if depth > maxInputDepth {
		return p.fail(prefix, fmt.Errorf("nested more than %d deep", maxInputDepth))
	}
	for {
		t, err := p.token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return nil // the closing brace: the decoder lets nothing else through
		}
		if prefix != "" {
			key = prefix + "." + key
		}
		if t, err = p.token(); err != nil {
			return err
		}
		switch t {
		case json.Delim('{'):
			err = p.object(key, depth+1)
		case json.Delim('['):
			a := array{}
			if err = p.array(key, &a, depth+1); err == nil && !a.objects {
				err = p.set(key, a.values)
			}
		default:
			var v *big.Int
			if v, err = p.scalar(key, t); err == nil {
				err = p.set(key, []*big.Int{v})
			}
		}
		if err != nil {
			return err
		}
	}
}

// array is what an array holds: values, or objects, but not both.
type array struct {
	values  []*big.Int
	objects bool
}

// array reads an array whose bracket has been read.
func (p *inputParser) array(path string, a *array, depth int) error {
	if depth > maxInputDepth {
		return p.fail(path, fmt.Errorf("nested more than %d deep", maxInputDepth))
	}
	for i := 0; ; i++ {
		t, err := p.token()
		if err != nil {
			return err
		}
		at := path + "[" + strconv.Itoa(i) + "]"
		switch t {
		case json.Delim(']'):
			if a.objects && len(a.values) > 0 {
				return p.fail(path, errors.New("numbers and objects in one array"))
			}
			return nil
		case json.Delim('['):
			err = p.array(at, a, depth+1)
		case json.Delim('{'):
			a.objects = true
			err = p.object(at, depth+1)
		default:
			var v *big.Int
			v, err = p.scalar(at, t)
			a.values = append(a.values, v)
		}
		if err != nil {
			return err
		}
	}
}

func (p *inputParser) set(signal string, v []*big.Int) error {
	if _, ok := p.out[signal]; ok {
		return p.fail(signal, errors.New("the signal is given twice"))
	}
	p.out[signal] = v
	return nil
}

func (p *inputParser) scalar(signal string, t json.Token) (*big.Int, error) {
	var v *big.Int
	var err error
	switch t := t.(type) {
	case string:
		v, err = parseInteger(t)
	case json.Number:
		v, err = parseJSONNumber(t.String())
	case bool: // as BigInt(true) in JavaScript
		if v = new(big.Int); t {
			v.SetInt64(1)
		}
	default:
		err = errors.New("null is not a number")
	}
	if err != nil {
		return nil, p.fail(signal, err)
	}
	return v, nil
}

// parseInteger reads decimal digits or 0x and hexadecimal ones, with a sign or not.
func parseInteger(s string) (*big.Int, error) {
	if len(s) > maxInputDigits {
		return nil, fmt.Errorf("a number of %d digits (at most %d)", len(s), maxInputDigits)
	}
	digits, negative := strings.CutPrefix(strings.TrimSpace(s), "-")
	base := 10
	if h, ok := strings.CutPrefix(digits, "0x"); ok {
		digits, base = h, 16
	}
	v, ok := new(big.Int).SetString(digits, base)
	if !ok || digits[0] == '+' || digits[0] == '-' {
		return nil, fmt.Errorf("%.40q is not an integer", s)
	}
	if negative {
		v.Neg(v)
	}
	return v, nil
}

// parseJSONNumber reads a JSON number that is an integer, however written.
func parseJSONNumber(s string) (*big.Int, error) {
	if !strings.ContainsAny(s, ".eE") {
		return parseInteger(s)
	}
	if len(s) > maxInputDigits {
		return nil, fmt.Errorf("a number of %d digits (at most %d)", len(s), maxInputDigits)
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if e, err := strconv.Atoi(s[i+1:]); err != nil || e > maxExponent || e < -maxExponent {
			return nil, fmt.Errorf("exponent of %.40q is out of range", s)
		}
	}
	v, ok := new(big.Rat).SetString(s)
	if !ok || !v.IsInt() {
		return nil, fmt.Errorf("%.40q is not an integer", s)
	}
	return v.Num(), nil
}
