package transport_test

import (
	"context"
	"testing"
)

func TestSmoke(t *testing.T) {
	p := newPeer(t)
	h := &recorder{}
	p.options.Handler = h
	s := p.session()
	done := prompt(context.Background(), s, "hello")
	m := p.expect("session/prompt")
	p.say("one ")
	p.say("two")
	p.reply(m, `{"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":1.0,"totalTokens":"x"}}`)
	got := receive(t, done)
	if got.err != nil || got.StopReason != "end_turn" || h.texts() != "one two" || got.Chunks != 2 {
		t.Fatalf("%+v %q", got, h.texts())
	}
	t.Logf("%+v", got.Turn)
	t.Logf("%+v", s.Stats())
}
