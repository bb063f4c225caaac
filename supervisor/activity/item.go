// Package activity keeps what an agent was seen doing in a run, for people: what it said, its tool
// calls, plan and mode, its questions, and how the turn ended.
//
// It is no evidence and approves nothing: a run goes on without it, and what it lacks says nothing.
// The invariant kept: a feed is bounded (256 KiB, 512 items, 16 KiB an item; the oldest make room and
// are counted), everything in it is masked with the run's secrets, and nobody who reads or writes it
// holds up the run.
//
// # File
//
// `.runtime/activity/RUN_ID.json`, mode 0600, holds one [Document] as one line of compact JSON. It is
// written while the run goes on, at most once a second, and at its end; not synced, so a power cut may
// leave an older one or none. The files of the newest 100 runs are kept.
//
// The original keeps a file of the same name; its documents are another format, and are not read.
package activity

import "encoding/json"

// Version of the document.
const Version = 1

// Bounds of a feed. Bytes are those of its JSON.
const (
	MaxBytes     = 256 << 10
	MaxItems     = 512
	MaxItemBytes = 16 << 10
)

// Kinds of items.
const (
	Message    = "message"    // what the agent said
	Thought    = "thought"    // what it said to itself
	Tool       = "tool"       // a tool call that began, or changed its state, title or kind
	Plan       = "plan"       // its plan as it is now
	Mode       = "mode"       // its mode as it is now
	Permission = "permission" // what became of a question
	Stop       = "stop"       // the turn's end
)

// Item is one thing that was seen. Text, titles and names are the agent's, masked: escape them before
// they meet a terminal.
type Item struct {
	// Sequence grows from item to item; one that was replaced by a newer one leaves a gap.
	Sequence uint64 `json:"sequence"`
	// At is when it began, in seconds of the Unix epoch.
	At   float64 `json:"at"`
	Kind string  `json:"kind"`

	// Text is that of a message or a thought. Open says that it may go on, Continued that it goes on
	// where the item of the same kind before it ended for its size.
	Text      string `json:"text,omitempty"`
	Open      bool   `json:"open,omitempty"`
	Continued bool   `json:"continued,omitempty"`

	// Tool is a reference of a tool call that tells nothing of its id; Title, ToolKind and Status are
	// the call's. A question has the last three too, and its status is pending, consumed or cancelled,
	// or allowed or denied where policy has decided it.
	Tool     string `json:"tool,omitempty"`
	Title    string `json:"title,omitempty"`
	ToolKind string `json:"tool_kind,omitempty"`
	Status   string `json:"status,omitempty"`

	// Request is the question's id, Option the option that was chosen, Reason why it was closed.
	Request string `json:"request_id,omitempty"`
	Option  string `json:"option_id,omitempty"`
	Reason  string `json:"reason,omitempty"`

	// Entries are those of a plan. More counts those that are left out.
	Entries []Entry `json:"entries,omitempty"`
	More    int     `json:"more,omitempty"`
	Mode    string  `json:"mode,omitempty"`
	// StopReason is the turn's; empty where there was none.
	StopReason string `json:"stop_reason,omitempty"`
}

// Entry is one line of a plan.
type Entry struct {
	Content string `json:"content"`
	Status  string `json:"status"`
}

// Document is a feed at one moment.
type Document struct {
	Version int    `json:"version"`
	RunID   string `json:"run_id"`
	// UpdatedAt is when something was last seen, in seconds of the Unix epoch; null when nothing was.
	UpdatedAt *float64 `json:"updated_at"`
	// Dropped counts items that made room for newer ones.
	Dropped uint64 `json:"dropped"`
	Items   []Item `json:"items"`
}

// encode is the document's JSON with a newline.
func (d *Document) encode() ([]byte, error) {
	b, err := json.Marshal(d)
	return append(b, '\n'), err
}

// cost is at least how many bytes a text takes in JSON.
func cost(s string) int {
	n := len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c < 0x20, c == '<', c == '>', c == '&', c == 0xe2: // \u0000; U+2028 begins with the last
			n += 5
		case c == '"', c == '\\':
			n++
		}
	}
	return n
}
