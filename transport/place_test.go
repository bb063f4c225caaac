package transport

import "testing"

// The turn is open until its caller has taken the answer. What came behind the answer is late all the
// same, also when the call itself is over already.
func TestAnUpdateBehindTheAnswerIsLate(t *testing.T) {
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
