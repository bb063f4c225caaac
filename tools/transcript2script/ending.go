package main

import (
	"fmt"
	"strconv"
)

// endInput is where the recording client closed the agent's standard input.
func (c *converter) endInput() {
	if c.now == nil || c.inputEnd {
		return
	}
	c.inputEnd = true
	c.now.Plan.InputAt = c.now.Plan.Updates
	c.add(step{UntilEOF: true})
}

// leave ends the conversation that is under way.
func (c *converter) leave() {
	if c.now == nil {
		return
	}
	if !c.inputEnd {
		c.now.Plan.InputAt = c.now.Plan.Updates
	}
	c.out.Conversations = append(c.out.Conversations, *c.now)
	c.now, c.open = nil, nil
}

// finishes puts the end of the process behind a conversation.
func (c *converter) finishes(v *conversation) error {
	if c.ended == nil {
		return nil
	}
	how, rc := c.ended.How, string(c.ended.RC)
	if last := len(v.Steps) - 1; how == "eof" && !untilEOF(v.Steps) {
		v.Steps = append(v.Steps[:last+1:last+1], step{UntilEOF: true})
	}
	if rc == `"still-running"` || how != "eof" && c.timedOut {
		// One that was ended for its silence stays silent: its end is the live client's doing.
		v.Plan.Hangs = true
		v.Steps = append(v.Steps, step{Hang: true})
		return nil
	}
	code, err := strconv.Atoi(rc)
	if err != nil {
		return fmt.Errorf("%s: exit status %s is no number", c.name, rc)
	}
	v.Plan.Killed = how != "eof"
	if code >= 0 {
		v.Steps = append(v.Steps, step{Exit: &exit{Code: &code}})
		return nil
	}
	signal, known := signals[-code]
	if !known {
		return fmt.Errorf("%s: exit status %d names no signal that is known here", c.name, code)
	}
	v.Steps = append(v.Steps, step{Exit: &exit{Signal: signal}})
	return nil
}

// signals are those that end an agent.
var signals = map[int]string{1: "HUP", 2: "INT", 6: "ABRT", 9: "KILL", 11: "SEGV", 13: "PIPE", 15: "TERM"}

func untilEOF(steps []step) bool {
	for _, s := range steps {
		if s.UntilEOF {
			return true
		}
	}
	return false
}
