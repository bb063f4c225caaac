// Package status builds what `run status` and `dashboard` show of a project: one JSON document,
// and a readable view of the same document for a terminal.
//
// The invariant kept: building reads only the values that it is given, so that the same status is
// shown by the daemon, by a command beside a hung daemon, and by a test. It decides nothing:
// why a task does not run is decided elsewhere and arrives as an [Assignment].
package status

import "greatminds/contract"

// Assignment is one task as dispatch sees it, with the reason why it is not claimed.
// Spec: reference of `run status`, assignments.
type Assignment struct {
	TaskID  string        `json:"task_id"`
	Binding string        `json:"binding"`
	Role    contract.Role `json:"role"`
	// Reason is "ready", or the code of the hold.
	Reason string `json:"reason"`
	// Retry is what the repeat policy says, nil where it says nothing.
	Retry map[string]any `json:"retry"`
	// Progress counts completed turns without a transition.
	Progress Progress `json:"progress"`
	// NextAt is when the hold may end by itself, in epoch seconds; nil where time alone changes nothing.
	NextAt *float64 `json:"next_at,omitempty"`
	// What says the hold in words with its values; empty for a ready task.
	What string `json:"what,omitempty"`
	// Remedy is what helps, as a command where there is one; empty where waiting is enough.
	Remedy string `json:"remedy,omitempty"`
}

// Progress is an assignment's budget of turns without workflow progress.
type Progress struct {
	Reason   string `json:"reason"`
	Turns    int    `json:"turns"`
	MaxTurns int    `json:"max_turns"`
}

// Account is one account's admission.
type Account struct {
	// Reason is "ready", or the code of the hold.
	Reason   string `json:"reason"`
	Account  string `json:"account"`
	Failures int    `json:"failures"`
	// Hold is the kind of a limit that the account's provider has told of, rate_limit or
	// quota_exhausted, and HoldID names it; empty where none holds.
	Hold   string `json:"hold,omitempty"`
	HoldID string `json:"hold_id,omitempty"`
	// NextAt is when the hold ends by itself, in epoch seconds; nil where it does not, or there is none.
	NextAt *float64 `json:"next_at,omitempty"`
	// SourceRun is the run that caused the hold.
	SourceRun string `json:"source_run,omitempty"`
	// What and Remedy are those of an assignment that waits for the account.
	What   string `json:"what,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}
