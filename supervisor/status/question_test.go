package status_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"greatminds/runstore"
	"greatminds/supervisor/activity"
	"greatminds/supervisor/status"
)

var noon = time.Unix(1_800_000_000, 0)

func ask(tool string, options ...runstore.Option) *runstore.Permission {
	return &runstore.Permission{ID: "p1", RunID: "r1", Status: "pending", ExpiresAt: 1_800_000_090, Tool: json.RawMessage(tool), Options: options}
}

// What an agent writes stays in the line it was put in: it cannot make lines, options or commands of its
// own, nor reach the terminal.
func TestAQuestionCannotForgeItsSurroundings(t *testing.T) {
	const evil = `x\n  1  allow_once   Yes [yes]\r\u001b[2Jy\u202ez\u2028w`
	tool := `{"title":"` + evil + `","kind":"` + evil + `","locations":[{"path":"` + evil + `"}],"content":[{"type":"diff","path":"` + evil + `","oldText":"` + evil + `","newText":"b"},` +
		`{"type":"content","content":{"type":"text","text":"` + evil + `"}}],"rawInput":{"` + evil + `":"` + evil + `","command":["` + evil + `"],"n":{"m":"` + evil + `"}}}`
	var words []string
	must(t, json.Unmarshal([]byte(`["`+evil+`"]`), &words))
	text := status.QuestionText(ask(tool, runstore.Option{OptionID: "real", Name: words[0], Kind: "reject_once"}, runstore.Option{OptionID: "z", Name: words[0], Kind: words[0]}), nil, noon, status.FromDaemon)
	numbered := 0
	for _, l := range strings.Split(text, "\n") {
		if strings.ContainsAny(l, "\x1b\r\u202e\u2028") {
			t.Errorf("it reaches the terminal: %q", l)
		}
		if strings.HasPrefix(l, "  1") {
			numbered++
		}
	}
	if numbered != 1 || !strings.Contains(text, "  1  reject_once  x") {
		t.Errorf("%d lines are the first option:\n%s", numbered, text)
	}
}

// However much a question holds, it is shown in a bounded text; what is left out is said.
func TestAQuestionIsShownInABoundedText(t *testing.T) {
	var paths, fields, diffs []string
	for i := range 200 {
		paths = append(paths, fmt.Sprintf(`{"path":"%d"}`, i))
		fields = append(fields, fmt.Sprintf(`"k%d":"%s"`, i, strings.Repeat(`line\n`, 100)))
		diffs = append(diffs, fmt.Sprintf(`{"type":"diff","path":"%d","newText":"%s"}`, i, strings.Repeat(`line\n`, 100)))
	}
	tool := `{"title":"` + strings.Repeat("t", 100_000) + `","locations":[` + strings.Join(paths, ",") + `],"rawInput":{` + strings.Join(fields, ",") + `},"content":[` + strings.Join(diffs, ",") + `]}`
	text := status.QuestionText(ask(tool), nil, noon, status.FromDaemon)
	if len(text) > 16<<10 {
		t.Errorf("%d bytes", len(text))
	}
	for _, want := range []string{"Path      and 188 more", "Input     and 188 more members", "Content   and 192 more", "and 76 more lines", "None can be chosen"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

// Nothing is pushed out of sight by blanks or length: a line is shown in rows, and what is not shown is told
// with the command that has it.
func TestAQuestionHidesNothingUnsaid(t *testing.T) {
	for name, c := range map[string]struct {
		tool  string
		shown string
		whole bool
	}{
		"blanks before a command": {`{"rawInput":{"command":"ls` + strings.Repeat(" ", 600) + `; rm -rf ~"}}`, "rm -rf ~", true},
		"a list of words":         {`{"rawInput":{"argv":["echo","` + strings.Repeat("a", 400) + `","; rm -rf ~"]}}`, "rm -rf ~", true},
		"a long path":             {`{"locations":[{"path":"` + strings.Repeat("a/", 200) + `../../etc/passwd"}]}`, "etc/passwd", true},
		"a change's long path":    {`{"content":[{"type":"diff","path":"` + strings.Repeat("a/", 200) + `../../etc/passwd"}]}`, "etc/passwd", true},
		"blanks in a path":        {`{"locations":[{"path":"a  b"}]}`, "a  b", true},
		"blanks in a change's":    {`{"content":[{"type":"diff","path":"a  b","newText":"x"}]}`, "a  b", true},
		"a long title":            {`{"title":"ls` + strings.Repeat(" x", 300) + `; rm -rf ~"}`, "rm -rf ~", true},
		"a wide line of a change": {`{"content":[{"type":"diff","path":"a","newText":"` + strings.Repeat(" ", 300) + `evil()"}]}`, "evil()", true},
		"a line past all rows":    {`{"rawInput":{"command":"` + strings.Repeat("x", 160*24+500) + `"}}`, "and 4 more rows of this line", false},
		"lines past all rows":     {`{"rawInput":{"command":"` + strings.Repeat(`x\n`, 30) + `"}}`, "and 6 more lines", false},
		"both":                    {`{"rawInput":{"command":"a\n` + strings.Repeat("x", 160*30) + `\nb\nc"}}`, "and 7 more rows of this line\n    and 2 more lines", false},
		"lines of a title":        {`{"title":"# tidy up\nrm -rf ~"}`, "| rm -rf ~", true},
		"a resource":              {`{"content":[{"type":"content","content":{"type":"resource","resource":{"uri":"file:///x","text":"rm -rf ~"}}}]}`, "rm -rf ~", true},
		"a terminal":              {`{"content":[{"type":"terminal","terminalId":"t-77"}]}`, "t-77", true},
		"content of no shape":     {`{"content":{"text":"rm -rf ~"}}`, "rm -rf ~", true},
		"a change of no shape":    {`{"content":[{"type":"diff","path":"a","newText":["evil()"]}]}`, "evil()", true},
		"a location of no shape":  {`{"locations":["/etc/passwd"]}`, "/etc/passwd", true},
		"locations of no shape":   {`{"locations":{"path":"/etc/passwd"}}`, "/etc/passwd", true},
		"a title of no shape":     {`{"title":["rm -rf ~"]}`, "rm -rf ~", true},
		"two spellings":           {`{"locations":[{"path":"/etc/passwd","Path":"a.txt"}]}`, "/etc/passwd", true},
		"a member of its own":     {`{"name":"Bash","command":"rm -rf ~"}`, "rm -rf ~", true},
		"one change too many":     {`{"content":[` + strings.TrimSuffix(strings.Repeat(`{"type":"diff","path":"a","newText":"b"},`, 9), ",") + `]}`, "Content   and 1 more", false},
	} {
		text := status.QuestionText(ask(c.tool, runstore.Option{OptionID: "o", Kind: "allow_once"}), nil, noon, status.FromDaemon)
		if !strings.Contains(text, c.shown) {
			t.Errorf("%s: %q is missing in\n%s", name, c.shown, text)
		}
		if said := strings.Contains(text, "NOT ALL OF IT IS SHOWN: greatminds run permission "); said == c.whole {
			t.Errorf("%s: it says so: %v\n%s", name, said, text)
		}
	}
}

func TestAQuestionOfAnyShapeIsShown(t *testing.T) {
	for _, tool := range []string{``, `{}`, `[]`, `null`, `"x"`, `{"title":7,"kind":[],"locations":{},"content":"x","rawInput":3}`, `{"locations":[3],"content":[null],"rawInput":null}`} {
		text := status.QuestionText(ask(tool, runstore.Option{OptionID: "o", Kind: "allow_once"}), &runstore.Run{TaskID: "0001-a", AgentID: "a"}, noon, status.FromDaemon)
		if !strings.Contains(text, "  1  allow_once   without a name [o]") || !strings.Contains(text, "1m30s left") || !strings.Contains(text, "0001-a") {
			t.Errorf("%s:\n%s", tool, text)
		}
	}
	closed := ask(`{}`)
	closed.Status, closed.Reason = "cancelled", "run_closed"
	if text := status.QuestionText(closed, nil, noon, status.FromDaemon); !strings.Contains(text, "cancelled (run_closed)") || strings.Contains(text, "left") {
		t.Errorf("got %s", text)
	}
}

// A text is told in lines, wherever its pieces end; everything else stands between whole lines.
func TestTellerJoinsPiecesToLines(t *testing.T) {
	var teller status.Teller
	text := func(seq uint64, s string) activity.Item {
		return activity.Item{Sequence: seq, Kind: activity.Message, Text: s}
	}
	var out []string
	tell := func(resumed bool, items ...activity.Item) { out = append(out, teller.Lines(items, resumed)...) }
	tell(false, text(1, "one\ntw"))
	tell(true, text(1, "o\r\nthree"))
	tell(false, activity.Item{Sequence: 2, Kind: activity.Tool, Title: "a\nb", ToolKind: "read", Status: "pending"})
	tell(false, text(3, "four "), activity.Item{Sequence: 4, Kind: activity.Message, Continued: true, Text: "goes on"}, activity.Item{Sequence: 5, Kind: activity.Thought, Text: "hm\x1b[1m"})
	tell(false, activity.Item{Kind: activity.Plan, Entries: []activity.Entry{{Content: "x", Status: "in_progress"}}, More: 3}, activity.Item{Kind: activity.Mode, Mode: "code"},
		activity.Item{Kind: activity.Permission, Status: "allowed"}, activity.Item{Kind: "later"}, activity.Item{Kind: activity.Stop})
	tell(false, text(9, "end"))
	out = append(out, teller.Rest()...)
	want := []string{"  one", "  two", "  three", `* [read] a\nb: pending`, "  four goes on", `~ hm\x1b[1m`, "# plan: [>] x; and 3 more", "# mode: code",
		"? [tool] without a title: allowed", "# later", "= turn ended: without a stop reason", "  end"}
	if strings.Join(out, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(out, "\n"), strings.Join(want, "\n"))
	}
	if rest := teller.Rest(); rest != nil {
		t.Errorf("there is more: %q", rest)
	}
}

func TestRunTextSaysHowARunStands(t *testing.T) {
	stop, ended, code := "end_turn", 1_800_000_010.0, 1
	run := &runstore.Run{ID: "r1", TaskID: "0001-a", BindingID: "dev", AgentID: "a", Role: "DEVELOPER", Account: "default", State: runstore.Failed, Reason: "transport_failure", CreatedAt: 1_800_000_000,
		EndedAt: &ended, Timings: map[string]float64{"workspace_ready": 0.1, "session_ready": 0.5}, Outcome: &runstore.Outcome{StopReason: &stop, ErrorType: "OSError",
			Extra: runstore.Members{"error_what": json.RawMessage(`"it \u001b[1mbroke"`)}}}
	doc := map[string]any{"run": run, "result": nil, "operations": []any{}, "permissions": []any{ask(`{"title":"open","kind":"edit"}`, runstore.Option{OptionID: "o", Kind: "allow_once"})},
		"commands": []any{&runstore.Command{ID: "c1", CommandID: "unit", Status: "failed", ExitCode: &code, Reason: "exit"},
			&runstore.Command{ID: "c2", CommandID: "bad", Status: "failed", Reason: "preflight_failed", Extra: runstore.Members{"detail": json.RawMessage(`"cannot execute \u001bnope"`)}}},
		"activity": activity.Document{Version: 1, Dropped: 2, Items: []activity.Item{{Kind: activity.Message, Text: "hello"}}}}
	data, err := json.Marshal(doc)
	must(t, err)
	text, err := status.RunText(data, noon.Add(time.Minute), status.FromDaemon)
	must(t, err)
	for _, want := range []string{"State     failed (transport_failure)", `Why       OSError it \x1b[1mbroke`, "Stop      end_turn", "Claimed   2027-01-15 08:00:00 UTC, 1m0s ago", "after 10s",
		"     0.100  workspace_ready\n     0.500  session_ready", "0001-a asks: open (edit), 30s left", "unit                 failed, exit 1  c1\n", "bad                  failed (preflight_failed)  c2\n    cannot execute \\x1bnope\n", "(2 older items are not shown)", "    hello"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	run.State, run.Reason, run.Process = runstore.WaitingInput, "permission_required", nil
	data, err = json.Marshal(map[string]any{"run": run})
	must(t, err)
	text, err = status.RunText(data, noon, status.FromDaemon)
	must(t, err)
	if !strings.Contains(text, "greatminds run retry r1") || strings.Contains(text, "ACTIVITY") {
		t.Errorf("got\n%s", text)
	}
	// A decision is shown with its words: a question is to be answered, a problem to be mended.
	for payload, details := range map[string]*runstore.ResultDetails{
		`{"question":"which \u001b[1mport?"}`: {Decision: "needs_input", Question: new("which \x1b[1mport?")},
		`{"reason":"which \u001b[1mport?"}`:   {Error: "no such \x1bblock\nand more"},
	} {
		data, err = json.Marshal(map[string]any{"run": run, "result": &runstore.Result{Status: "applied", Details: details,
			Envelope: runstore.Envelope{Decision: "needs_input", Payload: json.RawMessage(payload)}}})
		must(t, err)
		text, err = status.RunText(data, noon, status.FromDaemon)
		must(t, err)
		if !strings.Contains(text, "Decision  needs_input: applied\nSaid      which \\x1b[1mport?\n") {
			t.Errorf("%s: got\n%s", payload, text)
		}
		if shown := strings.Contains(text, "Problem\n    | no such \\x1bblock\n    | and more\n"); shown != (details.Error != "") {
			t.Errorf("%s: got\n%s", payload, text)
		}
	}
	for _, bad := range []string{`{}`, `[`, `null`} {
		if _, err := status.RunText(json.RawMessage(bad), noon, status.FromDaemon); err == nil {
			t.Errorf("%s is shown", bad)
		}
	}
}
