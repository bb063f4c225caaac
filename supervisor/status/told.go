package status

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"greatminds/internal/termsafe"
	"greatminds/supervisor/activity"
)

// Teller turns what an agent is seen doing into lines for a terminal: its text line by line, also
// where it arrives in pieces, and everything else as one line each. All of it is escaped.
type Teller struct {
	partial string // of a text, without a newline
	kind    string
	text    bool
}

// Lines returns the lines that are complete after these items. A text goes on in the next item where
// that continues it; resumed says that the first item continues what was told last.
func (t *Teller) Lines(items []activity.Item, resumed bool) []string {
	var out []string
	for i, it := range items {
		said := it.Kind == activity.Message || it.Kind == activity.Thought
		if !(i == 0 && resumed || it.Continued && t.text && t.kind == it.Kind) {
			out = append(out, t.Rest()...)
		}
		if !said {
			out = append(out, line(it))
			continue
		}
		t.kind, t.text = it.Kind, true
		lines := strings.Split(t.partial+it.Text, "\n")
		t.partial = lines[len(lines)-1]
		for _, l := range lines[:len(lines)-1] {
			out = append(out, t.show(l))
		}
	}
	return out
}

// Rest returns the line that has not ended.
func (t *Teller) Rest() []string {
	rest, was := t.partial, t.text
	t.partial, t.text = "", false
	if !was || rest == "" {
		return nil
	}
	return []string{t.show(rest)}
}

func (t *Teller) show(l string) string {
	l = termsafe.Line(strings.TrimSuffix(l, "\r"))
	if t.kind == activity.Thought {
		return "~ " + l
	}
	return "  " + l
}

// line is an item that is no text. Each begins with a sign of its own, which no text of an agent has there.
func line(it activity.Item) string {
	switch it.Kind {
	case activity.Tool:
		return "* " + called(it.ToolKind, it.Title) + ": " + word(it.Status, "seen")
	case activity.Permission:
		out := "? " + called(it.ToolKind, it.Title) + ": " + word(it.Status, "asked")
		for _, more := range []string{it.Option, it.Reason} {
			if more != "" {
				out += " (" + safe(more, 80) + ")"
			}
		}
		return out
	case activity.Plan:
		return "# plan: " + planned(it)
	case activity.Mode:
		return "# mode: " + safe(it.Mode, 80)
	case activity.Stop:
		return "= turn ended: " + word(it.StopReason, "without a stop reason")
	}
	return "# " + safe(it.Kind, 80)
}

func planned(it activity.Item) string {
	var parts []string
	for _, e := range it.Entries {
		mark := map[string]string{"completed": "[x] ", "in_progress": "[>] "}[e.Status]
		if mark == "" {
			mark = "[ ] "
		}
		parts = append(parts, mark+safe(e.Content, 80))
	}
	if it.More > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", it.More))
	}
	return strings.Join(parts, "; ")
}

// called names a tool call.
func called(kind, title string) string {
	return "[" + word(kind, "tool") + "] " + word(safe(title, maxTitle), "without a title")
}

func word(s, none string) string {
	if s == "" {
		return none
	}
	return safe(s, 200)
}

// safe is an agent's text as part of a line: escaped, on one line, and at most n characters. Where its lines
// end is seen: a command below a comment is no part of it.
func safe(s string, n int) string {
	var lines []string
	for _, l := range strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if l = oneLine(l); l != "" {
			lines = append(lines, l)
		}
	}
	return cut(termsafe.Line(strings.Join(lines, "\n")), n)
}

// cut shortens a text to at most n characters, and says so.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	return string(runes[:n-1]) + "…"
}
