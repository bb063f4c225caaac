package transport

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// count returns how many elements the array in raw has, 0 when it is no array.
func count(raw []byte) int {
	n := 0
	for e := (elements{b: raw}); e.next(); {
		n++
	}
	return n
}

// isObject, isArray and isString look at the first byte of a raw value.
func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }
func isArray(raw []byte) bool  { return len(raw) > 0 && raw[0] == '[' }
func isString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// isNull says that a member is absent or null.
func isNull(raw []byte) bool { return len(raw) == 0 || raw[0] == 'n' }

// text returns the string in a raw JSON string, "" when raw is none. Invalid UTF-8 and lone
// surrogates become U+FFFD.
func text(raw []byte) string {
	if !isString(raw) || len(raw) < 2 {
		return ""
	}
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// cut returns at most max bytes of s and never half a character.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// member returns one member of the object in raw; nil when there is none or it stands twice.
func member(raw []byte, name string) []byte {
	var found []byte
	for m := (members{b: raw}); m.next(); {
		if string(m.key) == name {
			if found != nil {
				return nil
			}
			found = m.value
		}
	}
	return found
}

// repeats says that an object anywhere in raw has a member twice.
func repeats(raw []byte) bool {
	switch {
	case isObject(raw):
		seen := map[string]bool{}
		for m := (members{b: raw}); m.next(); {
			// Escapes could spell one name in two ways.
			key := text(append(append([]byte{'"'}, m.key...), '"'))
			if seen[key] || repeats(m.value) {
				return true
			}
			seen[key] = true
		}
	case isArray(raw):
		for e := (elements{b: raw}); e.next(); {
			if repeats(e.value) {
				return true
			}
		}
	}
	return false
}
