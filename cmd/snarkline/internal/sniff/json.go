package sniff

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// jsonKind tells snarkjs's JSON files apart by their top-level keys. A text
// that is no JSON is an error, which says where.
func jsonKind(r io.ReadSeeker, size int64) (Kind, error) {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	damaged := func(err error) (Kind, error) { return Unknown, damage(r, size, err) }
	first, err := dec.Token()
	if err != nil {
		return damaged(err)
	}
	if first == json.Delim('[') {
		for dec.More() {
			t, err := dec.Token()
			if err != nil {
				return damaged(err)
			}
			switch t.(type) {
			case string, json.Number: // snarkjs writes strings; its reader, and ours, take both
			default:
				return Unknown, nil
			}
		}
		if _, err := dec.Token(); err != nil {
			return damaged(err)
		}
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return Unknown, nil // such as calldata, which is several arrays
		}
		return PublicJSON, nil
	}
	keys := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return damaged(err)
		}
		name, text := t.(string)
		if !text {
			return Unknown, nil
		}
		keys[name] = true
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			return damaged(err)
		}
	}
	if _, err := dec.Token(); err != nil {
		return damaged(err)
	}
	switch {
	case keys["pi_a"] && keys["pi_b"] && keys["pi_c"]:
		return ProofJSON, nil
	case keys["vk_alpha_1"] || keys["IC"]:
		return VKeyJSON, nil
	case len(keys) > 0:
		return InputJSON, nil
	}
	return Unknown, nil
}

// maxDamaged bounds the JSON in which the place of an error is looked for.
const maxDamaged = 64 << 20

// damage is the error of a text that is no JSON, with its place: a decoder that
// reads token by token does not tell it right.
func damage(r io.ReadSeeker, size int64, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("damaged JSON at byte %d: it ends too early", size)
	}
	if size > maxDamaged {
		return fmt.Errorf("damaged JSON: %w", err)
	}
	if _, e := r.Seek(0, io.SeekStart); e != nil {
		return fmt.Errorf("damaged JSON: %w", err)
	}
	text, e := io.ReadAll(r)
	if e != nil {
		return fmt.Errorf("read: %w", e)
	}
	var all json.RawMessage
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(text, &all), &syntax) {
		return fmt.Errorf("damaged JSON at byte %d: %w", max(syntax.Offset-1, 0), syntax)
	}
	return fmt.Errorf("damaged JSON: %w", err)
}
