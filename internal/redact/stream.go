package redact

import (
	"regexp"
	"strings"
)

// maxHeld bounds what a stream holds back for what may still come, in bytes, but for the start of a
// known value: that is held however long the value is.
const maxHeld = 4 << 10

// open matches an end of text that more text could turn into something to mask: a name whose value
// has not come yet, or whose quoted value has not ended. A known value before "bearer" becomes a mask, which
// makes a word of its own of what follows it.
var open = regexp.MustCompile(`(?i)(?:bearer\s+|api\s|` + sensitive + `[\w.-]*\\?["']?\s*(?:[:=]\s*(?:(?:basic|bearer)\s+)?` +
	`(?:\\?"(?:[^"\\]|\\[^"])*|'[^']*)?)?|[a-z][a-z0-9+.-]*://[^\s/@]*)$`)

// Stream masks a text that arrives in pieces. What is cut between two of them is masked as in one:
// all that Write and Flush return, joined, is what [Redactor.Text] makes of the whole text, but for a
// name and its value, or a word, of more than 4 KiB. It is not safe for concurrent use.
type Stream struct {
	r    *Redactor
	held string
}

// Stream begins a text.
func (r *Redactor) Stream() *Stream { return &Stream{r: r} }

// Write takes the next piece and returns what is ready of the text, masked. What it holds back are
// words that have not ended, and what may become part of a secret.
func (s *Stream) Write(piece string) string {
	s.held += piece
	cut := s.safe()
	ready := s.held[:cut]
	s.held = strings.Clone(s.held[cut:])
	return s.r.Text(ready)
}

// Flush returns the rest and begins anew.
func (s *Stream) Flush() string {
	rest := s.held
	s.held = ""
	return s.r.Text(rest)
}

// Held is how many bytes are held back.
func (s *Stream) Held() int { return len(s.held) }

// safe is how much of what is held nothing that follows can change.
func (s *Stream) safe() int {
	cut := 1 + strings.LastIndexAny(s.held, " \t\n")
	for cut > 0 {
		at := s.r.apart(s.held, cut)
		if at == cut {
			at = closed(s.held, cut)
		}
		if at == cut {
			return cut
		}
		cut = 1 + strings.LastIndexAny(s.held[:at], " \t\n")
	}
	if len(s.held) <= maxHeld {
		return 0
	}
	return s.r.apart(s.held, len(s.held))
}

// closed lowers a cut of text to where what is open there begins.
func closed(text string, cut int) int {
	if mentions(text[:cut], "bearer") || mentions(text[:cut], stems...) || strings.Contains(text[:cut], "://") {
		if m := open.FindStringIndex(text[:cut]); m != nil {
			return m[0]
		}
	}
	return cut
}

// Head masks the start of a text, at most n bytes of it. No part of a secret shows where it is cut.
func (r *Redactor) Head(s string, n int) string {
	if len(s) <= n {
		return r.Text(s)
	}
	for cut := n; ; {
		next := closed(s, r.apart(s, cut))
		if next == cut {
			return r.Text(s[:cut])
		}
		cut = next
	}
}

// apart lowers a cut of text until no known value lies across it, whatever follows the text.
func (r *Redactor) apart(text string, cut int) int {
	if r == nil {
		return cut
	}
	for lowered := true; lowered; {
		lowered = false
		for _, form := range r.forms {
			for i := max(0, cut-len(form)+1); i < cut; i++ {
				if rest := text[i:]; strings.HasPrefix(rest, form) || strings.HasPrefix(form, rest) {
					cut, lowered = i, true
					break
				}
			}
		}
	}
	return cut
}

// Longest is the length in bytes of the longest form of a known value.
func (r *Redactor) Longest() int {
	if r == nil || len(r.forms) == 0 {
		return 0
	}
	return len(r.forms[0])
}
