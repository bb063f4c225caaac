package yamldoc

import (
	"bytes"
	"unicode/utf8"
)

// source is the input as lines, for what the parser does not tell.
type source struct {
	data []byte
	// starts holds the offset of each line's first byte.
	starts []int
	// The last place looked up. Places are asked for in the order of the file; to count from the
	// line's beginning each time would make one long line cost its square.
	lastLine, lastColumn, lastOffset int
}

// newSource drops a byte order mark and indexes the lines. A line ends with LF, CRLF or CR.
func newSource(data []byte) *source {
	s := &source{data: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), starts: []int{0}}
	for i, c := range s.data {
		if c == '\n' || c == '\r' && (i+1 == len(s.data) || s.data[i+1] != '\n') {
			s.starts = append(s.starts, i+1)
		}
	}
	return s
}

// line returns a line without its end; from 1.
func (s *source) line(n int) []byte {
	if n < 1 || n > len(s.starts) {
		return nil
	}
	end := len(s.data)
	if n < len(s.starts) {
		end = s.starts[n]
	}
	return bytes.TrimRight(s.data[s.starts[n-1]:end], "\r\n")
}

// upTo returns the first n lines.
func (s *source) upTo(n int) []byte {
	if n >= len(s.starts) {
		return s.data
	}
	return s.data[:s.starts[n]]
}

// before returns what stands on the line before a column, and what from there on.
func (s *source) before(line, column int) (head, tail []byte) {
	text := s.line(line)
	if line != s.lastLine || column < s.lastColumn {
		s.lastLine, s.lastColumn, s.lastOffset = line, 1, 0
	}
	for ; s.lastColumn < column && s.lastOffset < len(text); s.lastColumn++ {
		_, size := utf8.DecodeRune(text[s.lastOffset:])
		s.lastOffset += size
	}
	return text[:s.lastOffset], text[s.lastOffset:]
}

// indent is the column of the first character that is no blank.
func indent(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " \t")) + 1 }

// checkEncoding reports what is no text: other encodings, bytes that are no UTF-8, control
// characters, and line breaks that only YAML knows. It reports whether the file can be parsed.
func (s *source) checkEncoding(f *Faults) bool {
	before := f.Len()
	if bytes.HasPrefix(s.data, []byte("\xff\xfe")) || bytes.HasPrefix(s.data, []byte("\xfe\xff")) ||
		bytes.HasPrefix(s.data, []byte("\x00\x00\xfe\xff")) {
		f.AddAt(1, 1, "save it as UTF-8", "the file is in UTF-16 or UTF-32")
		return false
	}
	for n := range s.starts {
		column := 0
		for text := s.line(n + 1); len(text) > 0; {
			r, size := utf8.DecodeRune(text)
			column++
			if what := refusedRune(r, size); what != "" {
				f.AddAt(n+1, column, "remove it, or save the file as UTF-8", "%s (byte 0x%02x)", what, text[0])
			}
			text = text[size:]
		}
	}
	return f.Len() == before
}

// refusedRune says what is wrong with a character, "" when nothing is.
func refusedRune(r rune, size int) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return "a byte that is no UTF-8"
	case r == 0:
		return "a NUL character"
	case r == '\t':
		return ""
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return "a control character"
	case r == 0x2028, r == 0x2029:
		return "an invisible line break"
	case r == 0xfeff:
		return "a byte order mark inside the file"
	case r == 0xfffe, r == 0xffff:
		return "a character that is not in Unicode"
	}
	return ""
}
