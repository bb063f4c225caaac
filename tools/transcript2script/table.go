package main

import (
	"fmt"
	"io"
	"strings"
)

// row is one transcript in the table.
type row struct {
	Transcript string `json:"transcript"`
	Applicable bool   `json:"applicable"`
	// Sessions are the conversations, in the order of the recording.
	Sessions []session `json:"sessions,omitempty"`
	// LeftOut and Why name what our client never does.
	LeftOut []omission `json:"left_out,omitempty"`
	Why     *omission  `json:"not_applicable,omitempty"`
}

// session is what a replay of one conversation must come to.
type session struct {
	Opens       string   `json:"opens"`
	Opened      string   `json:"opened"`
	Ends        []string `json:"ends"`
	Updates     int      `json:"updates"`
	Permissions int      `json:"permissions"`
	Process     string   `json:"process"`
}

func rowOf(one *converted) row {
	r := row{Transcript: one.Name, Applicable: one.NotApplicable == nil, LeftOut: one.LeftOut, Why: one.NotApplicable}
	for _, c := range one.Conversations {
		s := session{Opens: "new", Opened: c.Plan.Open.String(), Ends: []string{}, Updates: c.Plan.Updates, Permissions: c.Plan.Permissions, Process: "ends with its input"}
		if c.Plan.Load != "" {
			s.Opens = "load"
		}
		switch {
		case c.Plan.Hangs:
			s.Process = "outlives its input"
		case c.Plan.Killed:
			s.Process = "is killed"
		}
		for _, t := range c.Plan.Turns {
			s.Ends = append(s.Ends, t.End.String())
		}
		r.Sessions = append(r.Sessions, s)
	}
	if r.Why != nil {
		r.LeftOut = nil
	}
	return r
}

func writeJSON(w io.Writer, all []*converted) error {
	for _, one := range all {
		if _, err := w.Write(encoded(rowOf(one))); err != nil {
			return err
		}
	}
	return nil
}

func writeTable(w io.Writer, all []*converted) error {
	var b strings.Builder
	b.WriteString("| transcript | session | turns end with | updates | permissions | process | left out |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, one := range all {
		r := rowOf(one)
		if r.Why != nil {
			fmt.Fprintf(&b, "| %s | not applicable | line %d: %s; %s | | | | |\n", r.Transcript, r.Why.Line, r.Why.What, r.Why.Why)
			continue
		}
		for i, s := range r.Sessions {
			left := ""
			if i == 0 {
				left = summary(r.LeftOut)
			}
			opened := s.Opens
			if s.Opened != "ok" {
				opened += ": " + s.Opened
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %s | %s |\n", r.Transcript, opened, strings.Join(s.Ends, ", "), s.Updates, s.Permissions, s.Process, left)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// summary names what was left out, each once with its count.
func summary(left []omission) string {
	var names []string
	count := map[string]int{}
	for _, o := range left {
		if count[o.What] == 0 {
			names = append(names, o.What)
		}
		count[o.What]++
	}
	for i, n := range names {
		if count[n] > 1 {
			names[i] = fmt.Sprintf("%s ×%d", n, count[n])
		}
	}
	return strings.Join(names, ", ")
}
