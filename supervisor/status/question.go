package status

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"greatminds/runstore"
)

// What a question shows of what it is about: rows of a value, characters of a row, members, paths and
// contents. The record has it whole, and the text says where it shows less.
const (
	maxBlock  = 24
	maxWide   = 160
	maxTitle  = 200
	maxFields = 12
	maxDiffs  = 8
)

// described is what a person is shown of a tool's description, its members as the protocol spells them.
type described struct {
	Title, Kind string
	Locations   []string
	Content     []json.RawMessage
	RawInput    json.RawMessage
	// Others are the names of all other members, and of those of another shape than the protocol's.
	Others []string
	all    object
}

// object is a JSON object, whose names are matched to the letter: a struct also takes "Path" for "path".
type object map[string]json.RawMessage

// objectOf reads one; what is none has no members.
func objectOf(raw json.RawMessage) (o object) {
	_ = json.Unmarshal(raw, &o)
	return o
}

// text is a member that is a text, empty where it is none.
func (o object) text(name string) (s string) {
	_ = json.Unmarshal(o[name], &s)
	return s
}

// fits tells whether a member can be read as such a value, or says nothing.
func (o object) fits(name string, into any) bool {
	return len(o[name]) == 0 || json.Unmarshal(o[name], into) == nil
}

// describe reads a tool's description.
func describe(tool json.RawMessage) described {
	o := objectOf(tool)
	d := described{RawInput: o["rawInput"], all: o}
	var locations []json.RawMessage
	known := map[string]bool{"toolCallId": true, "status": true, "rawInput": true, "title": o.fits("title", &d.Title),
		"kind": o.fits("kind", &d.Kind), "locations": o.fits("locations", &locations), "content": o.fits("content", &d.Content)}
	for _, l := range locations {
		path := objectOf(l).text("path")
		if path == "" {
			path = string(l)
		}
		d.Locations = append(d.Locations, path)
	}
	for _, name := range keys(o) {
		if !known[name] {
			d.Others = append(d.Others, name)
		}
	}
	return d
}

// Choices are the options that may be chosen, in the agent's order; a person names them by number from 1.
func Choices(p *runstore.Permission) []runstore.Option {
	var out []runstore.Option
	for _, o := range p.Options {
		if o.Once() {
			out = append(out, o)
		}
	}
	return out
}

// QuestionText shows one question to a person: who asks, what for, how long there is for an answer, and
// the options. All of it is escaped; every line that holds an agent's text begins with a mark of ours.
// run is whose question it is, nil where that is not known.
func QuestionText(p *runstore.Permission, run *runstore.Run, now time.Time, from Source) string {
	d := describe(p.Tool)
	var b sheet
	fmt.Fprintf(&b, "Question %s: %s", p.ID, p.Status)
	if p.OptionID != "" {
		fmt.Fprintf(&b, " with %s", safe(p.OptionID, 80))
	}
	if p.Reason != "" {
		fmt.Fprintf(&b, " (%s)", safe(p.Reason, 80))
	}
	switch {
	case p.Status != "pending":
	case from == NoDaemon:
		b.WriteString(" when the daemon ended")
	default:
		fmt.Fprintf(&b, ", %s left", left(p.ExpiresAt, now))
	}
	b.WriteString("\n")
	if p.Status == "pending" && from != FromDaemon {
		for _, l := range from.answerLines(p)[1:] {
			b.WriteString(l + "\n")
		}
	}
	if run != nil {
		fmt.Fprintf(&b, "Task      %s (run %s, %s as %s)\nAgent     %s, working in %s\n", run.TaskID, run.ID, run.BindingID, run.Role, run.AgentID, safe(run.Workspace, maxWide))
	} else {
		fmt.Fprintf(&b, "Run       %s\n", p.RunID)
	}
	fmt.Fprintf(&b, "Tool      %s\n", called(d.Kind, d.Title))
	if utf8.RuneCountInString(d.Title) > maxTitle || strings.ContainsAny(strings.TrimSpace(d.Title), "\r\n") {
		b.block("Title", d.Title)
	}
	for i, path := range d.Locations {
		if i == maxFields {
			b.left("Path      and %d more", len(d.Locations)-i)
			break
		}
		b.block("Path", path)
	}
	d.input(&b)
	d.contents(&b)
	d.others(&b)
	b.WriteString("\n")
	if b.short {
		fmt.Fprintf(&b, "NOT ALL OF IT IS SHOWN: greatminds run permission %s --json has the whole.\n\n", p.ID)
	}
	number := 0
	for _, o := range p.Options {
		if o.Once() {
			number++
			fmt.Fprintf(&b, "  %d  %-11s  %s [%s]\n", number, o.Kind, word(safe(o.Name, 80), "without a name"), safe(o.OptionID, 80))
		} else {
			fmt.Fprintf(&b, "  -  %-11s  %s (holds for later questions too, and cannot be chosen)\n", safe(o.Kind, 40), safe(o.Name, 80))
		}
	}
	if number == 0 {
		fmt.Fprintf(&b, "None can be chosen; `greatminds run cancel %s` ends the run.\n", p.RunID)
	}
	return strings.TrimRight(b.String(), "\n")
}

// input shows the members of the raw input, commands first.
func (d described) input(b *sheet) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(d.RawInput, &fields) != nil {
		if len(d.RawInput) > 0 && string(d.RawInput) != "null" {
			b.block("Input", plain(d.RawInput))
		}
		return
	}
	names := keys(fields)
	slices.SortStableFunc(names, func(x, y string) int { return rank(x) - rank(y) })
	for i, name := range names {
		if i == maxFields {
			b.left("Input     and %d more members", len(names)-i)
			return
		}
		b.block("Input "+safe(name, 40), plain(fields[name]))
	}
}

func rank(name string) int {
	if i := slices.Index([]string{"command", "cmd", "argv", "description", "path", "file_path"}, name); i >= 0 {
		return i
	}
	return 9
}

// plain is a value as a person reads it: a string's text, a list of words as words, else its JSON.
func plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var words []string
	if json.Unmarshal(raw, &words) == nil {
		return strings.Join(words, " ")
	}
	return string(raw)
}

// contents shows texts, and diffs by what they take away and add; whatever else there is, as it is.
func (d described) contents(b *sheet) {
	for i, raw := range d.Content {
		if i == maxDiffs {
			b.left("Content   and %d more", len(d.Content)-i)
			return
		}
		c := objectOf(raw)
		said := objectOf(c["content"])
		switch {
		case c.text("type") == "diff" && c.isChange():
			change(b, c)
		case c.text("type") == "content" && said.text("type") == "text":
			if text := said.text("text"); text != "" {
				b.block("Content", text)
			}
		default:
			b.block("Content", string(raw))
		}
	}
}

// others shows the members that the protocol does not have, or not in this shape.
func (d described) others(b *sheet) {
	for i, name := range d.Others {
		if i == maxFields {
			b.left("Member    and %d more", len(d.Others)-i)
			return
		}
		b.block("Member "+safe(name, 40), plain(d.all[name]))
	}
}

// isChange tells whether all that a diff says can be shown.
func (o object) isChange() bool {
	var text string
	return o.fits("path", &text) && o.fits("oldText", &text) && o.fits("newText", &text)
}

// change shows a diff.
func change(b *sheet, c object) {
	path := c.text("path")
	gone, come := changedLines(c.text("oldText"), c.text("newText"))
	shown := safe(path, maxWide)
	fmt.Fprintf(b, "Change    %s: %d lines out, %d in\n", shown, len(gone), len(come))
	if shown != path {
		b.block("Path", path)
	}
	b.lines("- ", gone)
	b.lines("+ ", come)
}

// changedLines are the lines between the common start and the common end of two texts.
func changedLines(before, after string) (gone, come []string) {
	gone, come = split(before), split(after)
	for len(gone) > 0 && len(come) > 0 && gone[0] == come[0] {
		gone, come = gone[1:], come[1:]
	}
	for len(gone) > 0 && len(come) > 0 && gone[len(gone)-1] == come[len(come)-1] {
		gone, come = gone[:len(gone)-1], come[:len(come)-1]
	}
	return gone, come
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// QuestionList shows the open questions with the commands that lead on.
func QuestionList(open []*runstore.Permission, tasks map[runstore.PermissionID]runstore.TaskID, now time.Time, from Source) string {
	if len(open) == 0 {
		return "no open questions"
	}
	var out []string
	for _, p := range open {
		out = append(out, AskLines(p, string(tasks[p.ID]), now, from)...)
	}
	return strings.Join(out, "\n")
}

// AskLines are the lines of an open question: what is asked, and the commands that show and answer it.
// Where nobody can answer it now they say so, and what becomes of it.
func AskLines(p *runstore.Permission, task string, now time.Time, from Source) []string {
	tool := describe(p.Tool)
	what := safe(tool.Title, maxTitle) + " (" + safe(tool.Kind, 40) + ")"
	if from == NoDaemon {
		return append([]string{task + " asked: " + what}, from.answerLines(p)...)
	}
	return append([]string{fmt.Sprintf("%s asks: %s, %s left", task, what, left(p.ExpiresAt, now))}, from.answerLines(p)...)
}
