package main

import "encoding/json"

// conversation is one session of one agent process, as our client would have it: the steps that
// the scripted agent plays in one launch, and what the client does meanwhile.
type conversation struct {
	Steps []step `json:"steps"`
	Plan  plan   `json:"plan"`
}

// plan is the client's side, taken from what the recording client did.
type plan struct {
	// Auth is the method that is called, Mode the mode that is set; empty: none.
	Auth string `json:"auth,omitempty"`
	Mode string `json:"mode,omitempty"`
	// Load is the session to load, empty for a new one.
	Load string `json:"load,omitempty"`
	// Open is how the opening of the session ends: "ok", an error code, or "no answer".
	Open  end    `json:"open"`
	Turns []turn `json:"turns"`
	// Updates counts all session/update of the conversation, also those after its turns.
	Updates int `json:"updates"`
	// Permissions counts the permission requests.
	Permissions int `json:"permissions"`
	// Hangs says that the process does not end with its input; Killed that it was killed.
	Hangs  bool `json:"hangs,omitempty"`
	Killed bool `json:"killed,omitempty"`
	// InputAt is how many updates stood before the end of input.
	InputAt int `json:"input_at"`
}

// turn is one prompt and its end.
type turn struct {
	Prompt string `json:"-"`
	// Before counts the updates before the prompt, Updates those between it and its answer.
	Before  int `json:"before"`
	Updates int `json:"updates"`
	// Choices answers the permission requests in their order: an option id, "" for cancelled.
	Choices []string `json:"choices,omitempty"`
	// Cancel says when the turn is cancelled; nil: it is not.
	Cancel *cancelAt `json:"cancel,omitempty"`
	End    end       `json:"end"`
}

// cancelAt is what the client had seen and done when it cancelled.
type cancelAt struct {
	// Mark is the script's mark behind everything that the agent had said.
	Mark string `json:"mark"`
	// Updates counts those of the conversation, Asked and Answered permission requests of the turn.
	Updates  int `json:"updates"`
	Asked    int `json:"asked"`
	Answered int `json:"answered"`
}

// end is how a request ended: with a stop reason or "ok", with an error code, or not at all.
type end struct {
	Stop string `json:"stop,omitempty"`
	Code *int   `json:"code,omitempty"`
}

// String is the end in one word.
func (e end) String() string {
	switch {
	case e.Code != nil:
		text, err := json.Marshal(*e.Code)
		if err != nil {
			panic(err) // a number always encodes
		}
		return "error " + string(text)
	case e.Stop != "":
		return e.Stop
	}
	return "no answer"
}

// step is one step of an agent script; fixtures/cases/README.md describes them.
type step struct {
	On       string                     `json:"on,omitempty"`
	Inner    []step                     `json:"steps,omitempty"`
	Expect   string                     `json:"expect,omitempty"`
	Save     string                     `json:"save,omitempty"`
	Reply    string                     `json:"reply,omitempty"`
	Result   json.RawMessage            `json:"result,omitempty"`
	Error    json.RawMessage            `json:"error,omitempty"`
	Raw      string                     `json:"raw,omitempty"`
	To       string                     `json:"to,omitempty"`
	Await    string                     `json:"await,omitempty"`
	ID       json.RawMessage            `json:"id,omitempty"`
	Assert   map[string]json.RawMessage `json:"assert,omitempty"`
	Mark     string                     `json:"mark,omitempty"`
	UntilEOF bool                       `json:"until_eof,omitempty"`
	Exit     *exit                      `json:"exit,omitempty"`
	Hang     bool                       `json:"hang,omitempty"`
}

type exit struct {
	Code   *int   `json:"code,omitempty"`
	Signal string `json:"signal,omitempty"`
}

// omission is something of the recording that our client never does, and why.
type omission struct {
	Line int    `json:"line"`
	What string `json:"what"`
	Why  string `json:"why"`
}

// converted is a whole transcript.
type converted struct {
	Name          string         `json:"transcript"`
	Conversations []conversation `json:"conversations,omitempty"`
	// LeftOut lists what our client never does and the rest can be played without.
	LeftOut []omission `json:"left_out,omitempty"`
	// NotApplicable is the first thing that our client never does and the rest depends on.
	NotApplicable *omission `json:"not_applicable,omitempty"`
}
