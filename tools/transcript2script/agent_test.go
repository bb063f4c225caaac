package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"greatminds/fixtures/agent"
	"greatminds/transport"
)

// asAgent in the environment turns the test program into the scripted agent.
const asAgent = "TRANSCRIPT2SCRIPT_TEST_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		syscall.Exit(agent.Main(os.Args[1:])) // os.Exit sleeps for a second under the race detector
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait; none is expected to last.
const patience = 30 * time.Second

// process is one launch of the scripted agent.
type process struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	folder string // the session's workspace
	state  string // where script, trace and marks are
}

// launch starts the agent with the script of one conversation and returns our ends of its pipes.
func launch(t *testing.T, script string) (*process, transport.Options) {
	t.Helper()
	p := &process{
		cmd: exec.Command(os.Args[0], "--script", script), ended: make(chan struct{}),
		folder: t.TempDir(), state: filepath.Dir(script),
	}
	o := transport.Options{ClientName: "greatminds", ClientVersion: "test", Cwd: p.folder, Ended: p.ended}
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		return r, w
	}
	var stdin, stdout, stderr *os.File
	stdin, o.Stdin = pipe()
	o.Stdout, stdout = pipe()
	o.Stderr, stderr = pipe()
	p.cmd.Dir = p.folder
	p.cmd.Env = append(os.Environ(), asAgent+"=1", "GORACE=atexit_sleep_ms=0")
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdout, stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, theirs := range []*os.File{stdin, stdout, stderr} {
		_ = theirs.Close() // the child has its own
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in ProcessState
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
	})
	return p, o
}

// mark returns a pipe in the place of a mark's file: it can be read when the mark is reached.
func (p *process) mark(t *testing.T, name string) *os.File {
	t.Helper()
	path := filepath.Join(p.state, "mark-"+name)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	// Open at both ends, so that neither side waits for the other to open it.
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// traced reads the agent's trace: every assertion of the script held, and nothing was waited for in vain.
func traced(t *testing.T, folder string) {
	t.Helper()
	file, err := os.Open(filepath.Join(folder, "trace.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	asserts := 0
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var l struct {
			Kind string `json:"kind"`
			OK   bool   `json:"ok"`
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		switch l.Kind {
		case "assert":
			if asserts++; !l.OK {
				t.Errorf("our client wrote something else: %s", lines.Text())
			}
		case "expect_failed", "step_failed", "handler_failed", "bad_step", "recv_bad":
			t.Errorf("the script did not go as recorded: %s", lines.Text())
		}
	}
	if err := lines.Err(); err != nil || asserts == 0 {
		t.Errorf("%d assertions, %v", asserts, err)
	}
}
