package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"greatminds/internal/refusal"
	"greatminds/mcp"
)

// asked is one call that reached the daemon.
type asked struct {
	op   string
	args map[string]any
}

// daemon answers the operations of a run in the test's place.
type daemon struct {
	mu    sync.Mutex
	calls []asked
	// answer performs an operation; nil answers {}.
	answer func(ctx context.Context, a asked) (string, error)
}

const decisionSchema = `{"type":"object","properties":{"decision":{"type":"string","enum":["no_change"]},"payload":{"type":"object"}},"required":["decision","payload"]}`

func (d *daemon) call(ctx context.Context, op string, args any) (json.RawMessage, error) {
	text, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	a := asked{op: op}
	if err := json.Unmarshal(text, &a.args); err != nil {
		return nil, err
	}
	if op == "run.contract" && a.args["decision"] == true {
		return json.RawMessage(decisionSchema), nil
	}
	d.mu.Lock()
	d.calls = append(d.calls, a)
	first := len(d.calls) == 1
	d.mu.Unlock()
	if first {
		return json.RawMessage(`{"configured_commands":[{"id":"unit","purpose":"validation"}]}`), nil
	}
	if d.answer == nil {
		return json.RawMessage(`{}`), nil
	}
	answer, err := d.answer(ctx, a)
	return json.RawMessage(answer), err
}

// seen are the calls but for those of the start.
func (d *daemon) seen() []asked {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls[1:])
}

// server is a server under test, and our ends of its input and output.
type server struct {
	in    *io.PipeWriter
	out   *io.PipeReader
	ended chan struct{}
	err   error
}

func serve(t *testing.T, ctx context.Context, d *daemon) *server {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	s := &server{in: inW, out: outR, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		s.err = mcp.Serve(ctx, mcp.Options{Call: d.call, In: inR, Out: outW, Version: "9"})
		outW.Close()
	}()
	t.Cleanup(func() { inW.Close(); outR.Close(); <-s.ended })
	return s
}

// client connects the SDK's own client. progress may be nil.
func client(t *testing.T, d *daemon, progress func(*sdk.ProgressNotificationParams)) *sdk.ClientSession {
	t.Helper()
	s := serve(t, context.WithoutCancel(t.Context()), d)
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { progress(r.Params) }})
	session, err := c.Connect(t.Context(), &sdk.IOTransport{Reader: s.out, Writer: s.in}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if <-s.ended; s.err != nil {
			t.Errorf("the server ended with %v", s.err)
		}
	})
	return session
}

func tool(t *testing.T, s *sdk.ClientSession, name string, args string) (answer map[string]any, isError bool) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	text := r.Content[0].(*sdk.TextContent).Text
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%s answered %s: %v", name, text, err)
	}
	if structured, err := json.Marshal(r.StructuredContent); err != nil || !same(structured, text) {
		t.Errorf("%s: structured %s, text %s, %v", name, structured, text, err)
	}
	return answer, r.IsError
}

func same(a []byte, b string) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal([]byte(b), &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

func TestTheToolsAreListedWithTheRunsOwnSchemas(t *testing.T) {
	s := client(t, &daemon{}, nil)
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	schemas := map[string]string{}
	for _, tool := range list.Tools {
		text, err := json.Marshal(tool.InputSchema)
		if err != nil || tool.Description == "" || tool.Annotations == nil {
			t.Errorf("%s: %v, %+v", tool.Name, err, tool)
		}
		schemas[tool.Name] = string(text)
		if tool.Meta["anthropic/alwaysLoad"] != true {
			t.Errorf("%s is not shown from the start: %v", tool.Name, tool.Meta)
		}
		if reads := tool.Name == "contract" || tool.Name == "command_status"; tool.Annotations.ReadOnlyHint != reads {
			t.Errorf("%s says read only %v", tool.Name, tool.Annotations.ReadOnlyHint)
		}
	}
	if got := slices.Sorted(maps.Keys(schemas)); !slices.Equal(got, []string{"command", "command_status", "contract", "submit"}) {
		t.Fatalf("got %v", got)
	}
	if !same([]byte(schemas["submit"]), decisionSchema) || !strings.Contains(schemas["command"], `"enum":["unit"]`) {
		t.Errorf("got %v", schemas)
	}
}

// E-178
func TestEachToolIsOneOperation(t *testing.T) {
	d := &daemon{answer: func(_ context.Context, a asked) (string, error) {
		return `{"op":"` + a.op + `","status":"succeeded"}`, nil
	}}
	s := client(t, d, nil)
	for _, c := range []struct{ name, args, op, want string }{
		{"contract", `{}`, "run.contract", "map[]"},
		{"contract", `{"schema":true}`, "run.contract", "map[schema:true]"},
		{"submit", `{"decision":"no_change", "payload":{"x":1.50}}`, "run.submit", `map[text:{"decision":"no_change", "payload":{"x":1.50}}]`},
		{"command", `{"command_id":"unit","request_id":"r1","wait_seconds":0}`, "run.command", "map[command_id:unit output_limit:8192 request_id:r1 wait_seconds:0]"},
		{"command", `{"command_id":"unit","request_id":"r1","output_limit":5}`, "run.command", "map[command_id:unit output_limit:5 request_id:r1 wait_seconds:30]"},
		{"command_status", `{"request_id":"r1"}`, "run.command-status", "map[output_limit:8192 request_id:r1]"},
	} {
		answer, isError := tool(t, s, c.name, c.args)
		calls := d.seen()
		got := calls[len(calls)-1]
		args := fmt.Sprint(got.args)
		if c.name == "submit" { // the client may write the arguments anew
			var text any
			_ = json.Unmarshal([]byte(got.args["text"].(string)), &text) // compared below
			if !same([]byte(got.args["text"].(string)), `{"decision":"no_change","payload":{"x":1.5}}`) {
				t.Errorf("submit %s sent %v", c.args, got.args)
			}
			args = c.want
		}
		if isError || got.op != c.op || args != c.want || answer["op"] != c.op {
			t.Errorf("%s %s: got %s %v, answer %v, error %v", c.name, c.args, got.op, got.args, answer, isError)
		}
	}
	if a, _ := tool(t, s, "command", `{"command_id":"unit"}`); a == nil {
		t.Error("no answer")
	}
	calls := d.seen()
	if id, _ := calls[len(calls)-1].args["request_id"].(string); len(id) != 32 {
		t.Errorf("the generated request id is %q", id)
	}
}

// wrong is what a tool error says.
func wrong(answer map[string]any) (code, text string) {
	e, _ := answer["error"].(map[string]any)
	code, _ = e["code"].(string)
	return code, fmt.Sprint(e)
}

// A refusal of the daemon reaches the agent whole: code, words, remedy, and every reason with its
// own code and place.
func TestARefusalIsAToolErrorWithEveryReason(t *testing.T) {
	refused := &refusal.Refusal{Code: refusal.CodeDecisionRefused, What: "it cannot be applied", Remedy: "mend every point", Reasons: []refusal.Reason{
		{Code: refusal.CodeFileEvidence, Place: "payload.blocks[0].files[0]", What: "git knows no change of a.go", Remedy: "name only files that changed"},
		{Code: refusal.CodeBlockField, Place: "payload.blocks[0]", What: "ready_for_test must be true or false"}}}
	d := &daemon{answer: func(context.Context, asked) (string, error) { return "", refused }}
	answer, isError := tool(t, client(t, d, nil), "submit", `{"decision":"handoff","payload":{}}`)
	want := `{"version":1,"error":{"code":"decision_refused","what":"it cannot be applied","remedy":"mend every point","reasons":[` +
		`{"code":"file_evidence","place":"payload.blocks[0].files[0]","what":"git knows no change of a.go","remedy":"name only files that changed"},` +
		`{"code":"block_field","place":"payload.blocks[0]","what":"ready_for_test must be true or false"}]}}`
	got, _ := json.Marshal(answer)
	if !isError || !same(got, want) {
		t.Errorf("got %v %s\nwant %s", isError, got, want)
	}
}

func TestWrongArgumentsAreRefusedBeforeTheDaemonIsAsked(t *testing.T) {
	d := &daemon{}
	s := client(t, d, nil)
	long := `{"decision":"no_change","payload":{"reason":"` + strings.Repeat("x", 65536) + `"}}`
	for _, c := range []struct{ tool, args, want string }{
		{"contract", `{"shema":true}`, `unknown field \"shema\"`}, {"contract", `{"schema":1}`, "cannot unmarshal number"},
		{"command", `{}`, "command_id is missing"}, {"command", `{"command_id":"unit","wait_seconds":-1}`, "out of range"},
		{"command", `{"command_id":"unit","wait_seconds":3601}`, "out of range"}, {"command", `{"command_id":5}`, "cannot unmarshal number"},
		{"command_status", `{}`, "request_id is missing"}, {"submit", long, "bytes long, but submit takes 65536"}, {"submit", long, "run submit --file"},
	} {
		answer, isError := tool(t, s, c.tool, c.args)
		if code, text := wrong(answer); !isError || code != "usage" || !strings.Contains(text, strings.ReplaceAll(c.want, `\`, "")) {
			t.Errorf("%s %.60s: got %v, want %q", c.tool, c.args, answer, c.want)
		}
	}
	if calls := d.seen(); len(calls) > 0 {
		t.Errorf("the daemon was asked %v", calls)
	}
}

// While it waits, the client is told so; what it waits for is asked for by the same request id.
func TestACommandTellsItsProgress(t *testing.T) {
	slices := make(chan struct{})
	told := make(chan *sdk.ProgressNotificationParams, 16)
	d := &daemon{answer: func(_ context.Context, a asked) (string, error) {
		select { // two slices pass, then it ends
		case <-slices:
			return `{"status":"succeeded"}`, nil
		default:
			return `{"status":"running"}`, nil
		}
	}}
	heard := 0
	s := client(t, d, func(p *sdk.ProgressNotificationParams) {
		if told <- p; heard == 1 {
			close(slices)
		}
		heard++
	})
	params := &sdk.CallToolParams{Name: "command", Arguments: map[string]any{"command_id": "unit", "wait_seconds": 60}}
	params.SetProgressToken("p1")
	r, err := s.CallTool(t.Context(), params)
	if err != nil || r.IsError {
		t.Fatal(r, err)
	}
	last := -1.0
	for range 2 {
		p := <-told
		if p.ProgressToken != "p1" || p.Progress <= last || p.Total != 60 || !strings.Contains(p.Message, "is running") {
			t.Errorf("got %+v after %g", p, last)
		}
		last = p.Progress
	}
	ids := map[any]bool{}
	for _, a := range d.seen() {
		if ids[a.args["request_id"]] = true; a.args["wait_seconds"].(float64) > 2 {
			t.Errorf("a slice lasts %v s", a.args["wait_seconds"])
		}
	}
	if len(ids) != 1 {
		t.Errorf("asked with the ids %v", ids)
	}
}

// A client that cancels stops waiting; other calls go on beside.
func TestACancelledCallEndsItsWaitAlone(t *testing.T) {
	waiting, ended := make(chan struct{}), make(chan error, 1)
	d := &daemon{answer: func(ctx context.Context, a asked) (string, error) {
		if a.op != "run.command" {
			return `{}`, nil
		}
		close(waiting)
		<-ctx.Done()
		ended <- ctx.Err()
		return "", ctx.Err()
	}}
	s := client(t, d, nil)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "command", Arguments: map[string]any{"command_id": "unit"}})
		failed <- err
	}()
	<-waiting
	if _, isError := tool(t, s, "contract", `{}`); isError {
		t.Error("a call beside one that waits fails")
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("the client got %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the daemon's call ended with %v", err)
	}
	if _, isError := tool(t, s, "contract", `{}`); isError {
		t.Error("the server does not answer any more")
	}
}

func TestMoreCallsThanItTakesAreRefusedAtOnce(t *testing.T) {
	full, release := make(chan struct{}, 64), make(chan struct{})
	d := &daemon{answer: func(ctx context.Context, a asked) (string, error) {
		full <- struct{}{}
		<-release
		return `{"status":"succeeded"}`, nil
	}}
	s := client(t, d, nil)
	results := make(chan bool, 64)
	var work sync.WaitGroup
	one := func() {
		defer work.Done()
		r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "command", Arguments: map[string]any{"command_id": "unit"}})
		if err != nil {
			t.Error(err)
			return
		}
		results <- r.IsError
	}
	for range 32 {
		work.Add(1)
		go one()
	}
	for range 32 {
		<-full
	}
	if answer, isError := tool(t, s, "contract", `{}`); !isError {
		t.Errorf("got %v", answer)
	} else if code, _ := wrong(answer); code != "tools_busy" {
		t.Errorf("got %v", answer)
	}
	close(release)
	work.Wait()
	for range 32 {
		if <-results {
			t.Error("a call within the limit was refused")
		}
	}
}

func TestABrokenCallTakesNoOtherDown(t *testing.T) {
	d := &daemon{answer: func(_ context.Context, a asked) (string, error) {
		if a.op == "run.submit" {
			panic("broken")
		}
		return `{}`, nil
	}}
	s := client(t, d, nil)
	answer, isError := tool(t, s, "submit", `{"decision":"no_change","payload":{}}`)
	if code, _ := wrong(answer); !isError || code != "internal" {
		t.Errorf("got %v", answer)
	}
	if _, isError := tool(t, s, "contract", `{}`); isError {
		t.Error("the server does not answer any more")
	}
}

func TestWithoutAnAssignmentNothingIsServed(t *testing.T) {
	refused := refusal.New(refusal.CodeCredential, "", "the credential is not valid")
	err := mcp.Serve(t.Context(), mcp.Options{In: io.NopCloser(strings.NewReader("")), Out: io.Discard,
		Call: func(context.Context, string, any) (json.RawMessage, error) { return nil, refused }})
	if !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

func TestTheServerEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, ctx, &daemon{})
	cancel()
	select {
	case <-s.ended:
	case <-time.NewTimer(30 * time.Second).C:
		t.Fatal("it does not end")
	}
	if !errors.Is(s.err, context.Canceled) {
		t.Errorf("got %v", s.err)
	}
}

// Some agents keep the server's process and begin a new conversation with it for each call.
func TestAClientMayBeginAnewOnTheSamePipes(t *testing.T) {
	s := serve(t, context.WithoutCancel(t.Context()), &daemon{})
	lines := bufio.NewScanner(s.out)
	lines.Buffer(nil, 1<<20)
	ask := func(text string) map[string]any {
		t.Helper()
		if _, err := io.WriteString(s.in, text+"\n"); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() {
			t.Fatalf("no answer: %v", lines.Err())
		}
		var answer map[string]any
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	for _, id := range []string{"1", "2"} {
		const params = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"anew","version":"1"}}`
		answer := ask(`{"jsonrpc":"2.0","id":` + id + `,"method":"initialize","params":` + params + `}`)
		if result, _ := answer["result"].(map[string]any); result["protocolVersion"] != "2025-06-18" {
			t.Fatalf("initialize %s: %v", id, answer)
		}
		if _, err := io.WriteString(s.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
			t.Fatal(err)
		}
		answer = ask(`{"jsonrpc":"2.0","id":"l` + id + `","method":"tools/list"}`)
		if result, _ := answer["result"].(map[string]any); len(result["tools"].([]any)) != 4 {
			t.Errorf("tools/list %s: %v", id, answer)
		}
	}
}
