package transport_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"greatminds/transport"
)

// Hazards 6, 7, 8, 10: a known kind is read, an unknown or malformed one is never taken for
// another, and none costs the turn.
func TestUpdates(t *testing.T) {
	t.Parallel()
	reported := func(n int64) transport.Counter {
		return transport.Counter{Reading: transport.Reported, Value: n}
	}
	missing, invalid := transport.Counter{Reading: transport.Missing}, transport.Counter{Reading: transport.Invalid}
	none := transport.Cost{Reading: transport.Missing}
	for name, c := range map[string]struct {
		update string
		want   transport.Update
	}{
		"an agent's text": {`{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"h\u00e9\ud83d\ude42\n"}}`,
			transport.Update{Kind: "agent_message_chunk", Known: true, MessageID: "m1", ContentType: "text", Text: "hé🙂\n"}},
		"a thought": {`{"content":{"text":"x","type":"text"},"sessionUpdate":"agent_thought_chunk"}`,
			transport.Update{Kind: "agent_thought_chunk", Known: true, ContentType: "text", Text: "x"}},
		"a picture": {`{"sessionUpdate":"user_message_chunk","content":{"type":"image","data":"AA","mimeType":"image/png"}}`,
			transport.Update{Kind: "user_message_chunk", Known: true, ContentType: "image"}},
		"a lone surrogate and bytes that are no text": {`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\ud800b` + "\xff" + `"}}`,
			transport.Update{Kind: "agent_message_chunk", Known: true, ContentType: "text", Text: "a\ufffdb\ufffd"}},
		"a NUL and a line separator": {`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\u0000` + "\u2028" + `b"}}`,
			transport.Update{Kind: "agent_message_chunk", Known: true, ContentType: "text", Text: "a\x00\u2028b"}},
		"a tool call": {`{"sessionUpdate":"tool_call","toolCallId":"t","title":"T","kind":"edit","status":"pending","content":[{},{}],"locations":[{"path":"p"}],"rawInput":{"a":[1,2]}}`,
			transport.Update{Kind: "tool_call", Known: true, ToolCallID: "t", Title: "T", ToolKind: "edit", Status: "pending", ContentCount: 2, LocationCount: 1}},
		"a tool call's update, with words that nobody knows": {`{"sessionUpdate":"tool_call_update","toolCallId":"t","kind":"teleport","status":"paused","content":null}`,
			transport.Update{Kind: "tool_call_update", Known: true, ToolCallID: "t", ToolKind: "teleport", Status: "paused"}},
		"usage": {`{"sessionUpdate":"usage_update","used":12,"size":200000,"cost":{"amount":0.070600,"currency":"USD"}}`,
			transport.Update{Kind: "usage_update", Known: true, Usage: &transport.UsageReport{Used: reported(12), Size: reported(200000),
				Cost: transport.Cost{Reading: transport.Reported, Amount: "0.070600", Currency: "USD"}}}},
		"usage with odd numbers": {`{"sessionUpdate":"usage_update","used":1e3,"size":2.0}`,
			transport.Update{Kind: "usage_update", Known: true, Usage: &transport.UsageReport{Used: reported(1000), Size: reported(2), Cost: none}}},
		"usage with bad numbers": {`{"sessionUpdate":"usage_update","used":-1,"size":"12","cost":{"amount":-1,"currency":"USD"}}`,
			transport.Update{Kind: "usage_update", Known: true, Usage: &transport.UsageReport{Used: invalid, Size: invalid, Cost: transport.Cost{Reading: transport.Invalid}}}},
		"usage without numbers": {`{"sessionUpdate":"usage_update","size":1.5,"cost":null}`,
			transport.Update{Kind: "usage_update", Known: true, Usage: &transport.UsageReport{Used: missing, Size: invalid, Cost: none}}},
		"a mode":         {`{"sessionUpdate":"current_mode_update","currentModeId":"ask"}`, transport.Update{Kind: "current_mode_update", Known: true, Mode: "ask"}},
		"a plan":         {`{"sessionUpdate":"plan","entries":[{"content":"a","priority":"odd"}]}`, transport.Update{Kind: "plan", Known: true}},
		"commands":       {`{"sessionUpdate":"available_commands_update","availableCommands":[]}`, transport.Update{Kind: "available_commands_update", Known: true}},
		"config options": {`{"sessionUpdate":"config_option_update","configOptions":[{"type":"slider"}]}`, transport.Update{Kind: "config_option_update", Known: true}},
		"session info":   {`{"sessionUpdate":"session_info_update","title":"t"}`, transport.Update{Kind: "session_info_update", Known: true, Title: ""}},

		"a kind of a later version": {`{"sessionUpdate":"notice","message":"m","title":"x"}`, transport.Update{Kind: "notice"}},
		"a kind that looks like text": {`{"sessionUpdate":"compaction_summary_chunk","content":{"type":"text","text":"secret"}}`,
			transport.Update{Kind: "compaction_summary_chunk"}},
		"a vendor's kind that looks like a tool call": {`{"sessionUpdate":"_vendor","toolCallId":"t","title":"x"}`, transport.Update{Kind: "_vendor"}},
		"no kind":                       {`{"toolCallId":"t","content":{"type":"text","text":"x"}}`, transport.Update{}},
		"a kind that is none":           {`{"sessionUpdate":7,"content":{"type":"text","text":"x"}}`, transport.Update{}},
		"a kind twice":                  {`{"sessionUpdate":"plan","sessionUpdate":"tool_call","entries":[],"toolCallId":"t","title":"x"}`, transport.Update{Kind: "tool_call"}},
		"text twice":                    {`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"},"content":{"type":"text","text":"b"}}`, transport.Update{Kind: "agent_message_chunk"}},
		"unknown content":               {`{"sessionUpdate":"agent_message_chunk","content":{"type":"video","text":"x"}}`, transport.Update{Kind: "agent_message_chunk", ContentType: "video"}},
		"content that is none":          {`{"sessionUpdate":"agent_message_chunk","content":"x"}`, transport.Update{Kind: "agent_message_chunk"}},
		"text without text":             {`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":7}}`, transport.Update{Kind: "agent_message_chunk", ContentType: "text"}},
		"a tool call without its title": {`{"sessionUpdate":"tool_call","toolCallId":"t"}`, transport.Update{Kind: "tool_call", ToolCallID: "t"}},
		"a tool call without its id":    {`{"sessionUpdate":"tool_call_update","toolCallId":3,"title":"x"}`, transport.Update{Kind: "tool_call_update"}},
		"an update that is null":        {`null`, transport.Update{}},
		"an update that is a list":      {`[{"sessionUpdate":"plan","entries":[]}]`, transport.Update{}},
		"a very long kind":              {`{"sessionUpdate":"` + strings.Repeat("é", 100) + `"}`, transport.Update{Kind: strings.Repeat("é", 64)}},
	} {
		t.Run(name, func(t *testing.T) {
			reads(t, func(p *peer, id string) {
				p.update(c.update)
				p.send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, id)
			}, func(t *testing.T, h *recorder, got turned, s transport.Stats) {
				ends(t, got, "end_turn")
				all := h.all()
				if len(all) != 1 {
					t.Fatalf("got %d updates", len(all))
				}
				u := all[0]
				c.want.SessionID, c.want.Phase, c.want.Bytes = "s1", transport.PhasePrompt, len(c.update)
				ignored := cmpopts.IgnoreFields(transport.Update{}, "Raw", "SHA256", "ToolReference")
				if diff := cmp.Diff(c.want, u, ignored); diff != "" {
					t.Error(diff)
				}
				if u.Known != (u.Raw != nil) || u.Known == (u.SHA256 != "") || (s.Unknown == 1) == u.Known {
					t.Errorf("known %v, raw %q, hash %q, %d counted as unknown", u.Known, u.Raw, u.SHA256, s.Unknown)
				}
			})
		})
	}
}

// Hazard 11: a bad counter never costs the stop reason.
func TestUsageOfThePromptAnswer(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string]transport.Reading{
		`{"inputTokens":1,"outputTokens":2,"totalTokens":3}`: transport.Reported, `{"inputTokens":1.0,"totalTokens":"x"}`: transport.Reported,
		`{"inputTokens":"1"}`: transport.Invalid, `{}`: transport.Invalid, `[]`: transport.Invalid, `7`: transport.Invalid, `null`: transport.Missing,
	} {
		reads(t, func(p *peer, id string) {
			p.send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"max_tokens","usage":%s}}`, id, usage)
		}, func(t *testing.T, _ *recorder, got turned, _ transport.Stats) {
			ends(t, got, "max_tokens")
			if got.Tokens.Reading != want {
				t.Errorf("%s: got %+v", usage, got.Tokens)
			}
		})
	}
	for stop, known := range map[string]bool{"end_turn": true, "max_tokens": true, "max_turn_requests": true, "refusal": true,
		"cancelled": true, "quota_exhausted": false, strings.Repeat("x", 300): false} {
		reads(t, func(p *peer, id string) { p.send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":%q}}`, id, stop) },
			func(t *testing.T, _ *recorder, got turned, _ transport.Stats) {
				ends(t, got, stop[:min(len(stop), 128)])
				if got.Known != known {
					t.Errorf("%s: got known %v", stop, got.Known)
				}
			})
	}
}

// Observations hold no agent text, and stop at their bound. E-230
func TestToolObservations(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	s, m, done := p.turn(context.Background())
	canary := "CANARY"
	for i := range 100 {
		id := fmt.Sprintf("%s-%d", canary, i)
		for range 3 {
			p.update(fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":%q,"title":"CANARY","kind":"CANARY","status":"CANARY","content":[{"a":"CANARY"}],"locations":[{"path":"CANARY"}]}`, id))
		}
	}
	p.reply(m, `{"stopReason":"end_turn"}`)
	ends(t, receive(t, done), "end_turn")
	st := s.Stats()
	if len(st.Tools) != 64 || !st.ToolsTruncated || st.Updates != 300 {
		t.Fatalf("got %d observations, truncated %v, %d updates", len(st.Tools), st.ToolsTruncated, st.Updates)
	}
	references := map[string]bool{}
	for _, o := range st.Tools {
		references[o.Reference] = true
		if text := fmt.Sprintf("%+v", o); strings.Contains(text, canary) || o.ToolKind != "other" || o.ContentCount != 1 || o.LocationCount != 1 {
			t.Fatalf("got %s", text)
		}
	}
	if len(references) != 64 {
		t.Errorf("got %d references", len(references))
	}
	other := newPeer(t)
	s2, m, done := other.turn(context.Background())
	other.update(`{"sessionUpdate":"tool_call","toolCallId":"CANARY-0","title":"x"}`)
	other.reply(m, `{"stopReason":"end_turn"}`)
	ends(t, receive(t, done), "end_turn")
	if references[s2.Stats().Tools[0].Reference] {
		t.Error("two sessions name a tool call alike")
	}
}

// Updates of another session are no business of this one's.
func TestForeignUpdates(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	h := &recorder{}
	p.options.Handler = h
	s, m, done := p.turn(context.Background())
	p.write(strings.ReplaceAll(fmt.Sprintf(chunk, "theirs"), `"s1"`, `"s2"`) + "\n")
	p.say("ours")
	p.reply(m, `{"stopReason":"end_turn"}`)
	got := receive(t, done)
	ends(t, got, "end_turn")
	if got.Updates != 1 || h.texts() != "ours" || s.Stats().Foreign != 1 {
		t.Errorf("got %+v, %q, %+v", got, h.texts(), s.Stats())
	}
}

// Hazard 17: what comes after the answer is nobody's turn, whenever it is handled.
func TestUpdatesAfterTheAnswer(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	h := &recorder{}
	p.options.Handler = h
	s, m, done := p.turn(context.Background())
	p.write(fmt.Sprintf(chunk+"\n", "a") + fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`+"\n", m.ID) +
		fmt.Sprintf(chunk+"\n", "b") + fmt.Sprintf(chunk+"\n", "c"))
	got := receive(t, done)
	ends(t, got, "end_turn")
	if got.Updates != 1 || got.TextBytes != 1 {
		t.Errorf("got %+v", got)
	}
	p.stdout.Close()
	<-s.Done()
	for i, want := range []transport.Phase{transport.PhasePrompt, transport.PhaseIdle, transport.PhaseIdle} {
		if u := h.all()[i]; u.Phase != want {
			t.Errorf("update %q: got phase %q, want %q", u.Text, u.Phase, want)
		}
	}
	if got := s.Stats(); got.LateUpdates != 2 || got.PromptUpdates != 1 {
		t.Errorf("got %+v", got)
	}
}

// Messages outside of the protocol are activity, and nothing else.
func TestExtensionsAndStages(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	stages := make(chan transport.Stage, 8)
	p.options.Observe = func(s transport.Stage) { stages <- s }
	done := p.open(context.Background())
	p.reply(p.expect("initialize"), plainAgent)
	m := p.expect("session/new")
	p.send(`{"jsonrpc":"2.0","method":"_auth/status_update","params":{"x":1}}`)
	p.reply(m, `{"sessionId":"s1"}`)
	s := p.wait(done).s
	turn := prompt(context.Background(), s, "go")
	m = p.expect("session/prompt")
	p.send(`{"jsonrpc":"2.0","method":"qwen/notify/session/mode-update"}`)
	p.send(`{"jsonrpc":"2.0","id":null,"method":"elicitation/complete","params":null}`)
	p.reply(m, `{"stopReason":"end_turn"}`)
	ends(t, receive(t, turn), "end_turn")
	close(stages)
	var got []string
	for s := range stages {
		got = append(got, string(s))
	}
	if diff := cmp.Diff([]string{"protocol_ready", "first_protocol_activity", "session_ready", "first_prompt_activity"}, got); diff != "" {
		t.Error(diff)
	}
	if st := s.Stats(); st.Extensions != 3 || !st.PrePromptActivity || st.LastActivity.Unix() != 1700000000 || st.Rejected != 0 {
		t.Errorf("got %+v", st)
	}
}
