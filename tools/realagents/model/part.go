package model

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
)

// Part is what the model plays for a task that names one; a task without it gets the part of
// its role. A task's text names it by [Part.Marker].
type Part string

// The parts.
const (
	// Text says one sentence, and calls no tool.
	Text Part = "text"
	// SubmitCLI submits the decision through the agent's shell tool.
	SubmitCLI Part = "submit-cli"
	// SubmitMCP submits it through the supervisor's tool, which the agent got over MCP.
	SubmitMCP Part = "submit-mcp"
	// Write writes [WrittenFile] with the agent's own tool, and submits nothing.
	Write Part = "write"
	// Shell runs [LongCommand], which does not end by itself.
	Shell Part = "shell"
	// Detached leaves [LongCommand] behind in a session of its own, and then submits.
	Detached Part = "detached"
	// HangOnce runs a command, gives no answer to the first request with its result, and then
	// submits. By then an agent has written down that it has a session.
	HangOnce Part = "hang-once"
	// LimitOnce answers the first request with 429, and then submits.
	LimitOnce Part = "limit-once"
	// Limit answers every request with 429, Fault with 500.
	Limit Part = "limit"
	Fault Part = "fault"
)

// LongCommand is the shell command of [Shell] and [Detached]; its number tells it from others.
var LongCommand = []string{"sleep", "86413"}

// Marker is the sentence by which a task's text names the part.
func (p Part) Marker() string { return "The model stand-in plays the part: " + string(p) + "." }

var marker = regexp.MustCompile(`The model stand-in plays the part: ([a-z-]+)\.`)

// partIn finds the part that a text names, empty for none.
func partIn(s string) Part {
	if m := marker.FindStringSubmatch(s); m != nil {
		return Part(m[1])
	}
	return ""
}

// actions are what the model does in this part of the developer's assignment.
func (p Part) actions(a assignment) []action {
	submit := action{command: a.submit("feature_test", a.implementation())}
	switch p {
	case SubmitCLI, LimitOnce:
		return []action{submit}
	case HangOnce:
		return []action{{command: "touch begun"}, submit}
	case SubmitMCP:
		return []action{{mcp: "submit", decision: handoff("feature_test", a.implementation())}}
	case Write:
		return []action{{write: true, path: filepath.Join(a.Workspace, WrittenFile), content: WrittenText}}
	case Shell:
		// It writes first: some agents do not ask for what only waits.
		return []action{{command: "touch begun && " + strings.Join(LongCommand, " ")}}
	case Detached:
		// Its output goes nowhere: an agent may wait for the last writer of its tool's output.
		return []action{{command: "setsid " + strings.Join(LongCommand, " ") + " > /dev/null 2>&1 < /dev/null & " + submit.command}}
	}
	return nil
}

// failure is the status that the model's API gives to the nth assigned request of this part,
// counted from 1; 0 for an answer.
func (p Part) failure(n int64) int {
	switch {
	case p == Limit, p == LimitOnce && n == 1:
		return http.StatusTooManyRequests
	case p == Fault:
		return http.StatusInternalServerError
	}
	return 0
}

// toolOver finds a tool of the supervisor's MCP server in what the agent offers to its model: each
// agent puts the server's name in front in its own way, or leaves it out.
func (c conversation) toolOver(name string) (string, bool) {
	for _, offered := range c.offered() {
		server, fits := strings.CutSuffix(offered, name)
		server = strings.TrimRight(server, "_-./:")
		if fits && (server == "" || strings.HasSuffix(server, "greatminds")) {
			return offered, true
		}
	}
	return "", false
}

// errorBody is an error in the form of each API.
func errorBody(path string, status int) any {
	message := http.StatusText(status)
	switch {
	case strings.HasSuffix(path, "/messages"):
		kind := map[int]string{http.StatusTooManyRequests: "rate_limit_error"}[status]
		if kind == "" {
			kind = "api_error"
		}
		return fields{"type": "error", "error": fields{"type": kind, "message": message}}
	case strings.Contains(path, "enerateContent"):
		kind := map[int]string{http.StatusTooManyRequests: "RESOURCE_EXHAUSTED"}[status]
		if kind == "" {
			kind = "INTERNAL"
		}
		return fields{"error": fields{"code": status, "message": message, "status": kind}}
	}
	kind := map[int]string{http.StatusTooManyRequests: "rate_limit_exceeded"}[status]
	if kind == "" {
		kind = "server_error"
	}
	return fields{"error": fields{"message": message, "type": kind, "code": kind}}
}

// decode reads an assignment with the part that its task names.
func decode(text string) (a assignment, ok bool) {
	// The document may be followed by more text, so it is decoded alone.
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(&a); err != nil || len(a.CLI) == 0 {
		return assignment{}, false
	}
	a.part = partIn(text[:d.InputOffset()])
	return a, true
}
