package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	acp "github.com/coder/acp-go-sdk"
)

// ErrBusy is in the chain when a turn is asked for while the answer to another is awaited.
var ErrBusy = errors.New("another request is open")

var errWithheld = errors.New("cancelled before it was sent")

// call is one request to the agent. The SDK correlates; what the guard knows of the answer
// decides, since the SDK's own errors look like the agent's.
type call struct {
	phase  Phase
	method string
	id     uint64
	sent   bool
	// answered is closed when the answer was seen, done when it was delivered, after every
	// update before it.
	answered, done chan struct{}
	// abandoned says that nobody waits any more.
	isAnswered, isDone, abandoned bool
	// withheld: cancelled before it was sent, so it never is.
	withheld bool
	fault    *fault
	result   json.RawMessage
	err      error
}

// begin sends one request. The SDK is never given a context that ends: it would forget the
// answer and tell the agent so.
func (c *conn) begin(phase Phase, method string, params any) (*call, *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		e := *c.cause
		e.Phase = phase
		return nil, &e
	}
	if c.call != nil {
		return nil, &Error{Kind: Protocol, Phase: phase, Err: ErrBusy,
			What: fmt.Sprintf("%s is not sent while %s has no answer", method, c.call.method)}
	}
	k := &call{phase: phase, method: method, answered: make(chan struct{}), done: make(chan struct{})}
	c.call, c.phase, c.callAt, c.replyAt = k, phase, c.ledger.passed.Load(), math.MaxInt64
	c.spawn(func() {
		result, err := acp.SendRequest[json.RawMessage](c.sdk, context.Background(), method, params)
		c.mu.Lock()
		k.result, k.err = result, err
		if c.call == k {
			c.call = nil
		}
		k.isDone = true
		answered, abandoned := k.isAnswered, k.abandoned
		c.mu.Unlock()
		close(k.done)
		if answered && abandoned && phase == PhasePrompt {
			c.late(k)
		}
		if answered {
			c.ledger.step(&c.ledger.returned)
		}
	})
	return k, nil
}

// answered marks the open call as answered; false when number is not its id, or it has an
// answer already. Called before the SDK sees the answer.
func (c *conn) answered(number uint64, wrong *fault) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.call
	if k == nil || !k.sent || k.id != number || k.isAnswered {
		return false
	}
	k.isAnswered, k.fault = true, wrong
	c.replyAt = c.ledger.passed.Load()
	c.ledger.answered.Add(1)
	close(k.answered)
	if k.phase == PhasePrompt && c.turn != nil {
		c.turn.end()
	}
	return true
}

func (c *conn) isAnswered(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return k.isAnswered
}

// outcome returns the answer of a call that is done.
func (c *conn) outcome(k *call) (json.RawMessage, *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case k.isAnswered && k.fault != nil:
		return nil, rpcError(k)
	case k.isAnswered && k.err == nil:
		return k.result, nil
	case c.cause != nil:
		e := *c.cause
		e.Phase = k.phase
		return nil, &e
	}
	kind := Transport
	if c.out.stalled() {
		kind = Timeout
	}
	return nil, &Error{Kind: kind, Phase: k.phase, What: k.method + " could not be sent", Err: c.out.failure()}
}

func rpcError(k *call) *Error {
	code := k.fault.code
	e := &Error{
		Kind: Protocol, Phase: k.phase, Code: &code, What: "the agent answered " + k.method + " with an error",
		Message: k.fault.message, Data: json.RawMessage(k.fault.data),
	}
	if k.fault.unusable { // nobody must read our words, or our code, as the agent's
		e.Code, e.Message, e.What = nil, "", "the agent's answer to "+k.method+" cannot be used: "+k.fault.message
	}
	switch {
	case code == codeAuthRequired:
		e.Kind = AuthRequired
	case k.phase == PhaseLoad, k.phase == PhaseResume:
		e.Kind = SessionUnavailable
	}
	return e
}

// writer is what the SDK writes to: one whole line a call.
type writer struct{ c *conn }

func (w writer) Write(p []byte) (int, error) {
	// Our request's id and method stand before its parameters, which need not be read again.
	var id, method []byte
	for m := (members{b: p}); method == nil && m.next(); {
		switch string(m.key) {
		case "id":
			id = m.value
		case "method":
			method = m.value
		}
	}
	if id != nil && method != nil && !w.c.sending(id) {
		return 0, errWithheld
	}
	err := w.c.out.put(append([]byte(nil), p...))
	if id != nil && method == nil {
		// Also where it could not be queued: nobody will answer it again.
		w.c.questions.answered(id)
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// sending notes the id that the SDK gave to the open call; false when it is not to be sent.
func (c *conn) sending(raw []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := replyNumber(raw)
	if !ok || c.call == nil || c.call.sent || c.call.withheld {
		return false
	}
	c.call.id, c.call.sent = n, true
	return true
}
