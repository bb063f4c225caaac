package transport

import "encoding/binary"

// maxDepth bounds nesting. The SDK's decoder would take 10000; nobody means more than this.
const maxDepth = 1000

// skipSpace returns the index of the first byte at or after i that is no JSON white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// skipValue returns the index after the JSON value that starts at b[i], or -1 when there is
// no complete and valid one. It accepts what encoding/json accepts, down to maxDepth; what it
// accepts can therefore be handed to the SDK without its decoder failing.
func skipValue(b []byte, i, depth int) int {
	if i >= len(b) || depth > maxDepth {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{':
		return skipObject(b, i, depth)
	case '[':
		return skipArray(b, i, depth)
	case 't':
		return skipWord(b, i, "true")
	case 'f':
		return skipWord(b, i, "false")
	case 'n':
		return skipWord(b, i, "null")
	}
	return skipNumber(b, i)
}

func skipWord(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

func skipString(b []byte, i int) int {
	i++
	for {
		i = skipPlain(b, i)
		if i >= len(b) {
			return -1
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i = skipEscape(b, i); i < 0 {
				return -1
			}
		case c < 0x20:
			return -1
		}
		i++
	}
}

// skipPlain skips eight bytes at a time while none of them ends, escapes or breaks a string.
// It may stop early, never late.
func skipPlain(b []byte, i int) int {
	const (
		ones = 0x0101010101010101
		high = 0x8080808080808080
	)
	for ; i+8 <= len(b); i += 8 {
		v := binary.LittleEndian.Uint64(b[i:])
		quote, slash := v^('"'*ones), v^('\\'*ones)
		// A byte's high bit stands where the byte was below what was taken from it.
		if ((v-0x20*ones)&^v|(quote-ones)&^quote|(slash-ones)&^slash)&high != 0 {
			return i
		}
	}
	return i
}

// skipEscape returns the index of the last byte of the escape that starts at b[i].
func skipEscape(b []byte, i int) int {
	if i+1 >= len(b) {
		return -1
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if i+5 >= len(b) {
			return -1
		}
		for _, c := range b[i+2 : i+6] {
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
				return -1
			}
		}
		return i + 5
	}
	return -1
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

func skipNumber(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	from := i
	if i = skipDigits(b, i); i == from || (b[from] == '0' && i > from+1) {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		from = i + 1
		if i = skipDigits(b, from); i == from {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		from = i
		if i = skipDigits(b, i); i == from {
			return -1
		}
	}
	return i
}

func skipObject(b []byte, i, depth int) int {
	m := members{b: b, i: i, depth: depth}
	for m.next() {
	}
	return m.end()
}

func skipArray(b []byte, i, depth int) int {
	e := elements{b: b, i: i, depth: depth}
	for e.next() {
	}
	return e.end()
}

// members walks the members of the object that starts at b[i]; the walk validates.
type members struct {
	b     []byte
	i     int
	depth int
	state int8 // 0 before '{', 1 inside, 2 after '}', -1 malformed
	// key is the raw key without its quotes, value the raw value.
	key, value []byte
}

// next moves to the next member; false at the object's end and at the first fault.
func (m *members) next() bool {
	b, i := m.b, m.i
	switch m.state {
	case 0:
		if i >= len(b) || b[i] != '{' {
			return m.fail()
		}
		i = skipSpace(b, i+1)
		if i < len(b) && b[i] == '}' {
			return m.close(i + 1)
		}
		m.state = 1
	case 1:
		i = skipSpace(b, i)
		switch {
		case i < len(b) && b[i] == '}':
			return m.close(i + 1)
		case i >= len(b) || b[i] != ',':
			return m.fail()
		}
		i = skipSpace(b, i+1)
	default:
		return false
	}
	return m.member(i)
}

func (m *members) member(i int) bool {
	b := m.b
	if i >= len(b) || b[i] != '"' {
		return m.fail()
	}
	k := skipString(b, i)
	if k < 0 {
		return m.fail()
	}
	m.key = b[i+1 : k-1]
	if i = skipSpace(b, k); i >= len(b) || b[i] != ':' {
		return m.fail()
	}
	i = skipSpace(b, i+1)
	v := skipValue(b, i, m.depth+1)
	if v < 0 {
		return m.fail()
	}
	m.value, m.i = b[i:v], v
	return true
}

func (m *members) fail() bool       { m.state = -1; return false }
func (m *members) close(i int) bool { m.state, m.i = 2, i; return false }

// end returns the index after the object once next has returned false, -1 when malformed.
func (m *members) end() int {
	if m.state != 2 {
		return -1
	}
	return m.i
}

// elements walks the elements of the array that starts at b[i]; the walk validates.
type elements struct {
	b     []byte
	i     int
	depth int
	state int8
	value []byte
}

func (e *elements) next() bool {
	b, i := e.b, e.i
	switch e.state {
	case 0:
		if i >= len(b) || b[i] != '[' {
			e.state = -1
			return false
		}
		i = skipSpace(b, i+1)
		if i < len(b) && b[i] == ']' {
			e.state, e.i = 2, i+1
			return false
		}
		e.state = 1
	case 1:
		i = skipSpace(b, i)
		if i < len(b) && b[i] == ']' {
			e.state, e.i = 2, i+1
			return false
		}
		if i >= len(b) || b[i] != ',' {
			e.state = -1
			return false
		}
		i = skipSpace(b, i+1)
	default:
		return false
	}
	v := skipValue(b, i, e.depth+1)
	if v < 0 {
		e.state = -1
		return false
	}
	e.value, e.i = b[i:v], v
	return true
}

func (e *elements) end() int {
	if e.state != 2 {
		return -1
	}
	return e.i
}
