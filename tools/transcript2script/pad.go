package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

var errNoFit = errors.New("head and tail of a cut line do not fit together")

// pad returns a JSON text of exactly size characters that begins as head does and ends as tail
// does. Head is kept up to its last complete value or string, tail from the first place where it
// goes on after a value; what fills the middle is a value of its own, {"_pad":"xxx…"} in an array.
func pad(head, tail string, size int) (string, error) {
	h := headOf(head)
	for p := range len(tail) {
		begin, end, ok := h.join(tail[p:])
		if !ok || !json.Valid([]byte(begin+end)) || repeats([]byte(begin+end)) {
			continue
		}
		missing := size - utf8.RuneCountInString(begin) - utf8.RuneCountInString(end)
		if missing < 0 {
			return "", fmt.Errorf("%w: they are longer than the %d characters of the whole", errNoFit, size)
		}
		return begin + strings.Repeat("x", missing) + end, nil
	}
	return "", errNoFit
}

// opening is the kept part of a head: text ends after a value or an opening bracket.
type opening struct {
	text string
	// open are the brackets that are open at its end.
	open string
	// first says that the innermost container is still empty.
	first bool
	// bare: the head is nothing but the beginning of a string.
	bare bool
}

// headOf cuts the head back to its last place where a value may follow, after closing a string
// that it ends in.
func headOf(head string) opening {
	var open []byte
	best := opening{}
	keep := func(end int, suffix string, first bool) {
		best = opening{text: head[:end] + suffix, open: string(open), first: first}
	}
	key := false // the next string is a member's name
	for i := 0; i < len(head); i++ {
		switch c := head[i]; c {
		case '{', '[':
			open = append(open, c)
			key = c == '{'
			keep(i+1, "", true)
		case '}', ']':
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
			keep(i+1, "", false)
		case ',':
			key = len(open) > 0 && open[len(open)-1] == '{'
		case ':':
			key = false
		case '"':
			end, closed := stringEnd(head, i)
			switch {
			case closed && !key:
				keep(end, "", false)
			case !closed && len(open) == 0:
				return opening{text: head[:end], bare: true}
			case !closed && !key:
				keep(end, `"`, false)
			}
			i = end - 1
		default:
			// A number or a word counts once something stands behind it.
			if end := i + strings.IndexAny(head[i:], ",]} "); end > i && !key && strings.ContainsRune("-0123456789tfn", rune(c)) {
				keep(end, "", false)
				i = end - 1
			}
		}
	}
	return best
}

// stringEnd returns the index after the string that begins at i. Where the string does not end,
// it is that of its last whole character.
func stringEnd(s string, i int) (end int, closed bool) {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '"':
			return i + 1, true
		case '\\':
			step := 1
			if i+1 < len(s) && s[i+1] == 'u' {
				step = 5
			}
			if i+step >= len(s) {
				return i, false
			}
			i += step
		}
	}
	return len(s), false
}

// join puts what fits of the tail behind the head: begin and end are the two halves of a text,
// between which any number of x may stand.
func (o opening) join(tail string) (begin, end string, ok bool) {
	if o.bare {
		return o.text, tail, true
	}
	closers, ok := closersOf(tail)
	if !ok || len(closers) > len(o.open) {
		return "", "", false
	}
	begin = o.text
	for i := len(o.open) - 1; i >= len(closers); i-- {
		begin += closer(o.open[i])
	}
	first := o.first && len(closers) == len(o.open)
	for i, c := range closers {
		if closer(o.open[len(closers)-1-i]) != string(c) {
			return "", "", false
		}
	}
	if len(closers) == 0 {
		return "", "", false // nothing is left open in which something could stand
	}
	if !first {
		begin += ","
	}
	if o.open[len(closers)-1] == '[' {
		return begin + `{"_pad":"`, `"}` + tail, true
	}
	return begin + `"_pad":"`, `"` + tail, true
}

func closer(open byte) string {
	if open == '{' {
		return "}"
	}
	return "]"
}

// closersOf returns the brackets that the tail closes and does not open. It goes on after a value,
// so it has to begin with a comma or a bracket.
func closersOf(tail string) (string, bool) {
	trimmed := strings.TrimLeft(tail, " ")
	if trimmed == "" || !strings.ContainsRune(",]}", rune(trimmed[0])) {
		return "", false
	}
	var out []byte
	depth := 0
	for i := 0; i < len(tail); i++ {
		switch tail[i] {
		case '"':
			end, closed := stringEnd(tail, i)
			if !closed {
				return "", false
			}
			i = end - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth > 0 {
				depth--
				continue
			}
			out = append(out, tail[i])
		}
	}
	return string(out), depth == 0
}

// repeats says that an object somewhere in the text has a member twice.
func repeats(text []byte) bool {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	again, err := repeatsIn(d)
	return err != nil || again
}

func repeatsIn(d *json.Decoder) (bool, error) {
	token, err := d.Token()
	if err != nil {
		return false, err
	}
	open, nested := token.(json.Delim)
	if !nested {
		return false, nil
	}
	seen := map[string]bool{}
	for d.More() {
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return false, err
			}
			if seen[name.(string)] {
				return true, nil
			}
			seen[name.(string)] = true
		}
		if again, err := repeatsIn(d); again || err != nil {
			return again, err
		}
	}
	_, err = d.Token()
	return false, err
}
