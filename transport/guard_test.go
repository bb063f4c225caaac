package transport_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"greatminds/transport"
)

// reads runs one turn in which the agent writes lines and then answers; want is checked
// against what came of it.
func reads(t *testing.T, lines func(p *peer, id string), want func(t *testing.T, h *recorder, got turned, s transport.Stats)) {
	t.Helper()
	p := newPeer(t)
	h := &recorder{}
	p.options.Handler = h
	s := p.session()
	done := prompt(context.Background(), s, "go")
	m := p.expect("session/prompt")
	lines(p, string(m.ID))
	got := receive(t, done)
	want(t, h, got, s.Stats())
}

func ends(t *testing.T, got turned, stop string) {
	t.Helper()
	if got.err != nil || got.StopReason != stop {
		t.Fatalf("got %+v, want stop reason %q", got, stop)
	}
}

const chunk = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":` +
	`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}}`

// What is no protocol message is counted and skipped; what is one, in whatever shape, counts.
// Hazards 12, 13, 14, 15, 26.
func TestShapesOfLines(t *testing.T) {
	t.Parallel()
	answer := `{"jsonrpc":"2.0","id":ID,"result":{"stopReason":"end_turn"}}` + "\n"
	for name, c := range map[string]struct {
		lines             string
		text              string
		garbage, repaired int64
	}{
		"banner lines, an empty line and an escape sequence": {
			"Loading model...\n\n\x1b[32mready\x1b[0m\n" + fmt.Sprintf(chunk, "a") + "\nmore\n" + answer, "a", 3, 0},
		"carriage returns":           {fmt.Sprintf(chunk, "a") + "\r\n\r\n" + answer, "a", 0, 0},
		"byte order mark":            {"\xef\xbb\xbf" + fmt.Sprintf(chunk, "a") + "\n" + answer, "a", 0, 1},
		"two on a line":              {fmt.Sprintf(chunk, "a") + " " + fmt.Sprintf(chunk, "b") + strings.TrimSuffix(answer, "\n") + "\n", "ab", 0, 0},
		"a batch":                    {"[" + fmt.Sprintf(chunk, "a") + ",7," + fmt.Sprintf(chunk, "b") + "," + strings.TrimSuffix(answer, "\n") + "]\n", "ab", 1, 0},
		"a broken batch is nothing":  {"[" + fmt.Sprintf(chunk, "a") + ",}\n" + answer, "", 1, 0},
		"a message and then garbage": {fmt.Sprintf(chunk, "a") + "oops\n" + answer, "a", 1, 0},
		"pretty printed":             {"{\n \"jsonrpc\": \"2.0\"\n}\n" + answer, "", 3, 0},
		"raw NUL bytes":              {"\x00\x00\n" + answer, "", 1, 0},
		"scalars":                    {"42\nnull\n\"x\"\n[]\n{}\n" + answer, "", 4, 0},
		"version missing or a number": {strings.Replace(fmt.Sprintf(chunk, "a"), `"jsonrpc":"2.0",`, "", 1) + "\n" +
			strings.Replace(fmt.Sprintf(chunk, "b"), `"2.0"`, "2.0", 1) + "\n" + answer, "ab", 0, 2},
		"members that the SDK would take in any case": {`{"jsonrpc":"2.0","Id":ID,"Result":{"stopReason":"refusal"}}` + "\n" + answer, "", 1, 0},
		"more nesting than anyone means":              {strings.Repeat("[", 100000) + "\n" + answer, "", 1, 0},
		"id as a fraction":                            {strings.Replace(answer, "ID", "ID.0", 1), "", 0, 1},
		"id with an exponent":                         {strings.Replace(answer, "ID", "IDe0", 1), "", 0, 1},
		"id as text":                                  {strings.Replace(answer, "ID", `"ID"`, 1), "", 0, 1},
		"result before the id":                        {`{"jsonrpc":"2.0","result":{"stopReason":"end_turn"},"id":ID}` + "\n", "", 0, 0},
		"the method repeated in the answer":           {`{"jsonrpc":"2.0","id":ID,"method":"session/prompt","result":{"stopReason":"end_turn"}}` + "\n", "", 0, 0},
		"error null beside the result":                {`{"jsonrpc":"2.0","id":ID,"error":null,"result":{"stopReason":"end_turn"}}` + "\n", "", 0, 0},
		"unknown members":                             {`{"x":[1],"jsonrpc":"2.0","id":ID,"result":{"stopReason":"end_turn","y":{}},"_meta":1}` + "\n", "", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			reads(t, func(p *peer, id string) { p.write(strings.ReplaceAll(c.lines, "ID", id)) },
				func(t *testing.T, h *recorder, got turned, s transport.Stats) {
					ends(t, got, "end_turn")
					if h.texts() != c.text || s.GarbageLines != c.garbage || s.Repaired != c.repaired {
						t.Errorf("got text %q, %d garbage, %d repaired, want %q %d %d",
							h.texts(), s.GarbageLines, s.Repaired, c.text, c.garbage, c.repaired)
					}
				})
		})
	}
}

// Answers to nothing are counted, and nothing is sent back for them. Hazard 14.
func TestStrayReplies(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	s := p.session()
	done := prompt(context.Background(), s, "go")
	m := p.expect("session/prompt")
	p.write(`{"jsonrpc":"2.0","id":null,"result":{"stopReason":"end_turn"}}
{"jsonrpc":"2.0","id":"no-such","result":{}}
{"jsonrpc":"2.0","id":999,"result":{"stopReason":"refusal"}}
{"jsonrpc":"2.0","id":-1,"result":{"stopReason":"refusal"}}
{"jsonrpc":"2.0","id":null,"error":{"code":true,"message":42}}
{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}
`)
	p.reply(m, `{"stopReason":"end_turn"}`)
	p.reply(m, `{"stopReason":"refusal"}`)
	ends(t, receive(t, done), "end_turn")
	done = prompt(context.Background(), s, "again")
	again := p.expect("session/prompt") // the next thing that the client wrote
	p.reply(m, `{"stopReason":"refusal"}`)
	p.reply(again, `{"stopReason":"max_tokens"}`)
	ends(t, receive(t, done), "max_tokens")
	if got := s.Stats(); got.StrayReplies != 8 || got.GarbageLines != 0 {
		t.Fatalf("got %d stray replies, %d garbage lines, want 8, 0", got.StrayReplies, got.GarbageLines)
	}
}

// Malformed errors end the call with what can be known. Hazards 13, 15.
func TestErrorAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		members string
		code    int
		kind    transport.Kind
		message string
	}{
		"as it should be":         {`"error":{"code":-32603,"message":"boom","data":{"a":1}}`, -32603, transport.Protocol, "boom"},
		"an HTTP status":          {`"error":{"code":429,"message":"slow"}`, 429, transport.Protocol, "slow"},
		"authentication required": {`"error":{"code":-32000,"message":"login"}`, -32000, transport.AuthRequired, "login"},
		"a code with a fraction":  {`"error":{"code":-32000.0,"message":"login"}`, -32000, transport.AuthRequired, "login"},
		"a code as text":          {`"error":{"code":"-32000","message":"login"}`, -32000, transport.AuthRequired, "login"},
		"an error as text":        {`"error":"boom"`, -32603, transport.Protocol, "boom"},
		"a code that is none":     {`"error":{"code":true,"message":42}`, -32603, transport.Protocol, "malformed error"},
		"error and result":        {`"error":{"code":7,"message":"x"},"result":{"stopReason":"end_turn"}`, 7, transport.Protocol, "x"},
		"a very long message":     {`"error":{"code":1,"message":"` + strings.Repeat("é", 5000) + `"}`, 1, transport.Protocol, strings.Repeat("é", 512)},
	} {
		t.Run(name, func(t *testing.T) {
			reads(t, func(p *peer, id string) { p.send(`{"jsonrpc":"2.0","id":%s,%s}`, id, c.members) },
				func(t *testing.T, _ *recorder, got turned, _ transport.Stats) {
					e := wantKind(t, got.err, c.kind, transport.PhasePrompt)
					if e.Code == nil || *e.Code != c.code || e.Message != c.message {
						t.Fatalf("got %v %q, want code %d and %q", e.Code, e.Message, c.code, c.message)
					}
				})
		})
	}
}

// An answer that is neither result nor error is no error of the agent's: neither code nor words are
// put into its mouth.
func TestAnswersThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for members, why := range map[string]string{
		`"x":1`: "neither a result nor an error", `"error":null`: "neither a result nor an error",
		`"result":{"stopReason":"end_turn"},"result":{"stopReason":"refusal"}`: "ambiguous",
		`"error":{"code":1,"message":"a"},"error":{"code":2,"message":"b"}`:    "ambiguous",
	} {
		t.Run(members, func(t *testing.T) {
			reads(t, func(p *peer, id string) { p.send(`{"jsonrpc":"2.0","id":%s,%s}`, id, members) },
				func(t *testing.T, _ *recorder, got turned, _ transport.Stats) {
					e := wantKind(t, got.err, transport.Protocol, transport.PhasePrompt)
					if e.Code != nil || e.Message != "" || e.Data != nil || !strings.HasPrefix(e.What, "the agent's answer to session/prompt cannot be used: ") || !strings.Contains(e.What, why) {
						t.Fatalf("got code %v, %q, %q %s", e.Code, e.What, e.Message, e.Data)
					}
				})
		})
	}
}

// Hazard 9: a result that lacks what it must hold is a failure, not an empty success.
func TestRequiredMembersOfThePromptAnswer(t *testing.T) {
	t.Parallel()
	for _, result := range []string{`{}`, `null`, `[]`, `"x"`, `{"stopReason":null}`, `{"stopReason":7}`, `{"stopReason":""}`} {
		t.Run(result, func(t *testing.T) {
			reads(t, func(p *peer, id string) { p.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result) },
				func(t *testing.T, _ *recorder, got turned, _ transport.Stats) {
					wantKind(t, got.err, transport.Protocol, transport.PhasePrompt)
				})
		})
	}
}

// Hazard 1: a line over the limit costs itself, never the connection; memory holds one line.
func TestTooLargeMessages(t *testing.T) {
	t.Parallel()
	const limit = 64 << 10
	pad := strings.Repeat("x", 2*limit)
	for name, c := range map[string]struct {
		line  string
		check func(t *testing.T, p *peer, id string, done <-chan turned, s *transport.Session)
	}{
		"a notification is a gap": {
			fmt.Sprintf(chunk, pad), func(t *testing.T, p *peer, id string, done <-chan turned, s *transport.Session) {
				p.send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, id)
				got := receive(t, done)
				ends(t, got, "end_turn")
				if got.Gaps != 1 || s.Stats().Gaps != 1 {
					t.Fatalf("got %d gaps in the turn, %d in all, want 1, 1", got.Gaps, s.Stats().Gaps)
				}
			}},
		"a request is refused": {
			`{"jsonrpc":"2.0","id":"r","method":"session/request_permission","params":{"a":"` + pad + `"}}`,
			func(t *testing.T, p *peer, id string, done <-chan turned, s *transport.Session) {
				m := p.next()
				if string(m.ID) != `"r"` || m.Error == nil || m.Error.Code != -32600 {
					t.Fatalf("got %s, want error -32600 for r", m.raw)
				}
				p.send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, id)
				ends(t, receive(t, done), "end_turn")
			}},
		"an answer becomes an error": {
			`{"jsonrpc":"2.0","id":ID,"result":{"stopReason":"end_turn","a":"` + pad + `"}}`, tooLargeAnswer},
		"an answer with its id at the end": {
			`{"jsonrpc":"2.0","result":{"stopReason":"end_turn","a":"` + pad + `","id":7},"id":ID}` + "  \r", tooLargeAnswer},
		"garbage": {
			pad, func(t *testing.T, p *peer, id string, done <-chan turned, s *transport.Session) {
				p.send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, id)
				ends(t, receive(t, done), "end_turn")
				if got := s.Stats(); got.GarbageLines != 1 || got.GarbageBytes != int64(len(pad)) {
					t.Fatalf("got %+v", got)
				}
			}},
		"just within the limit": {
			fmt.Sprintf(chunk, strings.Repeat("y", limit-len(chunk))), func(t *testing.T, p *peer, id string, done <-chan turned, s *transport.Session) {
				p.send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, id)
				got := receive(t, done)
				ends(t, got, "end_turn")
				if got.Gaps != 0 || got.TextBytes != int64(limit-len(chunk)) {
					t.Fatalf("got %+v", got)
				}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			p.options.MaxLine = limit
			s := p.session()
			done := prompt(context.Background(), s, "go")
			id := string(p.expect("session/prompt").ID)
			p.send("%s", strings.ReplaceAll(c.line, "ID", id))
			c.check(t, p, id, done, s)
		})
	}
}

func tooLargeAnswer(t *testing.T, p *peer, id string, done <-chan turned, s *transport.Session) {
	e := wantKind(t, receive(t, done).err, transport.Protocol, transport.PhasePrompt)
	if e.Code != nil || !strings.Contains(e.What, "over the limit") {
		t.Fatalf("got code %v, %q", e.Code, e.What)
	}
	// The connection lives.
	again := prompt(context.Background(), s, "again")
	p.reply(p.expect("session/prompt"), `{"stopReason":"end_turn"}`)
	ends(t, receive(t, again), "end_turn")
}

// The default limit takes 8 MiB of text in one update.
func TestLargestUpdate(t *testing.T) {
	t.Parallel()
	reads(t, func(p *peer, id string) {
		p.send(chunk, strings.Repeat("x", 8<<20))
		p.send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, id)
	}, func(t *testing.T, _ *recorder, got turned, _ transport.Stats) {
		ends(t, got, "end_turn")
		if got.TextBytes != 8<<20 || got.Gaps != 0 {
			t.Fatalf("got %d bytes, %d gaps", got.TextBytes, got.Gaps)
		}
	})
}

// A line without end, and garbage without end, are explicit failures.
func TestEndlessOutput(t *testing.T) {
	block := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		unit string
		n    int
		kind transport.Kind
		what string
	}{
		"one line":      {block, 80, transport.Transport, "without an end"},
		"many lines":    {strings.Repeat("x\n", 1000), 12, transport.Protocol, "no protocol messages"},
		"large garbage": {block + "\n", 20, transport.Protocol, "no protocol messages"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			s := p.session()
			done := prompt(context.Background(), s, "go")
			p.expect("session/prompt")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range c.n {
				if _, err := p.stdout.WriteString(c.unit); err != nil {
					break // the client has had enough
				}
			}
			e := wantKind(t, receive(t, done).err, c.kind, transport.PhasePrompt)
			if !strings.Contains(e.What, c.what) {
				t.Fatalf("got %q", e.What)
			}
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 {
				t.Errorf("took %d bytes of memory in all", got)
			}
			if _, err := s.Prompt(context.Background(), "again"); kindOf(err) != c.kind {
				t.Fatalf("a dead connection took a prompt: %v", err)
			}
		})
	}
}
