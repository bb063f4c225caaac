// Package control is the way into a project's daemon: the wire types, the socket server and its
// client, and the rule that decides whether a call is served by the daemon or run in process.
//
// The transport is HTTP/1.1 with JSON bodies over the Unix socket coordd.sock in the project's
// private runtime folder:
//
//	GET  /v1        answers Hello
//	POST /v1/call   takes a Call, answers a Reply
//
// A reply holds a result or a refusal, never both. Call bodies are at most MaxBody bytes.
//
// The invariant kept: a call reaches the handler only with a caller of the daemon's own user
// whose process identity was read from the kernel, and whoever starts the server can wait until
// none of its goroutines is left. A changing call carries an id; the same id sent again, to this
// daemon or the next, has the same effect once.
// Spec: "The daemon owns the store; everyone else asks it".
package control

import (
	"bytes"
	"encoding/json"
	"log/slog"

	"greatminds/internal/refusal"
)

// Version is the API version of this program. It is raised when a call of an older program would
// be misunderstood; fields that are only added do not raise it.
const Version = 1

// MaxBody bounds the JSON of one call, in bytes.
const MaxBody = 8 << 20

// SocketName is the control socket's name in the runtime folder.
const SocketName = "coordd.sock"

// Call is one operation asked for.
type Call struct {
	// Version is the caller's API version.
	Version int `json:"version"`
	// ID is the request id of a changing call: its receipt is stored under it, so that a call
	// whose answer was lost can be sent again. Empty for a call that changes nothing.
	ID string `json:"id,omitempty"`
	// Op names the operation, such as "run.status".
	Op string `json:"op"`
	// Args are the operation's own arguments, a JSON object or nothing.
	Args json.RawMessage `json:"args,omitempty"`
	// RunID and Token are the run credential of an assigned agent; both empty for the operator.
	// One alone still marks the caller as an assigned agent.
	RunID string `json:"run_id,omitempty"`
	Token string `json:"token,omitempty"`
	// Role is the caller's role for domain commands, empty when it has none.
	Role string `json:"role,omitempty"`
	// Cwd is the caller's working folder, for arguments that name relative paths.
	Cwd string `json:"cwd,omitempty"`
}

// Assigned reports whether the caller shows any part of a run's credential.
func (c Call) Assigned() bool { return c.RunID != "" || c.Token != "" }

// LogValue leaves the credential and the arguments out of every log.
func (c Call) LogValue() slog.Value {
	return slog.GroupValue(slog.String("op", c.Op), slog.String("request_id", c.ID), slog.String("run_id", c.RunID))
}

// Reply is the answer to a call.
type Reply struct {
	// Version is the daemon's API version.
	Version int `json:"version"`
	// Result is the operation's answer; absent with a refusal.
	Result json.RawMessage `json:"result,omitempty"`
	// Refusal says why nothing was done.
	Refusal *refusal.Wire `json:"refusal,omitempty"`
}

// Hello is what a daemon says of itself before any call is sent to it.
type Hello struct {
	// Version is the daemon's API version.
	Version int `json:"version"`
	// Program is the daemon's program version, for people.
	Program string `json:"program"`
	// PID is the daemon's process id.
	PID int `json:"pid"`
}

// Encode is a value as JSON on one line, without escaping <, > and &, which callers compare as they
// are, and people read.
func Encode(v any) (json.RawMessage, error) {
	if raw, ok := v.(json.RawMessage); ok && raw != nil {
		return raw, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
