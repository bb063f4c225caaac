package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"
)

// tools connects the SDK's client to a server of the agent's run, which must be in its turn.
// progress is told of progress; it may be nil.
func (l *lab) tools(t testing.TB, progress func(string)) *sdk.ClientSession {
	t.Helper()
	cmd := exec.Command(l.cli, "mcp")
	for name, value := range l.agentEnv(t) {
		if strings.HasPrefix(name, "GREATMINDS_") {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { progress(r.Params.Message) }})
	session, err := c.Connect(context.WithoutCancel(t.Context()), &sdk.CommandTransport{Command: cmd}, nil)
	must(t, err)
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return session
}

// called calls a tool and returns its text.
func called(t testing.TB, s *sdk.ClientSession, tool, args string) (text string, isError bool) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	must(t, err)
	return r.Content[0].(*sdk.TextContent).Text, r.IsError
}

// While a command is waited for, the client hears of it. A client that gives the call up ends its
// wait and no command: it goes on, and the same request asks for its outcome.
//
// E-077 E-082
func TestAnAgentThatStopsWaitingStopsNoCommand(t *testing.T) {
	t.Parallel()
	l := newLab(t, untilReleased+`{"end_turn":"p"}`, "", "")
	fifo, file := filepath.Join(l.root, "fifo"), filepath.Join(l.project, "coordination", "execution.yaml")
	must(t, unix.Mkfifo(fifo, 0o600))
	text, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, append(text, "commands:\n  slow: {argv: [cat, "+quote(fifo)+"], roles: [DEVELOPER], timeout_seconds: 90}\n"...), 0o600))
	l.start(t)
	l.marked(t, "ready")

	heard := make(chan string, 100)
	s := l.tools(t, func(m string) { heard <- m })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		params := &sdk.CallToolParams{Name: "command", Arguments: map[string]any{"command_id": "slow", "request_id": "one", "wait_seconds": 60}}
		params.SetProgressToken(7)
		_, err := s.CallTool(ctx, params)
		ended <- err
	}()
	if m := <-heard; m != "command slow (request one) is running" {
		t.Errorf("heard %q", m)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	if text, isError := called(t, s, "command_status", `{"request_id":"one"}`); isError || !strings.Contains(text, `"status":"running"`) {
		t.Fatalf("after its call was cancelled the command is %v %s", isError, text)
	}
	out, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	must(t, err)
	_, err = out.WriteString("whole\n")
	must(t, errors.Join(err, out.Close()))
	if text, isError := called(t, s, "command", `{"command_id":"slow","request_id":"one","wait_seconds":60}`); isError ||
		!strings.Contains(text, `"status":"succeeded"`) || !strings.Contains(text, `whole\n`) {
		t.Errorf("the command came to %v %s", isError, text)
	}
	l.release(t, "go")
}

// A daemon that is gone is told as the command line tells it, and the server goes on to say so.
func TestToolsOfADaemonThatIsGoneSayWhatTheCommandLineSays(t *testing.T) {
	t.Parallel()
	l := newLab(t, untilReleased+`{"end_turn":"p"}`, "", "")
	l.start(t)
	l.marked(t, "ready")
	s, env := l.tools(t, nil), l.agentEnv(t)
	must(t, l.daemon.Process.Kill())
	<-l.said
	text, isError := called(t, s, "contract", `{}`)
	var got, want struct {
		Error struct{ Code, What, Remedy string }
	}
	must(t, json.Unmarshal([]byte(text), &got))
	code, _, stderr := l.attempt([]string{"GREATMINDS_PROJECT_DIR=" + l.project, "GREATMINDS_RUN_ID=" + env["GREATMINDS_RUN_ID"], "GREATMINDS_RUN_TOKEN=" + env["GREATMINDS_RUN_TOKEN"]}, "run", "contract")
	must(t, json.Unmarshal([]byte(stderr), &want))
	if !isError || code != 4 || got != want || got.Error.Code != "daemon_silent" {
		t.Errorf("the tool says %v %+v, the command line %d %+v", isError, got, code, want)
	}
}

// BenchmarkDecision compares a decision that is submitted over MCP, to a server that keeps running,
// with one over the command line, which is a new process each time. All are the same decision, so that
// after the first each call gets its receipt; refused is one that is judged whole and refused.
//
//	go test -run '^$' -bench Decision -benchtime 60x ./supervisor
func BenchmarkDecision(b *testing.B) {
	l := newLab(b, untilReleased+`{"end_turn":"p"}`, "", "")
	l.start(b)
	l.marked(b, "ready")
	s, env := l.tools(b, nil), l.agentEnv(b)
	const wrong, right = `{"decision":"handoff","payload":{"to_queue":"verified","blocks":[]}}`, `{"decision":"no_change","payload":{}}`
	cli := func(text string) {
		cmd := exec.Command(l.cli, "run", "submit", "--json", text)
		for name, value := range env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		_ = cmd.Run() // a refusal is what was asked for
	}
	timed := func(f func()) time.Duration {
		began := time.Now()
		f()
		return time.Since(began)
	}
	var refused, refusedCLI []time.Duration
	for range 30 {
		refused = append(refused, timed(func() { called(b, s, "submit", wrong) }))
		refusedCLI = append(refusedCLI, timed(func() { cli(wrong) }))
	}
	first := timed(func() { called(b, s, "submit", right) })
	var again, againCLI []time.Duration
	for b.Loop() {
		again = append(again, timed(func() { called(b, s, "submit", right) }))
		againCLI = append(againCLI, timed(func() { cli(right) }))
	}
	ms := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)/2].Microseconds()) / 1000
	}
	b.ReportMetric(float64(first.Microseconds())/1000, "first-ms")
	b.ReportMetric(ms(again), "receipt-mcp-ms")
	b.ReportMetric(ms(againCLI), "receipt-cli-ms")
	b.ReportMetric(ms(refused), "refused-mcp-ms")
	b.ReportMetric(ms(refusedCLI), "refused-cli-ms")
	l.release(b, "go")
}
