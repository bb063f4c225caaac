package demo

import (
	"fmt"
	"strings"
	"time"

	"greatminds/internal/termsafe"
)

// progress is the stage that is under way.
type progress struct {
	stage string
	since time.Time
	notes []string
}

// say prints one act of the story with the time since its start.
func (s *story) say(format string, args ...any) {
	fmt.Fprintf(s.Out, "[%6.2fs] %s\n", s.Now().Sub(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// plain prints one line as it is.
func (s *story) plain(format string, args ...any) { fmt.Fprintf(s.Out, format+"\n", args...) }

// open begins a stage.
func (s *story) open(stage string) {
	s.progress = progress{stage: stage, since: s.Now()}
	s.redraw("claimed")
}

// note adds what has just happened in the stage.
func (s *story) note(what string) {
	s.notes = append(s.notes, what)
	s.redraw(what)
}

// shut ends the stage with one line that stays.
func (s *story) shut(what string) {
	if s.Terminal {
		fmt.Fprint(s.Out, "\r\x1b[K")
	}
	s.say("%-10s %5.2fs  %s  (%s)", s.stage, s.Now().Sub(s.since).Seconds(), what, strings.Join(s.notes, "; "))
}

// redraw shows the stage in place on a terminal, and as a line of its own elsewhere.
func (s *story) redraw(what string) {
	if s.Terminal {
		fmt.Fprintf(s.Out, "\r\x1b[K[%6.2fs] %-10s %s", s.Now().Sub(s.began).Seconds(), s.stage, termsafe.Line(what))
		return
	}
	s.say("%-10s %s", s.stage, what)
}
