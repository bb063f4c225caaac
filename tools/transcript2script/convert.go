package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// convert turns the lines of one transcript into conversations. An error says that the transcript
// is not understood; one that is, but that our client cannot cause, is not applicable.
func convert(name string, lines []line) (*converted, error) {
	out := &converted{Name: name}
	for _, process := range processes(lines) {
		c := &converter{out: out, name: name}
		if err := c.process(process); err != nil {
			return nil, err
		}
		if out.NotApplicable != nil {
			out.Conversations = nil
			return out, nil
		}
	}
	return out, nil
}

// processes splits a transcript where a process begins.
func processes(lines []line) [][]line {
	var out [][]line
	for i, l := range lines {
		if i == 0 || l.D == fact && l.Note.Spawn != nil {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], l)
	}
	return out
}

// converter reads one process of a transcript.
type converter struct {
	out  *converted
	name string

	// prefix are the steps until a session is asked for: each further session of the process
	// becomes a launch of its own that begins with them.
	prefix []step
	// early counts the updates before a session.
	early        int
	capabilities json.RawMessage
	auth         string
	now          *conversation

	// sent are the client's requests without an answer, by id.
	sent map[string]*request
	// asked are the agent's requests without an answer, by id; requests names them.
	asked           map[string]question
	requests, saved int

	session string
	// modes: our client would set a mode with session/set_mode; modeSet: it was asked for.
	modes, modeSet bool
	open           *turn // the turn under way
	over           bool  // what follows stands behind an opening that failed, or a prompt without an answer
	timedOut       bool  // the recording client has given up a request, and said nothing since
	closing        json.RawMessage
	ended          *finish
	inputEnd       bool
}

// question is a request of the agent, by the name of the step that awaits its answer.
type question struct {
	name, method string
}

// request is a request of the recording client.
type request struct {
	method, save string
	omitted      bool
	turn         *turn
}

func (c *converter) process(lines []line) error {
	c.sent, c.asked = map[string]*request{}, map[string]question{}
	for _, l := range lines {
		if l.D == fact && l.Note.Finish != nil {
			c.ended = l.Note.Finish
		}
	}
	c.closing = closingAnswer(lines)
	first := len(c.out.Conversations)
	for i := range lines {
		if err := c.line(&lines[i]); err != nil {
			return fmt.Errorf("%s:%d: %w", c.name, lines[i].number, err)
		}
		if c.out.NotApplicable != nil {
			return nil
		}
	}
	if c.now == nil {
		if len(c.prefix) == 0 {
			return fmt.Errorf("%s: a process to which the client said nothing", c.name)
		}
		return fmt.Errorf("%s: the client asks for no session", c.name)
	}
	c.leave()
	for i := first; i < len(c.out.Conversations); i++ {
		if err := c.finishes(&c.out.Conversations[i]); err != nil {
			return err
		}
	}
	return nil
}

// closingAnswer is what the agent answered to session/close, {} when it was not asked.
func closingAnswer(lines []line) json.RawMessage {
	var id json.RawMessage
	for _, l := range lines {
		switch {
		case l.msg == nil:
		case l.D == fromClient && l.msg.Method == "session/close":
			id = l.msg.ID
		case l.D == fromAgent && l.msg.Method == "" && id != nil && bytes.Equal(id, l.msg.ID) && l.msg.Result != nil:
			return l.msg.Result
		}
	}
	return json.RawMessage("{}")
}

func (c *converter) line(l *line) error {
	switch l.D {
	case fact:
		c.timedOut = c.timedOut || l.Note.Timeout != nil
		if l.Note.Tree == "before-eof" {
			c.endInput()
		}
		return nil
	case fromStderr:
		c.write(l.text+"\n", "stderr")
		return nil
	case fromAgent:
		if l.msg == nil {
			c.write(l.text+"\n", "")
			return nil
		}
		return c.agent(l)
	}
	c.timedOut = false
	return c.client(l)
}

// add puts steps at the end of the conversation, or of what stands before the first.
func (c *converter) add(steps ...step) {
	if c.now == nil {
		c.prefix = append(c.prefix, steps...)
		return
	}
	c.now.Steps = append(c.now.Steps, steps...)
}

// write lets the agent write bytes; lines of standard error that follow each other are one step.
func (c *converter) write(text, to string) {
	steps := &c.prefix
	if c.now != nil {
		steps = &c.now.Steps
	}
	text = asText(text)
	if last := len(*steps) - 1; last >= 0 && to == "stderr" && (*steps)[last].To == to {
		(*steps)[last].Raw += text
		return
	}
	*steps = append(*steps, step{Raw: text, To: to})
}

// asText is a text as a member of a step has it: $CWD is the agent's folder, and what only looks
// like a reference of the script stays what it is.
func asText(text string) string {
	text = strings.ReplaceAll(text, "${", "${"+dollar+"}{")
	return strings.ReplaceAll(text, "$CWD", "${cwd}")
}

// dollar is the script's variable for the character.
const dollar = "dollar"

func inJSON(raw json.RawMessage) json.RawMessage { return json.RawMessage(asText(string(raw))) }

// omit leaves something of the client out.
func (c *converter) omit(l *line, what, why string) {
	c.out.LeftOut = append(c.out.LeftOut, omission{Line: l.number, What: what, Why: why})
}

// reject says that the whole transcript is not applicable.
func (c *converter) reject(l *line, what, why string) {
	c.out.NotApplicable = &omission{Line: l.number, What: what, Why: why}
}

// agent deals with a message of the agent.
func (c *converter) agent(l *line) error {
	m := l.msg
	r := c.sent[string(m.ID)]
	switch {
	case m.Method == "" && r != nil:
		delete(c.sent, string(m.ID))
		if r.omitted {
			return nil
		}
		return c.reply(l, r)
	case c.over:
		c.omit(l, "the agent's "+m.Method, "it answers to what is left out")
		return nil
	case m.isRequest():
		c.requests++
		c.asked[string(m.ID)] = question{name: fmt.Sprintf("a%d", c.requests), method: m.Method}
		if m.Method == "session/request_permission" && c.now != nil {
			c.now.Plan.Permissions++
		}
	case m.Method == "session/update":
		c.update()
	}
	c.write(l.text+"\n", "")
	return nil
}

func (c *converter) update() {
	if c.now == nil {
		c.early++
		return
	}
	c.now.Plan.Updates++
	if c.open != nil {
		c.open.Updates++
	}
}

// reply answers a request of the client.
func (c *converter) reply(l *line, r *request) error {
	result, failure, err := answerOf(l)
	if err != nil {
		return err
	}
	c.add(step{Reply: r.save, Result: inJSON(result), Error: inJSON(failure)})
	how, err := endOf(result, failure)
	if err != nil {
		return err
	}
	switch r.method {
	case "initialize":
		c.capabilities = dig(result, "agentCapabilities")
		if dig(c.capabilities, "sessionCapabilities", "close") != nil {
			c.add(step{On: "session/close", Inner: []step{{Reply: "close", Result: inJSON(c.closing)}}})
		}
	case "session/new", "session/load", "session/resume":
		c.now.Plan.Open = how
		if id := word(dig(result, "sessionId")); id != "" {
			c.session = id
		}
		c.over = how.Code != nil
		c.modes = modeByRequest(result)
	case "session/prompt":
		r.turn.End = how
		c.open = nil
	}
	return nil
}

// answerOf is the result or the error of a reply. The script's reply is compact, so a cut one is
// padded once more, by what its blanks were.
func answerOf(l *line) (result, failure json.RawMessage, err error) {
	m := l.msg
	if l.Cut > 0 {
		var short bytes.Buffer
		if err := json.Compact(&short, []byte(l.text)); err != nil {
			return nil, nil, err
		}
		text, err := pad(l.Head, l.Tail, 2*l.Cut-len([]rune(short.String())))
		if err != nil {
			return nil, nil, err
		}
		whole := line{text: text}
		if err := whole.read(); err != nil {
			return nil, nil, err
		}
		m = whole.msg
	}
	if (m.Result == nil) == (m.Error == nil) {
		return nil, nil, fmt.Errorf("an answer with result and error, or with none of them")
	}
	return m.Result, m.Error, nil
}

func endOf(result, failure json.RawMessage) (end, error) {
	if failure != nil {
		code, err := strconv.Atoi(string(dig(failure, "code")))
		if err != nil {
			return end{}, fmt.Errorf("an error without a code: %w", err)
		}
		return end{Code: &code}, nil
	}
	if stop := word(dig(result, "stopReason")); stop != "" {
		return end{Stop: stop}, nil
	}
	return end{Stop: "ok"}, nil
}
