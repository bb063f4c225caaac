package yamldoc

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// AppendJSON appends the tree as compact JSON in the order of the file. Integers are written in
// their shortest form, floats as FormatFloat spells them. The tree must have no faults.
func (n *Node) AppendJSON(b []byte) []byte {
	switch n.Kind {
	case Mapping:
		b = append(b, '{')
		for i, f := range n.Fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(AppendString(b, f.Key.Text, false), ':')
			b = f.Value.AppendJSON(b)
		}
		return append(b, '}')
	case Sequence:
		b = append(b, '[')
		for i, item := range n.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.AppendJSON(b)
		}
		return append(b, ']')
	case String:
		return AppendString(b, n.Text, false)
	case Integer:
		if v, ok := new(big.Int).SetString(n.Text, 10); ok {
			return v.Append(b, 10)
		}
	case Float:
		if v, err := strconv.ParseFloat(n.Text, 64); err == nil {
			return append(b, FormatFloat(v)...)
		}
	case Boolean:
		return append(b, n.Text...)
	}
	return append(b, "null"...)
}

// FormatFloat spells a finite float so that it reads back exactly: plain digits from 1e-4 up to
// below 1e16, with ".0" when whole; outside that with a signed exponent of at least two digits.
func FormatFloat(f float64) string {
	abs := max(f, -f)
	if abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// AppendString appends a JSON string. Escaped are the quote, the backslash and control
// characters, nothing else; with ascii also every character outside ASCII, as \u and four
// lowercase hex digits, in surrogate pairs above the basic plane.
func AppendString(b []byte, s string, ascii bool) []byte {
	const hex = "0123456789abcdef"
	unit := func(u rune) {
		b = append(b, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
	}
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\b':
			b = append(b, `\b`...)
		case r == '\f':
			b = append(b, `\f`...)
		case r < 0x20, ascii && r == 0x7f:
			unit(r)
		case r < 0x80 || !ascii:
			b = utf8.AppendRune(b, r)
		case r > 0xffff:
			unit(0xd800 + (r-0x10000)>>10)
			unit(0xdc00 + (r-0x10000)&0x3ff)
		default:
			unit(r)
		}
	}
	return append(b, '"')
}
