package supervisor

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
)

// traced are the lines of a kind in the agent's trace.
func (h *house) traced(kind string) (lines []map[string]any) {
	h.t.Helper()
	data, err := os.ReadFile(h.file("agent/trace.jsonl"))
	if os.IsNotExist(err) {
		return nil
	}
	must(h.t, err)
	for _, line := range strings.Split(string(data), "\n") {
		var e map[string]any
		if json.Unmarshal([]byte(line), &e) == nil && e["kind"] == kind {
			lines = append(lines, e)
		}
	}
	return lines
}

// starts counts how often the agent was started.
func (h *house) starts() int {
	h.t.Helper()
	return len(h.traced("start"))
}

// received counts the messages of a method that the agent got.
func (h *house) received(method string) (n int) {
	h.t.Helper()
	for _, e := range h.traced("recv") {
		if e["m"] == method {
			n++
		}
	}
	return n
}

// sent are the methods that a launch of the agent was sent, in order. Its script's assertions must hold.
func (h *house) sent(launch int) (methods []string) {
	h.t.Helper()
	for _, e := range h.traced("recv") {
		if m, is := e["m"].(string); is && e["launch"] == float64(launch) {
			methods = append(methods, m)
		}
	}
	for _, e := range h.traced("assert") {
		if e["ok"] != true {
			h.t.Errorf("the agent was sent something else: %v", e)
		}
	}
	return methods
}

// wantSent checks what a launch was sent.
func (h *house) wantSent(launch int, want ...string) {
	h.t.Helper()
	if got := h.sent(launch); !slices.Equal(got, want) {
		h.t.Errorf("launch %d was sent %q, want %q", launch, got, want)
	}
}
