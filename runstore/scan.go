package runstore

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// maxDepth bounds the nesting of any document we read, maxRawDepth that of a value we are given.
const (
	maxDepth    = 100
	maxRawDepth = 64
)

// fault is one thing wrong in a document, at a byte offset from its beginning.
type fault struct {
	off  int
	what string
}

func (f *fault) Error() string { return fmt.Sprintf("byte %d: %s", f.off, f.what) }

func faultAt(off int, format string, args ...any) *fault {
	return &fault{off: off, what: fmt.Sprintf(format, args...)}
}

// checkJSON tells whether data is exactly one JSON value: valid UTF-8, no duplicate key at any
// depth, no nesting beyond maxDepth, nothing but white space after it.
//
// The standard decoder takes the last of two equal keys, ignores case and replaces bad UTF-8;
// a store must not guess.
func checkJSON(data []byte) error { return checkNested(data, 0) }

func checkNested(data []byte, depth int) error {
	s := scanner{data: data}
	if err := s.value(depth); err != nil {
		return err
	}
	s.space()
	if s.pos < len(data) {
		return faultAt(s.pos, "data after the end of the document")
	}
	return nil
}

type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the next byte that is no white space, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.pos == len(s.data) {
		return 0
	}
	return s.data[s.pos]
}

func (s *scanner) wrong(want string) error {
	if s.pos >= len(s.data) {
		return faultAt(len(s.data), "unexpected end, %s expected", want)
	}
	return faultAt(s.pos, "unexpected %q, %s expected", s.data[s.pos:s.pos+1], want)
}

func (s *scanner) value(depth int) error {
	if depth > maxDepth {
		return faultAt(s.pos, "nested deeper than %d", maxDepth)
	}
	switch c := s.peek(); {
	case c == '{':
		return s.object(depth)
	case c == '[':
		return s.array(depth)
	case c == '"':
		return s.text()
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return s.wrong("a value")
}

func (s *scanner) word(w string) error {
	if len(s.data)-s.pos < len(w) || string(s.data[s.pos:s.pos+len(w)]) != w {
		return s.wrong(w)
	}
	s.pos += len(w)
	return nil
}

func (s *scanner) object(depth int) error {
	s.pos++
	if s.peek() == '}' {
		s.pos++
		return nil
	}
	var seen keySet
	for {
		if s.peek() != '"' {
			return s.wrong("a key")
		}
		at := s.pos
		if err := s.text(); err != nil {
			return err
		}
		key := unquote(s.data[at:s.pos])
		if !seen.add(key) {
			return faultAt(at, "duplicate key %q", key)
		}
		if s.peek() != ':' {
			return s.wrong("a colon")
		}
		s.pos++
		if err := s.value(depth + 1); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.pos++
		case '}':
			s.pos++
			return nil
		default:
			return s.wrong("a comma or the object's end")
		}
	}
}

func (s *scanner) array(depth int) error {
	s.pos++
	if s.peek() == ']' {
		s.pos++
		return nil
	}
	for {
		if err := s.value(depth + 1); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.pos++
		case ']':
			s.pos++
			return nil
		default:
			return s.wrong("a comma or the array's end")
		}
	}
}

func (s *scanner) text() error {
	s.pos++
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			return nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		case c < 0x20:
			return faultAt(s.pos, "a control character in a string")
		case c < utf8.RuneSelf:
			s.pos++
		default:
			r, n := utf8.DecodeRune(s.data[s.pos:])
			if r == utf8.RuneError && n == 1 {
				return faultAt(s.pos, "invalid UTF-8")
			}
			s.pos += n
		}
	}
	return s.wrong("the string's end")
}

func (s *scanner) escape() error {
	s.pos++
	if s.pos == len(s.data) {
		return s.wrong("an escape")
	}
	switch s.data[s.pos] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
		return nil
	case 'u':
		s.pos++
		for range 4 {
			if s.pos == len(s.data) || !isHex(s.data[s.pos]) {
				return s.wrong("a hex digit")
			}
			s.pos++
		}
		return nil
	}
	return s.wrong("an escape")
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (s *scanner) digits() bool {
	from := s.pos
	for s.pos < len(s.data) && s.data[s.pos] >= '0' && s.data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > from
}

func (s *scanner) number() error {
	if s.data[s.pos] == '-' {
		s.pos++
	}
	if s.pos < len(s.data) && s.data[s.pos] == '0' {
		s.pos++
	} else if !s.digits() {
		return s.wrong("a digit")
	}
	if s.pos < len(s.data) && s.data[s.pos] == '.' {
		s.pos++
		if !s.digits() {
			return s.wrong("a digit")
		}
	}
	if s.pos < len(s.data) && (s.data[s.pos] == 'e' || s.data[s.pos] == 'E') {
		s.pos++
		if s.pos < len(s.data) && (s.data[s.pos] == '+' || s.data[s.pos] == '-') {
			s.pos++
		}
		if !s.digits() {
			return s.wrong("a digit")
		}
	}
	return nil
}

// keySet finds duplicates; most objects are small, so it starts as a list.
type keySet struct {
	few  []string
	many map[string]struct{}
}

func (k *keySet) add(key string) bool {
	if k.many != nil {
		if _, twice := k.many[key]; twice {
			return false
		}
		k.many[key] = struct{}{}
		return true
	}
	for _, old := range k.few {
		if old == key {
			return false
		}
	}
	if k.few = append(k.few, key); len(k.few) > 16 {
		k.many = make(map[string]struct{}, 64)
		for _, old := range k.few {
			k.many[old] = struct{}{}
		}
	}
	return true
}

// unquote decodes a JSON string that checkJSON has passed.
func unquote(raw []byte) string {
	for _, c := range raw {
		if c == '\\' {
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				panic("runstore: a checked string does not decode: " + string(raw))
			}
			return s
		}
	}
	return string(raw[1 : len(raw)-1])
}

// member is one member of an object, or one element of an array (then without a key). Raw is
// a part of the document, off its place in it.
type member struct {
	key string
	raw []byte
	off int
}

// split returns the members or elements of a value that checkJSON has passed and that stands
// at base in its document, in their order. Any other value has none.
func split(raw []byte, base int) []member {
	s := scanner{data: raw}
	open := s.peek()
	if open != '{' && open != '[' {
		return nil
	}
	s.pos++
	var all []member
	for {
		switch s.peek() {
		case ',':
			s.pos++
			s.space()
		case '}', ']', 0:
			return all
		}
		var m member
		if open == '{' {
			at := s.pos
			s.skip()
			m.key = unquote(raw[at:s.pos])
			s.space()
			s.pos++ // the colon
			s.space()
		}
		from := s.pos
		s.skip()
		m.raw, m.off = raw[from:s.pos:s.pos], base+from
		all = append(all, m)
	}
}

// skip moves over one value of a checked document.
func (s *scanner) skip() {
	depth := 0
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case '"':
			for s.pos++; s.data[s.pos] != '"'; s.pos++ {
				if s.data[s.pos] == '\\' {
					s.pos++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return
			}
			depth--
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return
			}
		}
		s.pos++
		if depth == 0 && s.pos < len(s.data) && (s.data[s.pos-1] == '"' || s.data[s.pos-1] == '}' || s.data[s.pos-1] == ']') {
			return
		}
	}
}
