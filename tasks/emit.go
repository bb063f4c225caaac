package tasks

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The emitter writes one fixed spelling of every value: block style, list items under their
// key without indent, texts plain where no reader can mistake them, else in single quotes, text
// of several lines as a literal block, and everything unusual in double quotes. Lines are not
// folded. What it writes is read back as the same values by us and by any YAML 1.1 or 1.2
// reader.

// emitFields spells a mapping, each line behind indent.
func emitFields(b *strings.Builder, indent string, fields Fields) {
	for _, f := range fields {
		b.WriteString(indent)
		emitField(b, indent, f)
	}
}

func emitField(b *strings.Builder, indent string, f Field) {
	b.WriteString(quoted(f.Key))
	b.WriteByte(':')
	switch v := f.Value.(type) {
	case Fields:
		if len(v) == 0 {
			b.WriteString(" {}\n")
			return
		}
		b.WriteByte('\n')
		emitFields(b, indent+"  ", v)
	case []any:
		if len(v) == 0 {
			b.WriteString(" []\n")
			return
		}
		b.WriteByte('\n')
		emitList(b, indent, v)
	default:
		b.WriteByte(' ')
		emitScalar(b, indent+"  ", v)
	}
}

func emitList(b *strings.Builder, indent string, list []any) {
	for _, item := range list {
		b.WriteString(indent)
		emitItem(b, indent, item)
	}
}

// emitItem spells one list item, its dash at the end of what stands on the line already.
func emitItem(b *strings.Builder, indent string, item any) {
	b.WriteByte('-')
	switch v := item.(type) {
	case Fields:
		if len(v) == 0 {
			b.WriteString(" {}\n")
			return
		}
		for i, f := range v {
			if i == 0 {
				b.WriteByte(' ')
			} else {
				b.WriteString(indent + "  ")
			}
			emitField(b, indent+"  ", f)
		}
	case []any:
		if len(v) == 0 {
			b.WriteString(" []\n")
			return
		}
		for i, inner := range v {
			if i == 0 {
				b.WriteByte(' ')
			} else {
				b.WriteString(indent + "  ")
			}
			emitItem(b, indent+"  ", inner)
		}
	default:
		b.WriteByte(' ')
		emitScalar(b, indent+"  ", v)
	}
}

// emitScalar spells a single value and ends the line. indent is that of a literal block's lines.
func emitScalar(b *strings.Builder, indent string, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(floatText(v))
	case string:
		if literal(v) {
			emitLiteral(b, indent, v)
			return
		}
		b.WriteString(quoted(v))
	default:
		panic(fmt.Sprintf("tasks: a value of type %T cannot stand in a task", v))
	}
	b.WriteByte('\n')
}

// literal reports whether a text of several lines can be a literal block: its first line
// neither begins with a space nor is empty, no line is made of spaces, and nothing in it needs
// an escape.
func literal(s string) bool {
	if !strings.Contains(strings.TrimSuffix(s, "\n"), "\n") || strings.HasSuffix(s, "\n\n") {
		return false
	}
	lines := strings.Split(s, "\n")
	if lines[0] == "" || lines[0][0] == ' ' || lines[0][0] == '\t' {
		return false
	}
	for _, line := range lines {
		if line != "" && strings.TrimLeft(line, " \t") == "" || !oneLine(line, true) {
			return false
		}
	}
	return true
}

func emitLiteral(b *strings.Builder, indent, s string) {
	body, ended := strings.CutSuffix(s, "\n")
	b.WriteByte('|')
	if !ended {
		b.WriteByte('-')
	}
	b.WriteByte('\n')
	for line := range strings.SplitSeq(body, "\n") {
		if line != "" {
			b.WriteString(indent + line)
		}
		b.WriteByte('\n')
	}
}

// oneLine reports whether a text needs no escape and holds no line break of any YAML version.
func oneLine(s string, tabs bool) bool {
	for _, c := range s {
		if c == '\t' && tabs {
			continue
		}
		if !printable(c) || c == 0x85 || c == 0x2028 || c == 0x2029 {
			return false
		}
	}
	return utf8.ValidString(s)
}

// printable is YAML 1.1's set of characters that may stand unescaped, without tab and breaks.
func printable(c rune) bool {
	switch {
	case c >= 0x20 && c <= 0x7e, c == 0x85, c >= 0xa0 && c <= 0xd7ff:
		return true
	case c >= 0xe000 && c <= 0xfffd:
		return c != 0xfeff
	}
	return c >= 0x10000 && c <= 0x10ffff
}

// quoted spells a text on one line: plain, in single or in double quotes.
func quoted(s string) string {
	switch {
	case plain(s):
		return s
	case oneLine(s, false):
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return doubleQuoted(s)
}

// plain reports whether a text needs no quotes anywhere in a block mapping or list.
func plain(s string) bool {
	if s == "" || ambiguous(s) || !oneLine(s, false) || strings.TrimSpace(s) != s {
		return false
	}
	if strings.ContainsRune("-?:,[]{}#&*!|>'\"%@`=<~", rune(s[0])) || strings.HasPrefix(s, "...") {
		return false
	}
	return !strings.Contains(s, ": ") && !strings.HasSuffix(s, ":") && !strings.Contains(s, " #")
}

var shortEscapes = map[rune]string{
	0: `\0`, '\a': `\a`, '\b': `\b`, '\t': `\t`, '\n': `\n`, '\v': `\v`, '\f': `\f`, '\r': `\r`, 0x1b: `\e`,
	'"': `\"`, '\\': `\\`, 0x85: `\N`, 0xa0: `\_`, 0x2028: `\L`, 0x2029: `\P`,
}

func doubleQuoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		if escape, ok := shortEscapes[c]; ok {
			b.WriteString(escape)
			continue
		}
		switch {
		case printable(c):
			b.WriteRune(c)
		case c <= 0xff:
			fmt.Fprintf(&b, `\x%02X`, c)
		case c <= 0xffff:
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			fmt.Fprintf(&b, `\U%08X`, c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
