package transport

import (
	"context"
	"fmt"

	acp "github.com/coder/acp-go-sdk"
)

// closeSession sends session/close where the agent offers it, once, and waits for the answer
// within its bound. Nothing depends on it: a failure is counted. It is not sent over a connection
// that has failed, beside another request, or to an agent that does not read.
func (c *conn) closeSession(ctx context.Context) {
	c.mu.Lock()
	due := c.negotiated.Strategy != "" && c.negotiated.Capabilities["sessionCapabilities.close"] &&
		c.turn == nil && !c.parted && c.cause == nil && !c.closing
	c.parted = c.parted || due
	c.mu.Unlock()
	if !due {
		return
	}
	limit, cancel := context.WithTimeout(ctx, c.o.CloseTimeout)
	defer cancel()
	if c.out.flush(limit) != nil {
		return
	}
	k, err := c.begin(PhaseClose, acp.AgentMethodSessionClose, acp.CloseSessionRequest{SessionId: acp.SessionId(c.session())})
	if err != nil {
		return
	}
	select {
	case <-k.done:
		_, err = c.outcome(k)
	case <-c.dead:
		err = c.failed(PhaseClose)
	case <-limit.Done():
		err = ended(limit, PhaseClose, acp.AgentMethodSessionClose+" had no answer in time")
	}
	c.mu.Lock()
	k.abandoned = !k.isDone
	c.phase = PhaseIdle
	c.mu.Unlock()
	if err != nil {
		c.stats.add(func(s *Stats) { s.CloseFailed = true })
	}
}

// withdraw tells the agent that nobody waits for the answer to a request of the handshake any
// more, with $/cancel_request. The connection is given up next, so the notice is written first,
// as far as the agent reads.
func (c *conn) withdraw(k *call) {
	c.mu.Lock()
	k.abandoned = !k.isDone
	if !k.sent {
		k.withheld = true
	}
	open := k.sent && !k.isAnswered && c.cause == nil
	id := k.id
	c.mu.Unlock()
	if !open || c.out.put(fmt.Appendf(nil, "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":%d}}\n", id)) != nil {
		return
	}
	brief, cancel := context.WithTimeout(context.Background(), c.o.DrainTimeout)
	defer cancel()
	_ = c.out.flush(brief) // an agent that does not read will not miss it
}
