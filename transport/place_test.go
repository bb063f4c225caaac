package transport

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// The turn is open until its caller has taken the answer. What came behind the answer is late all the
// same, also when the call itself is over already.
func TestAnUpdateBehindTheAnswerIsLate(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]bool{"the answer is on its way": false, "the call is over": true} {
		t.Run(name, func(t *testing.T) {
			c := newConn(Options{})
			c.phase, c.turn = PhasePrompt, &turn{asked: make(chan struct{}), over: make(chan struct{})}
			c.call = &call{id: 1, phase: PhasePrompt, sent: true, answered: make(chan struct{})}
			c.ledger.passed.Store(1) // one update came before the answer
			if !c.answered(1, nil) {
				t.Fatal("not taken")
			}
			if over {
				c.call = nil
			}
			for _, want := range []Phase{PhasePrompt, PhaseIdle} {
				u := Update{}
				if !c.place(&u) || u.Phase != want {
					t.Errorf("update %d: got %s, want %s", c.ledger.handled.Load()+1, u.Phase, want)
				}
				c.ledger.handled.Add(1)
			}
			if n := c.turn.sum.Updates; n != 1 {
				t.Errorf("the turn counts %d updates, want 1", n)
			}
		})
	}
}

// What was read before a prompt was begun is not the turn's, also when it is handled later.
func TestAnUpdateBeforeThePromptIsNotTheTurns(t *testing.T) {
	t.Parallel()
	stdin, toAgent, _ := os.Pipe()
	fromAgent, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	defer stdout.Close()
	o, wrong := Options{Stdin: toAgent, Stdout: fromAgent, Cwd: "/"}.filled()
	if wrong != nil {
		t.Fatal(wrong)
	}
	c := newConn(o)
	c.start()
	defer c.close(context.Background())
	c.sessionID = "s1"
	c.ledger.passed.Store(2) // read after the last answer, and not handled yet
	turn, _, err := c.beginTurn(promptParams{SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Phase{PhaseIdle, PhaseIdle, PhasePrompt} {
		u := Update{SessionID: "s1"}
		if !c.place(&u) || u.Phase != want {
			t.Errorf("update %d: got %s, want %s", c.ledger.handled.Load()+1, u.Phase, want)
		}
		c.ledger.handled.Add(1)
	}
	c.ledger.handled.Store(2) // none is open for close to wait for
	if turn.sum.Updates != 1 {
		t.Errorf("the turn counts %d updates, want 1", turn.sum.Updates)
	}
}

// An error that answers a cancelled turn, or the agent's end, is no fault of its own, also when it is
// there before the caller has seen that a cancel was asked for; one that came before the cancel is.
func TestAFaultBehindACancel(t *testing.T) {
	t.Parallel()
	died := &Error{Kind: Transport, Phase: PhasePrompt, What: "the agent process ended"}
	late := &Error{Kind: Timeout, Phase: PhasePrompt, What: "the turn did not end in time"}
	for _, c := range []struct {
		sent    bool
		stopped *Error
		code    int
		want    Kind
	}{
		{true, nil, -32800, Cancelled}, {true, nil, -32000, AuthRequired}, {true, died, 0, Cancelled}, {true, late, 0, Timeout},
		{false, nil, -32800, Protocol}, {false, died, 0, Transport},
	} {
		conn := newConn(Options{SettleTimeout: time.Second})
		conn.phase, conn.turn = PhasePrompt, &turn{asked: make(chan struct{}), over: make(chan struct{}), wasAsked: true}
		conn.turn.sum.CancelSent = c.sent
		k := &call{phase: PhasePrompt, isAnswered: c.stopped == nil, isDone: c.stopped == nil, fault: &fault{code: c.code}}
		_, err := conn.endTurn(conn.turn, k, c.stopped, time.Now())
		var e *Error
		if !errors.As(err, &e) || e.Kind != c.want {
			t.Errorf("%+v: got %v", c, err)
		}
		if answered := c.stopped == nil; answered != (e.Code != nil) || answered && *e.Code != c.code {
			t.Errorf("%+v: got the code %v", c, e.Code)
		}
	}
}
