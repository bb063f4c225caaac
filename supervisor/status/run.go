package status

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"greatminds/runstore"
	"greatminds/supervisor/activity"
	"greatminds/supervisor/dispatch"
)

// maxTold is how many of the newest items of a run's activity are shown with it.
const maxTold = 30

// shown is the part of `run show` that the readable view shows.
type shown struct {
	Run         *runstore.Run          `json:"run"`
	Result      *runstore.Result       `json:"result"`
	Commands    []*runstore.Command    `json:"commands"`
	Permissions []*runstore.Permission `json:"permissions"`
	Activity    *activity.Document     `json:"activity"`
}

// RunText shows one run to a person: how it stands and why, its times, what it used, asked, ran and
// decided, and what its agent did last. All of it is escaped.
func RunText(data json.RawMessage, now time.Time, from Source) (string, error) {
	var s shown
	if err := json.Unmarshal(data, &s); err != nil {
		return "", fmt.Errorf("the run's document: %w", err)
	}
	if s.Run == nil {
		return "", fmt.Errorf("the run's document has no run")
	}
	var b strings.Builder
	s.head(&b, now, from)
	s.times(&b)
	s.asked(&b, now, from)
	s.ran(&b)
	s.did(&b)
	return strings.TrimRight(b.String(), "\n"), nil
}

func (s *shown) head(b *strings.Builder, now time.Time, from Source) {
	r := s.Run
	fmt.Fprintf(b, "Run       %s\nTask      %s (%s)\nBinding   %s as %s, agent %s, account %s\n", r.ID, r.TaskID, safe(r.TaskPath, maxWide), r.BindingID, r.Role, r.AgentID, safe(r.Account, 80))
	fmt.Fprintf(b, "State     %s%s\n", r.State, reasonOf(r))
	o, why := r.Outcome, causeOf(r)
	if o != nil && o.ErrorType != "" {
		why = strings.TrimSpace(safe(o.ErrorType, 80) + " " + why)
	}
	if why != "" {
		fmt.Fprintf(b, "Why       %s\n", why)
	}
	if o != nil && o.StopReason != nil {
		fmt.Fprintf(b, "Stop      %s\n", safe(*o.StopReason, 80))
	}
	next := nextCommands(r)
	if from.lost(r) {
		next = []string{lostWords}
	}
	for _, c := range next {
		fmt.Fprintf(b, "          %s\n", c)
	}
	fmt.Fprintf(b, "Claimed   %s, %s ago\n", clock(r.CreatedAt), since(r.CreatedAt, now))
	if r.EndedAt != nil {
		fmt.Fprintf(b, "Ended     %s, after %s\n", clock(*r.EndedAt), span(*r.EndedAt-r.CreatedAt))
	}
	if r.SessionID != nil {
		fmt.Fprintf(b, "Session   %s\n", safe(*r.SessionID, maxWide))
	}
	fmt.Fprintf(b, "Workspace %s\n", safe(r.Workspace, maxWide))
	if res := s.Result; res != nil {
		s.decision(b, res)
	}
	if len(r.Usage) > 0 {
		fmt.Fprintf(b, "Usage     %s\n", safe(string(r.Usage), 400))
	}
}

// decision shows what the run decided and what became of it, with the agent's words for it: a question
// is to be answered, and a decision that did not count to be made anew.
func (s *shown) decision(b *strings.Builder, res *runstore.Result) {
	var text sheet
	fmt.Fprintf(&text, "Decision  %s: %s\n", safe(res.Envelope.Decision, 80), safe(res.Status, 80))
	if said := dispatch.Said(res); said != "" {
		text.block("Said", said)
	}
	if res.Details != nil && res.Details.Error != "" {
		text.block("Problem", res.Details.Error)
	}
	b.WriteString(text.String())
}

func reasonOf(r *runstore.Run) string {
	if r.Reason == "" {
		return ""
	}
	return " (" + safe(r.Reason, 80) + ")"
}

// causeOf is what is known of why a run failed or waits, escaped; empty where nothing is.
func causeOf(r *runstore.Run) string { return safe(dispatch.Cause(r), 400) }

// nextCommands are those that lead a run on which waits for a person.
func nextCommands(r *runstore.Run) []string {
	held := r.State == runstore.WaitingInput && r.Process == nil
	switch {
	case r.State == runstore.WaitingAuth:
		_, remedy := dispatch.LoginWords(r)
		return []string{"go on:   " + safe(remedy, 400), "give up: greatminds run cancel " + string(r.ID)}
	case held:
		return []string{"try again: greatminds run retry " + string(r.ID), "give up:   greatminds run cancel " + string(r.ID)}
	case !r.State.Terminal():
		return []string{"follow it: greatminds run watch " + string(r.ID)}
	}
	return nil
}

func clock(at float64) string {
	return time.UnixMicro(int64(at * 1e6)).UTC().Format("2006-01-02 15:04:05 UTC")
}

// times lists the stages in the order in which they came, with seconds since the claim.
func (s *shown) times(b *strings.Builder) {
	names := keys(s.Run.Timings)
	if len(names) == 0 {
		return
	}
	slices.SortStableFunc(names, func(x, y string) int { return cmp.Compare(s.Run.Timings[x], s.Run.Timings[y]) })
	b.WriteString("\nSTAGES (seconds since the claim)\n")
	for _, n := range names {
		fmt.Fprintf(b, "  %8.3f  %s\n", s.Run.Timings[n], safe(n, 80))
	}
}

func (s *shown) asked(b *strings.Builder, now time.Time, from Source) {
	if len(s.Permissions) == 0 {
		return
	}
	b.WriteString("\nQUESTIONS\n")
	for _, p := range s.Permissions {
		if p.Status == "pending" {
			for _, l := range AskLines(p, string(s.Run.TaskID), now, from) {
				b.WriteString("  " + l + "\n")
			}
			continue
		}
		d, more := describe(p.Tool), ""
		for _, m := range []string{p.OptionID, p.Reason} {
			if m != "" {
				more += " (" + safe(m, 80) + ")"
			}
		}
		fmt.Fprintf(b, "  %s  %s: %s%s\n", clock(p.CreatedAt), called(d.Kind, d.Title), p.Status, more)
	}
}

func (s *shown) ran(b *strings.Builder) {
	if len(s.Commands) == 0 {
		return
	}
	b.WriteString("\nCOMMANDS\n")
	for _, c := range s.Commands {
		exit, why := "", ""
		if c.ExitCode != nil {
			exit = fmt.Sprintf(", exit %d", *c.ExitCode)
		}
		if c.Reason != "" && c.Reason != "exit" {
			why = " (" + safe(c.Reason, 80) + ")"
		}
		fmt.Fprintf(b, "  %-20s %s%s%s  %s\n", safe(c.CommandID, 80), c.Status, exit, why, c.ID)
		var detail string
		// The member is our own; one that is no text says nothing here.
		if json.Unmarshal(c.Extra["detail"], &detail) == nil && detail != "" {
			fmt.Fprintf(b, "    %s\n", safe(detail, 400))
		}
	}
}

func (s *shown) did(b *strings.Builder) {
	a := s.Activity
	if a == nil || len(a.Items) == 0 {
		return
	}
	items, left := a.Items, a.Dropped
	if n := len(items) - maxTold; n > 0 {
		items, left = items[n:], left+uint64(n)
	}
	b.WriteString("\nACTIVITY\n")
	if left > 0 {
		fmt.Fprintf(b, "  (%d older items are not shown)\n", left)
	}
	var t Teller
	for _, l := range append(t.Lines(items, false), t.Rest()...) {
		b.WriteString("  " + l + "\n")
	}
}

// StateLine is a run's state with its reason.
func StateLine(r *runstore.Run) string { return "run is " + string(r.State) + reasonOf(r) }

// EndLines say how a run ended, or what it waits for, and what leads on.
func EndLines(r *runstore.Run) []string {
	took := span(r.UpdatedAt - r.CreatedAt)
	if r.EndedAt != nil {
		took = span(*r.EndedAt - r.CreatedAt)
	}
	verb := "ended"
	if !r.State.Terminal() {
		verb = "waits for you"
	}
	out := []string{fmt.Sprintf("= run %s %s: %s%s, after %s", r.ID, verb, r.State, reasonOf(r), took)}
	if what := causeOf(r); what != "" {
		out = append(out, "  "+what)
	}
	for _, c := range nextCommands(r) {
		out = append(out, "  "+c)
	}
	return out
}
