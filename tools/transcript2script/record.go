package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// The directions of a transcript's lines.
const (
	fromClient = ">"
	fromAgent  = "<"
	fromStderr = "!"
	fact       = "#"
)

// record is one line of a transcript.
type record struct {
	// T is the time since the process began, in seconds.
	T float64 `json:"t"`
	// D is the direction.
	D string `json:"d"`
	// M is a message, Raw a line that is none.
	M       json.RawMessage `json:"m,omitempty"`
	Raw     *string         `json:"raw,omitempty"`
	NotJSON bool            `json:"notjson,omitempty"`
	// Cut is the length, in characters, of a message of which only Head and Tail were kept.
	Cut  int    `json:"cut,omitempty"`
	Head string `json:"head,omitempty"`
	Tail string `json:"tail,omitempty"`
	// Note holds facts about the process.
	Note *note `json:"note,omitempty"`
}

// note holds the facts that conversion uses; others are in the recordings and are left alone.
type note struct {
	Spawn json.RawMessage `json:"spawn,omitempty"`
	// Tree names the moment of a look at the processes: before-eof stands before the end of input.
	Tree   string  `json:"tree,omitempty"`
	Finish *finish `json:"finish,omitempty"`
	// Timeout is how long a request was waited for that then was given up, in seconds.
	Timeout json.RawMessage `json:"timeout,omitempty"`
}

// finish is how a process ended.
type finish struct {
	// How is what the recording client did: eof, kill, term or int.
	How string `json:"how"`
	// RC is the exit status, minus a signal's number, or "still-running".
	RC json.RawMessage `json:"rc"`
}

// message is a JSON-RPC message with its members as they stood.
type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  json.RawMessage
}

// line is a record with its message read.
type line struct {
	record
	number int
	// text is the message as a line, whole: a cut one is padded. For one that is no message, and
	// for standard error, it is the text itself.
	text string
	msg  *message
}

// readTranscript reads a whole transcript; name stands in messages.
func readTranscript(name string, data []byte) ([]line, error) {
	var out []line
	number := 0
	for raw := range bytes.Lines(data) {
		number++
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		l, err := readLine(raw)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, number, err)
		}
		l.number = number
		out = append(out, l)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: empty, expected one JSON object a line with t, d and m, raw, cut or note", name)
	}
	return out, nil
}

func readLine(raw []byte) (line, error) {
	var l line
	if err := json.Unmarshal(raw, &l.record); err != nil {
		return l, err
	}
	switch {
	case l.D == fact:
		if l.Note == nil {
			l.Note = &note{}
		}
		return l, nil
	case l.D != fromClient && l.D != fromAgent && l.D != fromStderr:
		return l, fmt.Errorf("direction %q is none of > < ! #", l.D)
	case l.Cut > 0:
		return l, l.fill()
	case l.Raw != nil:
		l.text = *l.Raw
		return l, nil
	case l.M == nil:
		return l, fmt.Errorf("a line with none of m, raw and cut")
	}
	l.text = string(l.M)
	return l, l.read()
}

// fill makes a cut line whole.
func (l *line) fill() error {
	text, err := pad(l.Head, l.Tail, l.Cut)
	if err != nil {
		return err
	}
	l.text = text
	if l.D == fromStderr || strings.HasPrefix(text, `"`) {
		return json.Unmarshal([]byte(text), &l.text)
	}
	return l.read()
}

func (l *line) read() error {
	var there map[string]json.RawMessage
	if err := json.Unmarshal([]byte(l.text), &there); err != nil {
		return fmt.Errorf("message: %w", err)
	}
	// An absent id, result or error and one that is null are two things.
	l.msg = &message{
		ID: there["id"], Method: word(there["method"]), Params: there["params"],
		Result: there["result"], Error: there["error"],
	}
	return nil
}

// The kinds of messages.
func (m *message) isRequest() bool      { return m.Method != "" && m.ID != nil }
func (m *message) isNotification() bool { return m.Method != "" && m.ID == nil }

// dig returns the JSON value under a path of member names, nil where there is none.
func dig(raw json.RawMessage, path ...string) json.RawMessage {
	for _, name := range path {
		var doc map[string]json.RawMessage
		if json.Unmarshal(raw, &doc) != nil {
			return nil
		}
		raw = doc[name]
	}
	return raw
}

// word is a JSON string's text, empty for anything else.
func word(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
