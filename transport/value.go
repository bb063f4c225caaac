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
	_, twice := repeatsIn(raw, 0, 0)
	return twice
}

// repeatsIn looks through the value that starts at b[i] and returns the index after it, -1 where it is
// malformed or has a member twice. Each byte is read once, however deep it is nested.
func repeatsIn(b []byte, i, depth int) (end int, twice bool) {
	if i >= len(b) || depth > maxDepth || b[i] != '{' && b[i] != '[' {
		return skipValue(b, i, depth), false
	}
	closing, seen := b[i]+2, map[string]bool{} // '}' and ']' stand two behind
	object := b[i] == '{'
	for i = skipSpace(b, i+1); i < len(b) && b[i] != closing; {
		if object {
			k := -1
			if b[i] == '"' {
				k = skipString(b, i)
			}
			if k < 0 {
				return -1, false
			}
			// Escapes could spell one name in two ways.
			key := text(b[i:k])
			if seen[key] {
				return -1, true
			}
			seen[key] = true
			if i = skipSpace(b, k); i >= len(b) || b[i] != ':' {
				return -1, false
			}
			i = skipSpace(b, i+1)
		}
		if i, twice = repeatsIn(b, i, depth+1); i < 0 {
			return -1, twice
		}
		if i = skipSpace(b, i); i < len(b) && b[i] == ',' {
			i = skipSpace(b, i+1)
		} else if i < len(b) && b[i] != closing {
			return -1, false
		}
	}
	if i >= len(b) {
		return -1, false
	}
	return i + 1, false
}
