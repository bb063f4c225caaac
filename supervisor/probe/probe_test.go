package probe_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"greatminds/contract"
	"greatminds/fixtures/agent"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/supervisor/probe"
)

func TestMain(m *testing.M) {
	execgate.Main()
	if len(os.Args) > 1 && os.Args[1] == "scripted-agent" {
		syscall.Exit(agent.Main(os.Args[2:])) // os.Exit sleeps for a second under the race detector
	}
	goleak.VerifyTestMain(m)
}

const secret = "canary-0123456789"

// scripted is a request to an agent that plays these steps; dir holds its trace.
func scripted(t *testing.T, steps string) (q probe.Request, dir string) {
	t.Helper()
	dir = t.TempDir()
	script := filepath.Join(dir, "agent-script.json")
	if err := os.WriteFile(script, []byte(`{"version":1,"launches":[{"steps":[`+steps+`]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"PATH": os.Getenv("PATH"), "KEY": secret}
	return probe.Request{Agent: contract.Agent{ID: "sample", Argv: []string{exe, "scripted-agent", "--script", script},
		Environment: []contract.EnvRef{{Child: "API_KEY", Parent: "KEY"}}}, Getenv: func(name string) string { return env[name] },
		Version: "test", Timeout: 30 * time.Second, Now: time.Now}, dir
}

// run probes, and checks that no word of the report holds the secret or a part of it that was cut.
func run(t *testing.T, q probe.Request) *probe.Report {
	t.Helper()
	report, err := probe.Run(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "canary") || strings.Contains(string(data), "456789") {
		t.Errorf("the report holds a secret: %s", data)
	}
	return report
}

// Everything that an agent can make large is bounded, also where a secret stands at the cut.
func TestAReportIsBounded(t *testing.T) {
	say := `{"raw":"` + strings.Repeat("x", 4096-len(secret)/2) + secret + strings.Repeat("x", 8<<10) + `","to":"stderr"},`
	q, _ := scripted(t, say+`{"handshake":{}},{"prompt":"p"},
		{"say":"`+strings.Repeat("y", 4096-len(secret)/2)+secret+strings.Repeat("z", 8<<10)+`"},
		{"repeat":40,"steps":[{"ask":"q${n}","id":"q${n}","title":"`+strings.Repeat("t", 1000)+`"},{"await":"q${n}"}]},
		{"raw":"`+strings.Repeat("w", 1<<10)+secret+strings.Repeat("w", 4096-len(secret)/2)+`","to":"stderr"},
		{"reply":"p","error":{"code":-32603,"message":"`+secret+strings.Repeat("m", 900)+`"}}`)
	q.Prompt = "go"
	r := run(t, q)
	if r.Prompt == nil || r.Error == nil {
		t.Fatalf("got %+v", r)
	}
	if r.Prompt.Permissions != 40 || len(r.Prompt.Asked) != 32 || len(r.Prompt.Asked[0].Title) > 300 {
		t.Errorf("%d permissions, %d listed", r.Prompt.Permissions, len(r.Prompt.Asked))
	}
	if n := len(r.Prompt.Text); n < 4096 || n > 4100 || r.Prompt.TextBytes < 12<<10 {
		t.Errorf("%d bytes of %d of the text", n, r.Prompt.TextBytes)
	}
	if n := len(r.Error.Stderr); n < 4000 || n > 4096 || !strings.HasSuffix(r.Error.Stderr, "ww") {
		t.Errorf("%d bytes of standard error", n)
	}
	if r.Error.Code != refusal.CodeProtocolError || r.Error.Phase != "prompt" || !strings.HasPrefix(r.Error.Message, "[redacted]mmm") || r.Status() != refusal.Failed {
		t.Errorf("error %+v", r.Error)
	}
}

// Many secrets make a text short when they are masked: then its cut end, and the cut beginning of
// standard error, stand in the report.
func TestNoPartOfASecretIsReported(t *testing.T) {
	long := secret + strings.Repeat("k", 700) + "456789"
	q, _ := scripted(t, `{"repeat":60,"steps":[{"raw":"`+long+`","to":"stderr"}]},{"raw":"`+strings.Repeat("e", 1000)+`nd","to":"stderr"},{"handshake":{}},{"prompt":"p"},`+
		`{"repeat":20,"steps":[{"say":"`+long+`"}]},{"reply":"p","error":{"code":-32603,"message":"m"}}`)
	q.Getenv = func(name string) string { return map[string]string{"PATH": os.Getenv("PATH"), "KEY": long}[name] }
	q.Prompt = "go"
	r := run(t, q)
	if r.Prompt == nil || r.Error == nil || !strings.HasSuffix(r.Error.Stderr, "end") || !strings.HasPrefix(r.Prompt.Text, "[redacted]") || strings.Contains(r.Prompt.Text+r.Error.Stderr, "kk") {
		t.Errorf("got %+v, %+v", r.Prompt, r.Error)
	}
}

// Whatever is asked for, nothing is granted, and no session is made that was not asked for.
func TestNothingIsGranted(t *testing.T) {
	q, dir := scripted(t, `{"handshake":{}},{"prompt":"p"},{"ask":"q","options":[{"optionId":"a","name":"A","kind":"allow_once"}]},{"await":"q"},{"end_turn":"p","reason":"refusal"}`)
	q.Prompt = "go"
	r := run(t, q)
	if r.Error != nil || r.Prompt == nil || r.Prompt.StopReason == nil || *r.Prompt.StopReason != "refusal" || r.Status() != 0 {
		t.Fatalf("got %+v", r)
	}
	trace, err := os.ReadFile(filepath.Join(dir, "trace.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(trace), "cancelled") || strings.Contains(string(trace), "selected") {
		t.Errorf("the answer was another one:\n%s", trace)
	}
	if _, err := os.Stat(r.Workspace); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary folder %s is left: %v", r.Workspace, err)
	}
}

// The end of the caller's context ends the agent, whose processes are gone when Run returns.
func TestAnInterruptEndsTheAgent(t *testing.T) {
	for _, at := range []string{"initialize", "session/prompt"} {
		t.Run(at, func(t *testing.T) {
			steps := map[string]string{"initialize": `{"expect":"initialize"}`, "session/prompt": `{"handshake":{}},{"prompt":"p"}`}[at]
			q, dir := scripted(t, `{"ignore_signals":["TERM"]},{"spawn":{"name":"child","setsid":true,"ignore_signals":["TERM"]}},`+steps+`,{"file":{"op":"write","path":"reached","text":"x"}},{"hang":true}`)
			q.Prompt, q.Workspace = "go", dir
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			reached, ended := await(t, filepath.Join(dir, "reached")), make(chan error, 1)
			go func() { _, err := probe.Run(ctx, q); ended <- err }()
			select {
			case <-reached:
			case err := <-ended:
				t.Fatalf("ended before: %v", err)
			}
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			nobodyIn(t, dir)
		})
	}
}

// A required variable is asked for before anything is started.
func TestARequiredVariableIsAskedForFirst(t *testing.T) {
	q, dir := scripted(t, `{"handshake":{}}`)
	q.Agent.RequiredEnv = []string{"KEY", "MISSING", "TOO"}
	_, err := probe.Run(t.Context(), q)
	r, ok := refusal.Find(err)
	if !ok || r.Code != refusal.CodeAuthenticationRequired || !strings.Contains(r.What, "MISSING, TOO") {
		t.Fatalf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "launches")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the agent was started: %v", err)
	}
}

// await returns a channel that is closed when something was written into the new pipe at path.
func await(t *testing.T, path string) <-chan struct{} {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	// Open for writing too, so that opening waits for nobody.
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	read, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if n, _ := pipe.Read(make([]byte, 1)); n == 1 { // ends with the test at the latest
			close(read)
		}
	}()
	t.Cleanup(func() {
		if err := pipe.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return read
}

// nobodyIn fails where a process works in the folder.
func nobodyIn(t *testing.T, dir string) {
	t.Helper()
	places, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil || len(places) == 0 {
		t.Fatalf("%d processes: %v", len(places), err)
	}
	for _, place := range places {
		if cwd, err := os.Readlink(place); err == nil && strings.HasPrefix(cwd, dir) { // else it has ended
			t.Errorf("%s is left", filepath.Dir(place))
		}
	}
}
