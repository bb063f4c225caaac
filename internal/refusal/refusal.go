// Package refusal is the one shape of an error that a person or an agent must act on.
//
// A refusal carries a stable code (scripts branch on it), says what was refused with the
// value and the place, and what to do next. The code decides the exit status: each code
// stands exactly once in a table of this package. After a refusal nothing is half done;
// that is the promise of whoever returns one.
package refusal

import (
	"errors"
	"fmt"
	"strings"
)

// Status is the exit status of a command that ends with a refusal.
// Spec: reference of exit statuses; scripts use them.
type Status int

// The exit statuses. 0 (done) is no refusal.
const (
	Failed    Status = 1 // generic failure, or what was named does not exist
	Invalid   Status = 2 // validation or usage
	Forbidden Status = 3 // the caller may not do this
	Storage   Status = 4 // storage, lock or recovery conflict
)

// Code names one kind of refusal, in snake_case. It never changes once released.
type Code string

// Reason is one of several faults that led to one refusal, each complete in itself.
type Reason struct {
	// Code is the fault's own code, empty where the refusal's code says it all.
	Code Code `json:"code,omitempty"`
	// Place is "file:line:column", a field path, or empty.
	Place string `json:"place,omitempty"`
	// What was refused, with the value.
	What string `json:"what"`
	// Remedy says what to do, empty where the refusal's remedy covers it.
	Remedy string `json:"remedy,omitempty"`
}

// String renders the reason on one line: "place: what; remedy".
func (r Reason) String() string {
	var b strings.Builder
	if r.Place != "" {
		b.WriteString(r.Place + ": ")
	}
	b.WriteString(r.What)
	if r.Remedy != "" {
		b.WriteString("; " + r.Remedy)
	}
	return b.String()
}

// Refusal is an error that somebody outside the program must act on.
type Refusal struct {
	// Code is stable and listed in this package.
	Code Code
	// What was refused, the value that caused it and where it stands. Starts in lower case.
	What string
	// Remedy says what to do next, as a command where there is one.
	Remedy string
	// Reasons lists every single fault where there are several.
	Reasons []Reason
	// Err is the cause, for errors.Is and errors.As; not shown to people by itself.
	Err error
}

// New returns a refusal with a formatted What.
func New(code Code, remedy, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Remedy: remedy, What: fmt.Sprintf(format, args...)}
}

// Error returns What, then every reason on a line of its own.
func (r *Refusal) Error() string {
	if len(r.Reasons) == 0 {
		return r.What
	}
	lines := make([]string, 0, len(r.Reasons)+1)
	lines = append(lines, r.What)
	for _, reason := range r.Reasons {
		lines = append(lines, "  "+reason.String())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// Status returns the exit status that belongs to the code; Failed for a code that is not listed.
func (r *Refusal) Status() Status {
	if entry, ok := Lookup(r.Code); ok {
		return entry.Status
	}
	return Failed
}

// Find returns the refusal in err's chain.
func Find(err error) (*Refusal, bool) {
	var r *Refusal
	ok := errors.As(err, &r)
	return r, ok
}

// Wire is a refusal as JSON, on a socket or on standard error.
type Wire struct {
	Code    Code     `json:"code"`
	What    string   `json:"what"`
	Remedy  string   `json:"remedy"`
	Reasons []Reason `json:"reasons,omitempty"`
}

// ToWire turns any error into its wire form. An error that is no refusal becomes code "failed".
func ToWire(err error) *Wire {
	if r, ok := Find(err); ok {
		return &Wire{Code: r.Code, What: r.What, Remedy: r.Remedy, Reasons: r.Reasons}
	}
	return &Wire{Code: CodeFailed, What: err.Error()}
}

// FromWire turns a wire form back into a refusal.
func FromWire(w *Wire) *Refusal {
	return &Refusal{Code: w.Code, What: w.What, Remedy: w.Remedy, Reasons: w.Reasons}
}
