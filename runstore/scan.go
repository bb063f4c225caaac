package runstore

import (
	"bytes"
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
	return s.document(depth, nil)
}

// outline checks data as checkJSON does and returns its value, cut into members and elements
// down to the given number of levels. One pass does both.
func outline(data []byte, levels int) (member, error) {
	s, root := scanner{data: data, levels: levels}, member{}
	s.space()
	from := s.pos
	if err := s.document(0, &root); err != nil {
		return member{}, err
	}
	root.off = from
	return root, nil
}

func (s *scanner) document(depth int, into *member) error {
	if err := s.value(depth, into); err != nil {
		return err
	}
	s.space()
	if s.pos < len(s.data) {
		return faultAt(s.pos, "data after the end of the document")
	}
	return nil
}

type scanner struct {
	data []byte
	pos  int
	// levels is how deep the members of a document are kept.
	levels int
}

func (s *scanner) space() {
	i := s.pos
	for i < len(s.data) && (s.data[i] == ' ' || s.data[i] == '\n' || s.data[i] == '\t' || s.data[i] == '\r') {
		i++
	}
	s.pos = i
}

// peek returns the next byte that is no white space, 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) && s.data[s.pos] > ' ' {
		return s.data[s.pos]
	}
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

// value checks one value. Where into is given, the value's bytes go into it and, down to
// s.levels, its members.
func (s *scanner) value(depth int, into *member) error {
	if depth > maxDepth {
		return faultAt(s.pos, "nested deeper than %d", maxDepth)
	}
	s.space()
	from := s.pos
	kids := into
	if depth >= s.levels {
		kids = nil
	}
	if err := s.kind(depth, kids); err != nil {
		return err
	}
	if into != nil {
		into.raw, into.off = s.data[from:s.pos:s.pos], from
	}
	return nil
}

func (s *scanner) kind(depth int, into *member) error {
	switch c := s.peek(); {
	case c == '{':
		return s.object(depth, into)
	case c == '[':
		return s.array(depth, into)
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

func (s *scanner) object(depth int, into *member) error {
	from := s.pos
	s.pos++
	if s.peek() == '}' {
		s.pos++
		return nil
	}
	var last []byte
	sorted := true
	for {
		if s.peek() != '"' {
			return s.wrong("a key")
		}
		at := s.pos
		if err := s.text(); err != nil {
			return err
		}
		key := s.data[at+1 : s.pos-1]
		// Our own documents are sorted, and sorted keys are no duplicates.
		sorted = sorted && bytes.IndexByte(key, '\\') < 0 && (last == nil || bytes.Compare(last, key) < 0)
		last = key
		if s.peek() != ':' {
			return s.wrong("a colon")
		}
		s.pos++
		if err := s.value(depth+1, into.child(s.data[at:s.pos-1])); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.pos++
		case '}':
			s.pos++
			if !sorted {
				return duplicate(s.data[from:s.pos], from)
			}
			return nil
		default:
			return s.wrong("a comma or the object's end")
		}
	}
}

// duplicate finds a key that a well-formed object has twice.
func duplicate(object []byte, base int) error {
	seen := map[string]struct{}{}
	for w := walk(object, base); w.next(); {
		key := w.name()
		if _, twice := seen[key]; twice {
			return faultAt(w.keyAt, "duplicate key %q", key)
		}
		seen[key] = struct{}{}
	}
	return nil
}

func (s *scanner) array(depth int, into *member) error {
	s.pos++
	if s.peek() == ']' {
		s.pos++
		return nil
	}
	for {
		if err := s.value(depth+1, into.child(nil)); err != nil {
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

// plain tells which bytes stand for themselves in a string.
var plain = func() (table [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

func (s *scanner) text() error {
	s.pos++
	for {
		for s.pos < len(s.data) && plain[s.data[s.pos]] {
			s.pos++
		}
		if s.pos == len(s.data) {
			return s.wrong("the string's end")
		}
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
		default:
			r, n := utf8.DecodeRune(s.data[s.pos:])
			if r == utf8.RuneError && n == 1 {
				return faultAt(s.pos, "invalid UTF-8")
			}
			s.pos += n
		}
	}
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
