package setup

import (
	"bytes"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"greatminds/internal/yamldoc"
)

// plainWord is text that may stand without quotes for every reader of YAML.
var plainWord = regexp.MustCompile(`^[a-z][a-z0-9/-]{3,}$`)

// scalar writes a text so that every reader of YAML takes it for text.
func scalar(s string) string {
	if plainWord.MatchString(s) && s != "true" && s != "false" && s != "null" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// endLine is a text that ends with a line end, unless it is empty.
func endLine(data []byte) []byte {
	data = slices.Clip(data)
	if len(data) > 0 && data[len(data)-1] != '\n' {
		return append(data, '\n')
	}
	return data
}

// splice puts text at an offset.
func splice(data []byte, at int, text string) []byte {
	return slices.Concat(data[:at], []byte(text), data[at:])
}

// lineStarts are the offsets of the first byte of each line.
func lineStarts(data []byte) []int {
	starts := []int{0}
	for i, c := range data {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// offset is where a node begins. A byte order mark counts for no column.
func offset(data []byte, lines []int, n *yamldoc.Node) int {
	if n.Line > len(lines) {
		return len(data)
	}
	at := lines[n.Line-1]
	if n.Line == 1 && bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		at += 3
	}
	for c := 1; c < n.Column && at < len(data); c++ {
		_, size := utf8.DecodeRune(data[at:])
		at += size
	}
	return at
}

// opens reports whether a node begins with this character.
func opens(data []byte, lines []int, n *yamldoc.Node, c byte) bool {
	at := offset(data, lines, n)
	return at < len(data) && data[at] == c
}

func sameValue(a, b any) bool { return reflect.DeepEqual(a, b) }
