package runstore

import (
	"bytes"
	"encoding/json"
)

// What stands here moves over documents that checkJSON has passed, and checks nothing.

// member is one member of an object, or one element of an array (then without a key). Raw is
// a part of the document, off its place in it.
type member struct {
	key string
	raw []byte
	off int
	// kids are the value's own members, where outline has cut it.
	kids []member
}

// child adds an empty member to m and returns it; nil where m is nil.
func (m *member) child(key []byte) *member {
	if m == nil {
		return nil
	}
	m.kids = append(m.kids, member{})
	kid := &m.kids[len(m.kids)-1]
	if key != nil {
		kid.key = unquote(bytes.TrimRight(key, " \t\r\n"))
	}
	return kid
}

// shift moves the places of m and its members.
func (m *member) shift(by int) {
	m.off += by
	for i := range m.kids {
		m.kids[i].shift(by)
	}
}

// members returns the members or elements of m's value, in their order.
func (m member) members() []member {
	if m.kids != nil {
		return m.kids
	}
	return split(m.raw, m.off)
}

// walker visits the members of an object, or the elements of an array.
type walker struct {
	s    scanner
	open byte
	base int

	// key is the present member's key as it is written, with its quotes, nil in an array; keyAt
	// is its place in the document.
	key   []byte
	keyAt int
	// raw is the present value, off its place in the document.
	raw []byte
	off int
}

// walk begins at a value that stands at base in its document. A value that is neither object
// nor array has no members.
func walk(raw []byte, base int) walker {
	w := walker{s: scanner{data: raw}, base: base}
	if open := w.s.peek(); open == '{' || open == '[' {
		w.open = open
		w.s.pos++
	}
	return w
}

// next moves to the next member, and tells whether there is one.
func (w *walker) next() bool {
	if w.open == 0 {
		return false
	}
	s := &w.s
	switch s.peek() {
	case ',':
		s.pos++
		s.space()
	case '}', ']', 0:
		return false
	}
	if w.open == '{' {
		at := s.pos
		s.pos = textEnd(s.data, at)
		w.key, w.keyAt = s.data[at:s.pos], w.base+at
		s.space()
		s.pos++ // the colon
		s.space()
	}
	from := s.pos
	s.skip()
	w.raw, w.off = s.data[from:s.pos:s.pos], w.base+from
	return true
}

// name returns the present member's key.
func (w *walker) name() string {
	if w.key == nil {
		return ""
	}
	return unquote(w.key)
}

// split returns the members or elements of a value that stands at base in its document, in
// their order. Any other value has none.
func split(raw []byte, base int) []member {
	var all []member
	for w := walk(raw, base); w.next(); {
		all = append(all, member{key: w.name(), raw: w.raw, off: w.off})
	}
	return all
}

// textEnd returns where the string that begins at at ends.
func textEnd(data []byte, at int) int {
	for at++; data[at] != '"'; at++ {
		if data[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// skip moves over one value.
func (s *scanner) skip() {
	data, i := s.data, s.pos
	switch data[i] {
	case '"':
		i = textEnd(data, i)
	case '{', '[':
		for depth := 0; ; {
			switch data[i] {
			case '"':
				i = textEnd(data, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			i++
			if depth == 0 {
				break
			}
		}
	default:
		for i < len(data) && !ends[data[i]] {
			i++
		}
	}
	s.pos = i
}

// ends tells which bytes end a number or word.
var ends = [256]bool{',': true, ':': true, '}': true, ']': true, ' ': true, '\t': true, '\n': true, '\r': true}

// unquote decodes a string.
func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		panic("runstore: a checked string does not decode: " + string(raw))
	}
	return s
}

// compact appends the value at s to dst without white space. It gives up, with false, where
// keys are not sorted or hold escapes: such a value is sorted by appendCanonical.
func (s *scanner) compact(dst []byte) ([]byte, bool) {
	open := s.data[s.pos]
	if open != '{' && open != '[' {
		from := s.pos
		s.skip()
		return append(dst, s.data[from:s.pos]...), true
	}
	dst = append(dst, open)
	s.pos++
	var last []byte
	for first := true; ; first = false {
		switch s.peek() {
		case '}', ']':
			s.pos++
			return append(dst, open+2), true // '{' and '}', '[' and ']' are two apart
		case ',':
			s.pos++
			s.space()
		}
		if !first {
			dst = append(dst, ',')
		}
		if open == '{' {
			at := s.pos
			s.pos = textEnd(s.data, at)
			key := s.data[at+1 : s.pos-1]
			if bytes.IndexByte(key, '\\') >= 0 || last != nil && bytes.Compare(last, key) >= 0 {
				return dst, false
			}
			last = key
			dst = append(append(dst, s.data[at:s.pos]...), ':')
			s.space()
			s.pos++ // the colon
			s.space()
		}
		var ok bool
		if dst, ok = s.compact(dst); !ok {
			return dst, false
		}
	}
}
