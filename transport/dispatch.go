package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	acp "github.com/coder/acp-go-sdk"
)

// handle is the SDK's handler: updates one after the other, each permission request in a
// goroutine of its own. A panic of the session's handler ends neither.
func (c *conn) handle(ctx context.Context, method string, params json.RawMessage) (result any, refused *acp.RequestError) {
	switch method {
	case "session/update":
		c.update(params)
		return nil, nil
	case "session/request_permission":
		return c.permission(ctx, params)
	}
	// The reader lets nothing else through.
	panic("transport: unexpected method " + method)
}

// update handles one update. The credit is given back whatever happens.
func (c *conn) update(params []byte) {
	defer c.ledger.step(&c.ledger.handled)
	defer func() {
		if p := recover(); p != nil {
			c.observationFailed(fmt.Errorf("update handler panicked: %v", p), true)
		}
	}()
	u := decodeUpdate(params)
	if !c.place(&u) {
		c.stats.add(func(s *Stats) { s.Updates++; s.Foreign++ })
		return
	}
	if u.ToolCallID != "" && u.Known {
		u.ToolReference = c.tools.reference(u.ToolCallID)
		c.tools.note(u.ToolCallID, u.Kind == "tool_call", u.Raw)
	}
	c.count(&u)
	if c.o.Handler == nil {
		return
	}
	if err := c.o.Handler.Update(u); err != nil {
		c.observationFailed(err, false)
	}
}

// place says to which phase an update belongs; false when it is another session's. Updates
// are handled in the order of the wire, so that this one's number is the count of those
// before it: what came before the last call was begun, or after its answer, is not of its phase,
// however late it is handled, and whether the caller has taken the answer or not.
func (c *conn) place(u *Update) bool {
	number := c.ledger.handled.Load() + 1
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessionID != "" && u.SessionID != c.sessionID {
		return false
	}
	u.Phase = c.phase
	between := number <= c.callAt || number > c.replyAt
	if between {
		u.Phase = PhaseIdle
	}
	u.Replayed = u.Phase == PhaseLoad || u.Phase == PhaseResume
	switch u.Kind {
	case "config_option_update":
		if u.Known {
			c.options = readConfig(member(u.Raw, "configOptions"))
		}
	case "current_mode_update":
		if u.Known {
			c.mode = u.Mode
		}
	}
	if t := c.turn; t != nil && !between {
		t.sum.Updates++
		if u.Kind == "agent_message_chunk" {
			t.sum.Chunks++
			t.sum.TextBytes += int64(len(u.Text))
		}
	}
	return true
}

// count keeps the totals and the bounded observations.
func (c *conn) count(u *Update) {
	at, prompted := c.active(u.Phase == PhasePrompt)
	r := &c.stats
	r.mu.Lock()
	r.s.Updates++
	switch {
	case u.Phase == PhasePrompt:
		r.s.PromptUpdates++
	case u.Replayed:
		r.s.Replayed++
	case (u.Phase == PhaseIdle || u.Phase == PhaseClose) && prompted:
		r.s.LateUpdates++
	}
	if !u.Known {
		r.s.Unknown++
	}
	if u.Usage != nil {
		usage := *u.Usage
		r.s.Usage, r.s.UsageAt = &usage, at
	}
	r.mu.Unlock()
	// What is replayed are observations of other turns; they would leave no room for this one's.
	if u.ToolReference != "" && !u.Replayed {
		r.tool(observe(u, at))
	}
}

// observationFailed remembers that something the agent did could not be recorded.
func (c *conn) observationFailed(err error, panicked bool) {
	if panicked {
		c.stats.add(func(s *Stats) { s.Panics++ })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unrecorded == nil {
		c.unrecorded = errors.Join(ErrObservation, err)
	}
}
