package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	acp "github.com/coder/acp-go-sdk"
)

// Turn is what is known of a prompt turn, also when it failed.
type Turn struct {
	// StopReason is the agent's, cut to 128 bytes; empty when none came. It is an observation:
	// agents end failed turns with end_turn, and call a rejected permission cancelled.
	StopReason string
	// Known says that StopReason is one of protocol version 1.
	Known bool
	// Tokens is the usage in the answer.
	Tokens Tokens
	// Updates, Chunks, TextBytes and Gaps count what came during the turn: all updates, the
	// agent's message chunks, the bytes of their text, and messages lost for their size.
	Updates, Chunks int
	TextBytes       int64
	Gaps            int
	// InputNeeded counts questions that were cancelled because there is no handler.
	InputNeeded int
	// CancelSent says that session/cancel was sent.
	CancelSent bool
	// Took is the time from the request to its answer or failure.
	Took time.Duration
}

// turn is an open prompt turn; its fields are under the connection's lock.
type turn struct {
	sum Turn
	// asked is closed when the owner asks to cancel, over when questions of the turn count no
	// more: it was answered or cancelled, or the session closes.
	asked, over       chan struct{}
	wasAsked, wasOver bool
}

// end ends the turn's questions; the connection's lock is held.
func (t *turn) end() {
	if !t.wasOver {
		t.wasOver = true
		close(t.over)
	}
}

func (t *turn) endLocked(c *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.end()
}

// openTurn returns the turn to which a question may belong now, or nil.
func (c *conn) openTurn() *turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turn == nil || c.turn.wasOver {
		return nil
	}
	return c.turn
}

// Prompt sends one prompt and waits for the turn's end. Every update that the agent sent
// before its answer was handled when Prompt returns, also when the answer is an error.
//
// The end of ctx is the end of the turn's budget, not of the request: session/cancel is sent
// once, open questions are answered with cancelled, and the agent has [Options.CancelGrace]
// to give its stop reason. The error is then of kind Timeout or Cancelled in any case, with the
// code of the agent's error where it answers with one, and Turn holds what is known. When Prompt returns every question of the turn has its answer.
// With a ctx that has ended already nothing is sent.
//
// One turn at a time: otherwise, and while the answer to an abandoned turn is awaited, it
// fails with [ErrBusy]. A failed Handler.Update fails the turn with [ErrObservation].
func (s *Session) Prompt(ctx context.Context, text string) (Turn, error) {
	c := s.conn
	if ctx.Err() != nil {
		return Turn{}, ended(ctx, PhasePrompt, "the prompt was not sent")
	}
	if s.ID() == "" {
		return Turn{}, &Error{Kind: Configuration, Phase: PhasePrompt, What: "no session was opened"}
	}
	if !utf8.ValidString(text) {
		return Turn{}, &Error{Kind: Configuration, Phase: PhasePrompt, What: "the prompt is not valid UTF-8"}
	}
	t, k, err := c.beginTurn(promptParams{SessionID: s.ID(), Prompt: []textBlock{{Type: "text", Text: text}}})
	if err != nil {
		return Turn{}, err
	}
	began := time.Now()
	stopped := c.awaitTurn(ctx, t, k)
	return c.endTurn(t, k, stopped, began)
}

// promptParams are encoded several times faster than the SDK's union of content blocks.
type promptParams struct {
	SessionID string      `json:"sessionId"`
	Prompt    []textBlock `json:"prompt"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (c *conn) beginTurn(params promptParams) (*turn, *call, error) {
	t := &turn{asked: make(chan struct{}), over: make(chan struct{})}
	c.mu.Lock()
	if c.turn != nil || c.closing {
		c.mu.Unlock()
		return nil, nil, &Error{Kind: Protocol, Phase: PhasePrompt, What: "a turn is open", Err: ErrBusy}
	}
	if c.parted {
		c.mu.Unlock()
		return nil, nil, &Error{Kind: Protocol, Phase: PhasePrompt, What: "the session is closed"}
	}
	c.turn, c.prompted = t, true
	c.mu.Unlock()
	c.questions.newTurn()
	k, err := c.begin(PhasePrompt, acp.AgentMethodSessionPrompt, params)
	if err != nil {
		c.mu.Lock()
		c.turn = nil
		c.mu.Unlock()
		return nil, nil, err
	}
	return t, k, nil
}

// awaitTurn returns nil when the turn has its answer or the connection its failure, and why
// the turn was given up otherwise.
func (c *conn) awaitTurn(ctx context.Context, t *turn, k *call) *Error {
	var stopped *Error
	select {
	case <-k.answered:
	case <-k.done:
	case <-c.dead:
	case <-ctx.Done():
		stopped = ended(ctx, PhasePrompt, "the turn did not end in time")
	case <-t.asked:
		stopped = &Error{Kind: Cancelled, Phase: PhasePrompt, What: "the turn was cancelled"}
	}
	if stopped != nil && c.isAnswered(k) {
		stopped = nil // both at once: the answer counts
	}
	grace := c.o.SettleTimeout
	if stopped != nil {
		grace = c.o.CancelGrace
		c.cancelTurn(t)
	}
	return first(stopped, c.settle(k, grace, stopped == nil))
}

// settle waits for the turn's answer to be delivered, for at most span; with patience, for
// that long without one more update handled.
func (c *conn) settle(k *call, span time.Duration, patience bool) *Error {
	limit := time.NewTimer(span)
	defer limit.Stop()
	for handled := c.ledger.handled.Load(); ; {
		select {
		case <-k.done:
			return nil
		case <-c.dead:
			// The reader gives up only after the answer, if there was one, was delivered.
			select {
			case <-k.done:
				return nil
			default:
				return c.failed(PhasePrompt)
			}
		case <-limit.C:
			if now := c.ledger.handled.Load(); patience && now != handled {
				handled = now
				limit.Reset(span)
				continue
			}
			return &Error{Kind: Protocol, Phase: PhasePrompt, Err: ErrObservation,
				What: fmt.Sprintf("the updates before the answer were not handled within %s", span)}
		}
	}
}

// isFault says that e is a failure of the agent or the connection.
func (e *Error) isFault() bool { return e != nil && (e.Kind == Transport || e.Kind == Protocol) }

func first(a, b *Error) *Error {
	if a != nil {
		return a
	}
	return b
}

// endTurn puts together what is known.
func (c *conn) endTurn(t *turn, k *call, stopped *Error, began time.Time) (Turn, error) {
	err := stopped
	t.endLocked(c)
	// They are answered by now, but perhaps not queued: nothing of this turn may follow the
	// next one's prompt.
	brief, cancel := context.WithTimeout(context.Background(), c.o.SettleTimeout)
	defer cancel()
	c.questions.wait(brief)
	stop, used, answer := c.stopReason(k)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn, c.phase = nil, PhaseIdle
	sum := t.sum
	sum.Took = time.Since(began)
	sum.StopReason, sum.Tokens = stop, used
	sum.Known = KnownStop(stop)
	if t.wasAsked && sum.CancelSent && first(err, answer).isFault() {
		// Whether the caller saw its own cancel first, or how the agent took it: an error, or its
		// end, is then no fault of its own.
		err = &Error{Kind: Cancelled, Phase: PhasePrompt, What: "the turn was cancelled"}
	}
	if err == nil {
		err = answer
	} else if answer != nil && err.Code == nil {
		told := *err // the code counts whatever it answers: it may be the provider's word
		told.Code = answer.Code
		err = &told
	}
	if err == nil && c.unrecorded != nil {
		err = &Error{Kind: Protocol, Phase: PhasePrompt, What: "the turn was not recorded", Err: c.unrecorded}
	}
	if err == nil && t.wasAsked {
		err = &Error{Kind: Cancelled, Phase: PhasePrompt, What: "the turn was cancelled"}
	}
	if err != nil {
		return sum, err
	}
	return sum, nil
}

// KnownStop says that a stop reason is one of protocol version 1.
func KnownStop(reason string) bool { return slices.Contains(stopReasons, reason) }

var stopReasons = []string{"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}

// stopReason reads the answer of a prompt that may not have one yet. One that comes later is
// kept in the statistics: a late stop reason is evidence.
func (c *conn) stopReason(k *call) (string, Tokens, *Error) {
	c.mu.Lock()
	k.abandoned = !k.isDone
	c.mu.Unlock()
	if k.abandoned {
		return "", Tokens{Reading: Missing}, nil
	}
	return c.readStop(k)
}

// late keeps the stop reason of an abandoned turn.
func (c *conn) late(k *call) {
	if stop, _, err := c.readStop(k); err == nil {
		c.stats.add(func(s *Stats) { s.LateStopReason = stop })
	}
}

func (c *conn) readStop(k *call) (string, Tokens, *Error) {
	result, err := c.outcome(k)
	if err != nil {
		return "", Tokens{Reading: Missing}, err
	}
	used := tokens(member(result, "usage"))
	stop := cut(text(member(result, "stopReason")), maxWord)
	if stop == "" {
		return "", used, &Error{Kind: Protocol, Phase: PhasePrompt, What: "the answer has no stop reason"}
	}
	return stop, used, nil
}

// cancelTurn sends session/cancel once; the turn's questions are answered behind it.
func (c *conn) cancelTurn(t *turn) {
	c.mu.Lock()
	if t.sum.CancelSent || t.wasOver || c.cause != nil {
		t.end()
		c.mu.Unlock()
		return
	}
	if k := c.call; k != nil && !k.sent {
		k.withheld = true // a cancel must not overtake its prompt
		t.end()
		c.mu.Unlock()
		return
	}
	t.sum.CancelSent = true
	id := c.sessionID
	c.mu.Unlock()
	// Not waited for, and where it cannot be queued the agent is not reading anyway.
	_ = c.sdk.SendNotification(context.Background(), acp.AgentMethodSessionCancel,
		acp.CancelNotification{SessionId: acp.SessionId(id)})
	t.endLocked(c)
}

// Cancel asks the agent to end the open turn: session/cancel once, and every open question
// answered with cancelled. It does not wait for the agent; [Session.Prompt] returns with
// kind Cancelled within [Options.CancelGrace]. Without an open turn it does nothing.
func (s *Session) Cancel(ctx context.Context) error {
	c := s.conn
	if ctx.Err() != nil {
		return ended(ctx, PhasePrompt, "the cancel was not sent")
	}
	c.mu.Lock()
	t := c.turn
	if t == nil || t.wasOver {
		c.mu.Unlock()
		return nil
	}
	if !t.wasAsked {
		t.wasAsked = true
		defer close(t.asked)
	}
	c.mu.Unlock()
	c.cancelTurn(t)
	return nil
}

// ended turns the end of a context into an error.
func ended(ctx context.Context, phase Phase, what string) *Error {
	kind := Cancelled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = Timeout
	}
	return &Error{Kind: kind, Phase: phase, What: what, Err: context.Cause(ctx)}
}
