package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"greatminds/fixtures/agent"
)

// client deals with a message of the recording client: what our client does too becomes a step,
// what it never does is left out, or makes the whole not applicable.
func (c *converter) client(l *line) error {
	m := l.msg
	if m == nil {
		c.reject(l, fmt.Sprintf("the bytes %.40q", l.text), "our client writes nothing but messages")
		return nil
	}
	if c.over && m.Method != "session/load" && m.Method != "session/new" {
		c.leaveOut(l, "nothing follows an opening that failed, or a prompt without an answer")
		return nil
	}
	switch {
	case m.Method == "":
		return c.answer(l)
	case m.isNotification():
		c.notification(l)
		return nil
	}
	if m.Method != "initialize" && c.capabilities == nil {
		c.reject(l, m.Method+" before initialize", "our client begins with initialize")
		return nil
	}
	switch m.Method {
	case "initialize":
		c.initialize(l)
	case "authenticate":
		c.auth = word(dig(m.Params, "methodId"))
		c.expect(l, step{Assert: asserts(m.Params, "methodId")})
	case "session/new", "session/load", "session/resume":
		c.begin(l)
	case "session/set_mode":
		c.setMode(l)
	case "session/prompt":
		c.prompt(l)
	case "session/list", "session/close", "session/delete":
		c.leaveOut(l, "our client does not ask for it within a run")
	default:
		c.reject(l, m.Method, "our client does not call it, or not like this")
	}
	return nil
}

// leaveOut leaves a message out, and its answer when it is a request.
func (c *converter) leaveOut(l *line, why string) {
	what := l.msg.Method
	if what == "" {
		what = "an answer"
	}
	c.omit(l, what, why)
	if l.msg.isRequest() {
		c.sent[string(l.msg.ID)] = &request{method: l.msg.Method, omitted: true}
	}
}

// expect waits for a request of our client in the place of the recorded one.
func (c *converter) expect(l *line, s step) *request {
	c.saved++
	r := &request{method: l.msg.Method, save: fmt.Sprintf("c%d", c.saved)}
	c.sent[string(l.msg.ID)] = r
	s.Expect, s.Save = r.method, r.save
	c.add(s)
	return r
}

// asserts lets the script check that our client sends the same.
func asserts(params json.RawMessage, names ...string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, name := range names {
		if value := dig(params, name); value != nil {
			out["/params/"+name] = inJSON(value)
		}
	}
	return out
}

func (c *converter) initialize(l *line) {
	params := l.msg.Params
	switch {
	case c.capabilities != nil || c.now != nil:
		c.reject(l, "initialize again", "our client sends it once")
	case string(dig(params, "protocolVersion")) != "1":
		c.reject(l, "protocolVersion "+string(dig(params, "protocolVersion")), "our client offers 1 and nothing else")
	case offers(dig(params, "clientCapabilities")):
		c.reject(l, "clientCapabilities with the file system or a terminal", "our client offers neither")
	default:
		c.expect(l, step{Assert: map[string]json.RawMessage{"/params/protocolVersion": json.RawMessage("1")}})
		c.capabilities = json.RawMessage("{}") // until the answer says more
	}
}

// offers says that any of the capabilities is true.
func offers(raw json.RawMessage) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return string(raw) == "true"
	}
	for _, value := range object {
		if offers(value) {
			return true
		}
	}
	return false
}

// begin opens a session: a conversation of its own.
func (c *converter) begin(l *line) {
	m := l.msg
	loads := string(dig(c.capabilities, "loadSession")) == "true"
	switch {
	case m.Method == "session/resume" && loads:
		c.leaveOut(l, "our client resumes only where nothing loads")
		return
	case m.Method == "session/load" && !loads:
		c.leaveOut(l, "our client loads only where that is offered")
		return
	case c.open != nil:
		c.reject(l, m.Method+" during a turn", "our client has one session in a process")
		return
	}
	c.leave()
	c.now = &conversation{Steps: slices.Clone(c.prefix), Plan: plan{Auth: c.auth, Turns: []turn{}, Updates: c.early}}
	c.over, c.modes, c.modeSet = false, false, false
	checks := asserts(m.Params, "cwd")
	c.session = word(dig(m.Params, "sessionId"))
	if c.session != "" {
		c.now.Plan.Load = c.session
		checks = asserts(m.Params, "cwd", "sessionId")
	}
	c.expect(l, step{Assert: checks})
}

// modeByRequest says that our client sets a mode with session/set_mode: where a config option has
// the category, it sets that.
func modeByRequest(opened json.RawMessage) bool {
	var options []json.RawMessage
	if err := json.Unmarshal(dig(opened, "configOptions"), &options); err == nil {
		for _, o := range options {
			if word(dig(o, "category")) == "mode" && word(dig(o, "type")) == "select" {
				return false
			}
		}
	}
	return strings.HasPrefix(strings.TrimSpace(string(dig(opened, "modes"))), "{")
}

func (c *converter) setMode(l *line) {
	again := c.modeSet
	c.modeSet = true
	switch {
	case c.now == nil || again || len(c.now.Plan.Turns) > 0:
		c.reject(l, "session/set_mode again, or after a prompt", "our client sets a mode once, before its first prompt")
	case !c.modes:
		c.leaveOut(l, "our client sets the config option that the agent offers for it")
	default:
		c.now.Plan.Mode = word(dig(l.msg.Params, "modeId"))
		c.expect(l, step{Assert: asserts(l.msg.Params, "sessionId", "modeId")})
	}
}

func (c *converter) prompt(l *line) {
	switch {
	case c.now == nil:
		c.reject(l, "a prompt before a session", "our client has a session first")
		return
	case word(dig(l.msg.Params, "sessionId")) != c.session:
		c.leaveOut(l, "our client prompts only its own session")
		return
	case c.open != nil:
		c.over = true
		c.leaveOut(l, "our client has one prompt open at a time")
		return
	}
	c.now.Plan.Turns = append(c.now.Plan.Turns, turn{Prompt: agent.PromptText(l.msg.Params), Before: c.now.Plan.Updates})
	c.open = &c.now.Plan.Turns[len(c.now.Plan.Turns)-1]
	r := c.expect(l, step{Assert: asserts(l.msg.Params, "sessionId", "prompt")})
	r.turn = c.open
}

func (c *converter) notification(l *line) {
	switch {
	case l.msg.Method != "session/cancel":
		c.reject(l, l.msg.Method, "our client does not send it")
	case c.open == nil:
		c.leaveOut(l, "our client cancels only a turn that is open")
	case c.open.Cancel != nil:
		c.leaveOut(l, "our client cancels a turn once")
	default:
		mark := fmt.Sprintf("cancel-%d", len(c.now.Plan.Turns))
		c.open.Cancel = &cancelAt{Mark: mark, Updates: c.now.Plan.Updates, Asked: c.askedInTurn(), Answered: len(c.open.Choices)}
		c.add(step{Mark: mark}, step{Expect: "session/cancel", Assert: asserts(l.msg.Params, "sessionId")})
	}
}

// askedInTurn counts the turn's permission requests so far, answered or not.
func (c *converter) askedInTurn() int {
	n := len(c.open.Choices)
	for _, q := range c.asked {
		if q.method == "session/request_permission" {
			n++
		}
	}
	return n
}

// answer is an answer of the client to a request of the agent.
func (c *converter) answer(l *line) error {
	q, asked := c.asked[string(l.msg.ID)]
	if !asked {
		c.leaveOut(l, "our client answers only what it was asked")
		return nil
	}
	delete(c.asked, string(l.msg.ID))
	checks := map[string]json.RawMessage{}
	if code := dig(l.msg.Error, "code"); code != nil {
		checks["/error/code"] = code
	}
	if q.method == "session/request_permission" {
		outcome := dig(l.msg.Result, "outcome")
		checks["/result/outcome/outcome"] = dig(outcome, "outcome")
		if option := dig(outcome, "optionId"); option != nil {
			checks["/result/outcome/optionId"] = option
		}
		c.choose(word(dig(outcome, "optionId")))
	}
	c.add(step{Await: q.name, ID: l.msg.ID, Assert: checks})
	return nil
}

// choose notes the answer to a permission request for the turn in which it was asked: the last.
func (c *converter) choose(option string) {
	if n := len(c.now.Plan.Turns); n > 0 {
		t := &c.now.Plan.Turns[n-1]
		t.Choices = append(t.Choices, option)
	}
}
