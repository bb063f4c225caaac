package yamldoc

import (
	"fmt"
	"slices"
	"strconv"

	"greatminds/internal/refusal"
)

// Faults collects what is wrong with one file. It keeps all places but only a bounded number of
// texts, so that a hostile file costs no more than an honest one.
type Faults struct {
	file string
	max  int
	list []fault
	more int
}

type fault struct {
	line, column int
	what, remedy string
}

// NewFaults returns an empty collection for a file that lists at most max faults one by one.
func NewFaults(file string, max int) *Faults { return &Faults{file: file, max: max} }

// Add records a fault at a node's place.
func (f *Faults) Add(at *Node, remedy, format string, args ...any) {
	f.AddAt(at.Line, at.Column, remedy, format, args...)
}

// AddAt records a fault at a place. Line 0 means the file as a whole.
func (f *Faults) AddAt(line, column int, remedy, format string, args ...any) {
	if f.full() {
		f.more++
		return
	}
	f.list = append(f.list, fault{line, column, fmt.Sprintf(format, args...), remedy})
}

// full reports whether further faults are only counted. Twice the bound is kept, so that those
// listed are the first of the file rather than the first that were found.
func (f *Faults) full() bool { return len(f.list) >= 2*f.max }

// Len is the number of faults.
func (f *Faults) Len() int { return len(f.list) + f.more }

// Reasons lists the faults in the order of the file, each with "file:line:column". Past the
// bound one last reason says how many more there are.
func (f *Faults) Reasons() []refusal.Reason {
	slices.SortStableFunc(f.list, func(a, b fault) int {
		if a.line != b.line {
			return a.line - b.line
		}
		return a.column - b.column
	})
	shown := f.list
	if len(shown) > f.max {
		shown = shown[:f.max]
	}
	reasons := make([]refusal.Reason, 0, len(shown)+1)
	for _, x := range shown {
		place := f.file
		if x.line > 0 {
			place += ":" + strconv.Itoa(x.line) + ":" + strconv.Itoa(x.column)
		}
		reasons = append(reasons, refusal.Reason{Place: place, What: x.what, Remedy: x.remedy})
	}
	if rest := f.Len() - len(shown); rest > 0 {
		reasons = append(reasons, refusal.Reason{Place: f.file, What: fmt.Sprintf("and %d more faults", rest)})
	}
	return reasons
}

// Refusal returns nil when there is no fault, else a refusal with all of them. The what of it is
// "FILE: WHAT (n faults)".
func (f *Faults) Refusal(code refusal.Code, what, remedy string) *refusal.Refusal {
	n := f.Len()
	if n == 0 {
		return nil
	}
	count := "1 fault"
	if n > 1 {
		count = fmt.Sprintf("%d faults", n)
	}
	return &refusal.Refusal{Code: code, What: fmt.Sprintf("%s: %s (%s)", f.file, what, count),
		Remedy: remedy, Reasons: f.Reasons()}
}

// Show quotes a value for a message, cut to a readable length.
func Show(value string) string {
	const most = 60
	runes := 0
	for i := range value {
		if runes == most {
			return strconv.Quote(value[:i]) + "…"
		}
		runes++
	}
	return strconv.Quote(value)
}
