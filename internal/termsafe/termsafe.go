// Package termsafe makes text from agents safe to show on a terminal.
//
// Control and format characters become visible escapes, so that no sequence of the agent's
// reaches the terminal, nothing is overwritten, hidden or reordered, also when a character
// or sequence is cut between two chunks. The output holds only printable characters, spaces
// and, where asked for, newlines and tabs; what is printable stays as it is. Escapes are for
// the eye: a backslash in the text is left alone, so they cannot be undone.
package termsafe

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns s as one line: newlines and tabs are escaped too.
func Line(s string) string { return escape(s, false) }

// Text returns s with its newlines and tabs.
func Text(s string) string { return escape(s, true) }

// escape works on complete text: bytes that are no UTF-8 are escaped one by one.
func escape(s string, layout bool) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return unsafe(r, layout) }) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !unsafe(r, layout):
			b.WriteString(s[i : i+size])
		default:
			writeEscape(&b, r)
		}
		i += size
	}
	return b.String()
}

// unsafe says that a character must not reach a terminal as it is.
func unsafe(r rune, layout bool) bool {
	switch {
	case r == '\n' || r == '\t':
		return !layout
	case r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0:
		return true
	case r < 0xa0:
		return false
	}
	// Format characters reorder and hide text; the separators are line ends to some.
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// JSON returns a JSON text whose strings show nothing unsafe, with the escapes of JSON: it stands for the same
// values as before.
func JSON(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return unsafe(r, true) }) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 64)
	for _, r := range s {
		if !unsafe(r, true) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

func writeEscape(b *strings.Builder, r rune) {
	switch {
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\t':
		b.WriteString(`\t`)
	case r == '\r':
		b.WriteString(`\r`)
	case r < 0x80:
		fmt.Fprintf(b, `\x%02x`, r)
	case r <= 0xffff:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}

// Writer escapes a stream; characters may be cut between two writes. Newlines and tabs stay.
// It is not safe for concurrent use.
type Writer struct {
	to   io.Writer
	rest []byte // the start of a character, at most 3 bytes
}

// NewWriter returns a writer that passes safe text on to w.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// Write takes all of p. It fails as the writer below fails.
func (w *Writer) Write(p []byte) (int, error) {
	b := append(w.rest, p...)
	whole := len(b) - unfinished(b)
	w.rest = append([]byte(nil), b[whole:]...)
	if _, err := io.WriteString(w.to, Text(string(b[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush passes on what is left of a character that was never finished.
func (w *Writer) Flush() error {
	b := w.rest
	w.rest = nil
	_, err := io.WriteString(w.to, Text(string(b)))
	return err
}

// unfinished returns how many bytes at the end of b are the start of a character.
func unfinished(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
