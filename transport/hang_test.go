package transport_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"greatminds/transport"
)

// hangs are the handshakes of which one request is left without an answer, the last one.
var hangs = []struct {
	name   string
	change func(*transport.Options)
	steps  []step
	phase  transport.Phase
}{
	{"initialize", nil, []step{{"initialize", ""}}, transport.PhaseInitialize},
	{"E-023 a login that nobody finishes", func(o *transport.Options) { o.AuthMethod = "key" },
		[]step{{"initialize", plainAgent}, {"authenticate", ""}}, transport.PhaseAuthenticate},
	{"session/new", nil, []step{{"initialize", plainAgent}, {"session/new", ""}}, transport.PhaseNew},
	{"session/load", func(o *transport.Options) { o.LoadSession = "s1" },
		[]step{{"initialize", plainAgent}, {"session/load", ""}}, transport.PhaseLoad},
	{"session/resume", func(o *transport.Options) { o.LoadSession = "s1" },
		[]step{{"initialize", onlyResumes}, {"session/resume", ""}}, transport.PhaseResume},
	{"session/set_config_option", func(o *transport.Options) { o.Model = "big" }, []step{{"initialize", plainAgent},
		{"session/new", `{"sessionId":"s1","configOptions":` + models("big", "big") + `}`}, {"session/set_config_option", ""}},
		transport.PhaseConfigure},
	{"session/set_mode", func(o *transport.Options) { o.Mode = "ask" }, []step{{"initialize", plainAgent},
		{"session/new", `{"sessionId":"s1","modes":{"availableModes":[{"id":"ask"}]}}`}, {"session/set_mode", ""}},
		transport.PhaseConfigure},
}

// Each request of the handshake has its limit, its phase stands in the failure, and the agent is
// told that nobody waits any more.
func TestSilence(t *testing.T) {
	t.Parallel()
	for _, c := range hangs {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // they only wait
			got, _ := handshake(t, func(o *transport.Options) {
				if c.change != nil {
					c.change(o)
				}
				o.RequestTimeout = 2 * time.Second
			}, c.steps...)
			wantKind(t, got.err, transport.Timeout, c.phase)
		})
	}
}

// A handshake ends with its context, in every phase.
func TestOpenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for _, c := range hangs {
		t.Run(c.name, func(t *testing.T) {
			p := newPeer(t)
			p.options.DrainTimeout = patience // for what is written last
			if c.change != nil {
				c.change(&p.options)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			done := p.open(ctx)
			for _, s := range c.steps {
				m := p.expect(s.method)
				if s.result != "" {
					p.reply(m, s.result)
					continue
				}
				cancel()
				p.takenBack(m)
			}
			wantKind(t, p.wait(done).err, transport.Cancelled, c.phase)
		})
	}
}

// An agent that reads nothing cannot be told, and holds up nobody.
func TestSilenceOfAnAgentThatDoesNotRead(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	p.options.RequestTimeout, p.options.ClientName = 300*time.Millisecond, strings.Repeat("x", 2<<20)
	got := p.wait(p.open(context.Background()))
	wantKind(t, got.err, transport.Timeout, transport.PhaseInitialize)
}
