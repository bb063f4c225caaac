package transport_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/transport"
)

// replay plays the agent's side of a recording made with a real agent against a model
// stand-in, shortened: "> METHOD" or "> ANSWER" is what the client must write next, "< LINE"
// what the agent writes. It tells which prompts it has seen.
func (p *peer) replay(file string) {
	raw, err := os.ReadFile("testdata/" + file + ".txt")
	if err != nil {
		p.t.Error(err)
		return
	}
	for line := range strings.Lines(string(raw)) {
		way, rest := line[:1], strings.TrimSuffix(line[2:], "\n")
		switch {
		case way == "<":
			if _, err := p.stdout.WriteString(rest + "\n"); err != nil {
				p.t.Errorf("writing %.80s: %v", rest, err)
				return
			}
			continue
		case way != ">":
			p.t.Errorf("bad line %q", line)
			return
		}
		got, err := p.lines.ReadString('\n')
		if err != nil {
			p.t.Errorf("want %.80s: %v", rest, err)
			return
		}
		var m message
		if err := json.Unmarshal([]byte(got), &m); err != nil {
			p.t.Error(err)
			return
		}
		want := m.Method
		if want == "" {
			want, rest = ordered(got), ordered(rest)
		}
		if want != rest {
			p.t.Errorf("the client wrote %.200s, want %.200s", got, rest)
			return
		}
	}
}

// ordered is an answer without its version, its members in alphabetical order.
func ordered(line string) string {
	var answer map[string]any
	if err := json.Unmarshal([]byte(line), &answer); err != nil {
		return err.Error()
	}
	delete(answer, "jsonrpc")
	b, err := json.Marshal(answer)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// seen is what a recording must come to.
type seen struct {
	Agent, Version      string
	Stop                []string
	Kinds               string
	Unknown, Garbage    int64
	Rejected, Questions int64
	Asked               []asked
	Text                string
	Used                int64
	Cost                string
	Tools               []string
}

type asked struct {
	Title, Kind string
	Options     string
}

// E-224: what real agents have said is understood, whole.
func TestRecordings(t *testing.T) {
	t.Parallel()
	for file, c := range map[string]struct {
		auth, mode, option string
		prompts            int
		want               seen
	}{
		"codex-tool-write": {option: "approved", prompts: 1, want: seen{
			Agent: "codex-acp", Version: "0.16.0", Stop: []string{"end_turn"},
			Kinds:     "available_commands_update tool_call tool_call_update usage_update agent_message_chunk agent_message_chunk agent_message_chunk usage_update",
			Questions: 1, Asked: []asked{{"Edit $CWD/out.txt", "edit", "approved:allow_once abort:reject_once"}},
			Text: "MOCK-DONE tool-write results=1", Used: 10509, Cost: "missing", Tools: []string{"edit in_progress", " completed"},
		}},
		"gemini-tool-write": {auth: "gemini-api-key", option: "proceed_once", prompts: 1, want: seen{
			Agent: "gemini-cli", Version: "0.61.0", Stop: []string{"end_turn"},
			Kinds:     "available_commands_update tool_call_update agent_message_chunk agent_message_chunk agent_message_chunk",
			Questions: 1, Asked: []asked{{"Writing to out.txt", "edit", "proceed_always:allow_always proceed_once:allow_once cancel:reject_once"}},
			Text: "MOCK-DONE tool-write results=1", Cost: "none", Tools: []string{"edit completed"},
		}},
		"opencode-tool-write": {option: "once", prompts: 1, want: seen{
			Agent: "OpenCode", Version: "1.18.33", Stop: []string{"end_turn"},
			Kinds:     "available_commands_update tool_call tool_call_update tool_call_update agent_message_chunk agent_message_chunk agent_message_chunk usage_update",
			Questions: 1, Rejected: 1, Asked: []asked{{"$CWD/out.txt", "edit", "once:allow_once always:allow_always reject:reject_once"}},
			Text: "MOCK-DONE tool-write results=1", Used: 7790, Cost: "0 USD", Tools: []string{"edit pending", "edit in_progress", " completed"},
		}},
		"vibe-tool-write": {mode: "ask", option: "allow_once", prompts: 1, want: seen{
			Agent: "@mistralai/mistral-vibe", Version: "3.0.2", Stop: []string{"end_turn"},
			Kinds: "usage_update available_commands_update session_info_update user_message_chunk usage_update usage_update " +
				"tool_call tool_call_update agent_message_chunk usage_update agent_message_chunk usage_update usage_update",
			Questions: 1, Asked: []asked{{"Writing out.txt", "edit", "allow_once:allow_once allow_always:allow_always " +
				"allow_always_permanent:allow_always reject_once:reject_once"}},
			Text: `MOCK:tool-write path=$CWD/out.txtMOCK-DONE tool-write results=1 {"bytes_written":13,"file_existed":false,"path":"/work~`,
			Used: 8769, Cost: "0.01744 USD", Tools: []string{"edit in_progress", "edit completed"},
		}},
		"claude-cancel-perm": {prompts: 2, want: seen{
			Agent: "@zed-industries/claude-agent-acp", Version: "0.23.1", Stop: []string{"cancelled", "end_turn"},
			Kinds:     "available_commands_update tool_call tool_call_update usage_update",
			Questions: 1, Asked: []asked{{"Write out.txt", "edit", "allow_always:allow_always allow:allow_once reject:reject_once"}},
			Used: 23512, Cost: "0.07063799999999999 USD", Tools: []string{"edit pending", "edit "},
		}},
	} {
		t.Run(file, func(t *testing.T) {
			p := newPeer(t)
			p.options.AuthMethod, p.options.Mode = c.auth, c.mode
			var s *transport.Session
			var got seen
			ready := make(chan struct{})
			h := &recorder{answer: func(ctx context.Context, r transport.PermissionRequest) transport.PermissionAnswer {
				a := asked{Title: r.Title, Kind: r.ToolKind}
				var options []string
				for _, o := range r.Options {
					options = append(options, o.ID+":"+o.Kind)
				}
				a.Options = strings.Join(options, " ")
				got.Asked = append(got.Asked, a)
				if c.option == "" {
					<-ready
					if err := s.Cancel(ctx); err != nil {
						t.Error(err)
					}
				}
				return transport.PermissionAnswer{OptionID: c.option}
			}}
			p.options.Handler = h
			played := make(chan struct{})
			go func() {
				defer close(played)
				p.replay(file)
			}()
			opened := p.wait(p.open(context.Background()))
			if opened.err != nil {
				t.Fatal(opened.err)
			}
			s = opened.s
			close(ready)
			for range c.prompts {
				turn := receive(t, prompt(context.Background(), s, "MOCK"))
				if turn.err != nil && kindOf(turn.err) != transport.Cancelled {
					t.Fatal(turn.err)
				}
				got.Stop = append(got.Stop, turn.StopReason)
			}
			<-played
			summarise(&got, s, h)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func summarise(got *seen, s *transport.Session, h *recorder) {
	n, st := s.Negotiated(), s.Stats()
	got.Agent, got.Version = n.AgentName, n.AgentVersion
	var kinds []string
	for _, u := range h.all() {
		kinds = append(kinds, u.Kind)
	}
	got.Kinds, got.Text = strings.Join(kinds, " "), h.texts()
	got.Unknown, got.Garbage, got.Rejected, got.Questions = st.Unknown, st.GarbageLines, st.Rejected, st.Permissions
	got.Cost = "none"
	if st.Usage != nil {
		got.Used, got.Cost = st.Usage.Used.Value, string(st.Usage.Cost.Reading)
		if st.Usage.Cost.Reading == transport.Reported {
			got.Cost = st.Usage.Cost.Amount.String() + " " + st.Usage.Cost.Currency
		}
	}
	for _, o := range st.Tools {
		got.Tools = append(got.Tools, o.ToolKind+" "+o.Status)
	}
}
