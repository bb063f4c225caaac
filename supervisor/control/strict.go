package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxDepth bounds the nesting of JSON that we read from a caller.
const maxDepth = 64

// Strict decodes one JSON value into v. It refuses what encoding/json lets pass: a key that
// stands twice in one object, anything after the value, and nesting deeper than 64. Members that
// v does not have are allowed, since fields are added over time.
func Strict(data []byte, v any) error {
	if err := checkKeys(data); err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// StrictFields is Strict, and also refuses members that v does not have.
func StrictFields(data []byte, v any) error {
	if err := checkKeys(data); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}

func checkKeys(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := walkValue(dec, 0); err != nil {
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("more text after the JSON value at byte %d", dec.InputOffset())
	}
	return nil
}

func walkValue(dec *json.Decoder, depth int) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	open, isDelim := token.(json.Delim)
	if !isDelim {
		return nil
	}
	if depth >= maxDepth {
		return fmt.Errorf("nested deeper than %d at byte %d", maxDepth, dec.InputOffset())
	}
	seen := map[string]bool{}
	for dec.More() {
		if open == '{' {
			if err := walkKey(dec, seen); err != nil {
				return err
			}
		}
		if err := walkValue(dec, depth+1); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

func walkKey(dec *json.Decoder, seen map[string]bool) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	key, ok := token.(string)
	if !ok {
		return fmt.Errorf("a key is no string at byte %d", dec.InputOffset())
	}
	if seen[key] {
		return fmt.Errorf("key %q stands twice, at byte %d", key, dec.InputOffset())
	}
	seen[key] = true
	return nil
}
