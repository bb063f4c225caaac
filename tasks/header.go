package tasks

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// StreamProduct and StreamReviewSession are the streams whose headers we know.
const (
	StreamProduct       = "product"
	StreamReviewSession = "review_session"
)

// timeLayout is how times are written: UTC, whole seconds.
const timeLayout = "2006-01-02T15:04:05Z"

var momentPattern = regexp.MustCompile(
	`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:[Zz]|[-+][0-9]{2}:?[0-9]{2})?$`)

// isMoment reports whether a text is a date and time as ISO 8601 writes it in full.
func isMoment(text string) bool {
	if !momentPattern.MatchString(text) {
		return false
	}
	_, err := time.Parse("2006-01-02T15:04:05", text[:19])
	return err == nil
}

// judge collects the faults of one task or block.
type judge struct {
	code   refusal.Code
	where  func(path string) string
	faults []refusal.Reason
}

func (j *judge) fault(path, remedy, format string, args ...any) {
	j.faults = append(j.faults, refusal.Reason{Code: j.code, Place: j.where(path), Remedy: remedy,
		What: fmt.Sprintf(format, args...)})
}

// text wants a text with something in it.
func (j *judge) text(path, name string, v any) string {
	s, ok := v.(string)
	if !ok || strings.TrimSpace(s) == "" {
		j.fault(path, "give it a text in quotes", "%s must be a text, got %s", name, shown(v))
	}
	return s
}

// word wants one of some words.
func (j *judge) word(path, name string, v any, words []string) {
	if s, ok := v.(string); !ok || !slices.Contains(words, s) {
		j.fault(path, "use one of "+strings.Join(words, ", "), "%s is %s", name, shown(v))
	}
}

// moment wants a date and time.
func (j *judge) moment(path, name string, v any) {
	if s, ok := v.(string); !ok || !isMoment(s) {
		j.fault(path, "write it as '2006-01-02T15:04:05Z'", "%s must be a date and time, got %s", name, shown(v))
	}
}

// flag wants a boolean.
func (j *judge) flag(path, name string, v any) {
	if _, ok := v.(bool); !ok {
		j.fault(path, "write true or false, without quotes", "%s must be true or false, got %s", name, shown(v))
	}
}

// texts wants a list of at least min texts.
func (j *judge) texts(path, name string, v any, min int) []string {
	list, ok := v.([]any)
	texts := textsOf(v)
	switch {
	case !ok || len(texts) != len(list):
		j.fault(path, "make it a list of texts", "%s must be a list of texts, got %s", name, shown(v))
	case len(texts) < min:
		j.fault(path, "name at least "+strconv.Itoa(min), "%s is empty", name)
	}
	return texts
}

// shown spells a value for a message, shortened.
func shown(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string:
		if r := []rune(v); len(r) > 60 {
			v = string(r[:60]) + "…"
		}
		return strconv.Quote(v)
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case Fields:
		return "a mapping"
	}
	return fmt.Sprint(v)
}

// headerFaults judges a task's header.
func headerFaults(s *contract.Schema, t *Task) []refusal.Reason {
	j := &judge{code: refusal.CodeTaskInvalid, where: t.placeOf}
	id, _ := t.Header.Get("id").(string)
	switch {
	case !ID(id).Valid():
		j.fault("id", "write four digits, a hyphen and a slug, such as 0007-add-login", "id is %s",
			shown(t.Header.Get("id")))
	case ID(id) != t.ID:
		j.fault("id", "rename the file, or mend the id", "id is %q, but the file is named %s.yaml", id, t.ID)
	}
	stream, known := s.Stream(t.Stream)
	if !known {
		var names []string
		for _, st := range s.Streams {
			names = append(names, st.Name)
		}
		j.fault("stream", "use one of "+strings.Join(names, ", "), "stream is %s", shown(t.Header.Get("stream")))
	}
	j.text("title", "title", t.Header.Get("title"))
	j.text("reporter", "reporter", t.Header.Get("reporter"))
	j.moment("opened_at", "opened_at", t.Header.Get("opened_at"))
	j.word("priority", "priority", t.Header.Get("priority"), s.Enums.Priorities)
	switch stream.Name {
	case StreamReviewSession:
		j.word("kind", "kind", t.Header.Get("kind"), []string{StreamReviewSession})
		j.word("mode", "mode", t.Header.Get("mode"), s.Enums.Modes)
		j.text("target_functionality", "target_functionality", t.Header.Get("target_functionality"))
		if list, ok := t.Header.Get("scenarios").([]any); !ok || len(list) == 0 {
			j.fault("scenarios", "list at least one", "scenarios must be a list with something in it, got %s",
				shown(t.Header.Get("scenarios")))
		}
	case StreamProduct:
		j.word("kind", "kind", t.Header.Get("kind"), s.Enums.Kinds)
		j.word("scope", "scope", t.Header.Get("scope"), s.Enums.Scopes)
	}
	return j.faults
}

// blockFaults judges the form and the fields of every block a task holds.
func blockFaults(s *contract.Schema, t *Task) []refusal.Reason {
	var faults []refusal.Reason
	for i := range t.Blocks {
		b, at := &t.Blocks[i], fmt.Sprintf("blocks[%d]", i)
		where := func(path string) string { return t.placeOf(join(at, path)) }
		j := &judge{code: refusal.CodeBlockKind, where: where}
		if stream, ok := s.Stream(t.Stream); ok && !slices.Contains(stream.Blocks, b.Kind) {
			j.fault("kind", "use one of "+joinKinds(stream.Blocks), "block %d has kind %q, which stream %s does not take",
				i+1, b.Kind, t.Stream)
		}
		j.code = refusal.CodeBlockField
		if strings.TrimSpace(string(b.By)) == "" {
			j.fault("by", "name the role that filed it", "block %d (%s) has no author", i+1, b.Kind)
		}
		j.moment("at", fmt.Sprintf("at of block %d (%s)", i+1, b.Kind), b.At)
		faults = append(faults, j.faults...)
		faults = append(faults, fieldFaults(s, b, where)...)
	}
	return faults
}

func joinKinds(kinds []contract.BlockKind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}
