package execgate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"greatminds/internal/execgate/entry"
	"greatminds/internal/execgate/proc"
)

// Tool is one bounded call of a helper program.
type Tool struct {
	// Argv is taken literally; Argv[0] is looked up in the PATH of Env unless it holds a slash.
	Argv []string
	// Env is the whole environment; see [GitEnv].
	Env []string
	// Dir is the folder to start in, absolute.
	Dir string
	// Stdin is all that the program can read.
	Stdin []byte
	// MaxOutput bounds each stream, in bytes; 0 means 16 MiB. What is beyond is read and dropped.
	MaxOutput int64
	// Timeout bounds the call; 0 means one minute.
	Timeout time.Duration
}

// ToolOutput is what a helper program wrote and how it ended.
type ToolOutput struct {
	Stdout, Stderr []byte
	// Code is the exit status, or 128 and the number of the signal that ended the program.
	Code int
	// Truncated says that a stream was longer than MaxOutput.
	Truncated bool
}

// ErrToolTimeout is wrapped when a helper program was ended because its time was over.
var ErrToolTimeout = errors.New("the program took too long")

const (
	defaultToolOutput  = 16 << 20
	defaultToolTimeout = time.Minute
	// toolGrace lets git remove its lock files.
	toolGrace = 2 * time.Second
	// pipeGrace is what the pipes get once the whole tree has ended: only a process outside of
	// it, one that was handed a descriptor, can still hold them.
	pipeGrace = 100 * time.Millisecond
)

// RunTool runs a helper program, git above all, to its end under a keeper of its own, without
// gate and without a record: it must be one whose writes are steps of a journaled operation. The
// program's whole tree is gone when RunTool returns. At the end of ctx or of the time limit it
// gets SIGTERM and 2 s before it is killed, and the error wraps ctx's or [ErrToolTimeout]. An
// exit status other than 0 is no error. An [*ExecError] says that it could not be started.
// Spec: design "Git".
func RunTool(ctx context.Context, t Tool) (ToolOutput, error) {
	req := entry.Request{Dir: t.Dir, Argv: t.Argv, Env: withMark(t.Env, "")}
	if err := checkRequest(req); err != nil {
		return ToolOutput{}, err
	}
	if t.MaxOutput <= 0 {
		t.MaxOutput = defaultToolOutput
	}
	if t.Timeout <= 0 {
		t.Timeout = defaultToolTimeout
	}
	timed, cancel := context.WithTimeoutCause(ctx, t.Timeout, ErrToolTimeout)
	defer cancel()
	run, err := startTool(t, req.Encode())
	if err != nil {
		return ToolOutput{}, err
	}
	return run.finish(timed)
}

// toolRun is a tool that was started, with the pumps of its three streams.
type toolRun struct {
	hold           *hold
	ours           []*os.File
	stdout, stderr *capture
	pumps          chan struct{}
}

func startTool(t Tool, payload []byte) (*toolRun, error) {
	var theirs, ours []*os.File
	for range 4 { // stdin, stdout, stderr, request
		r, w, err := os.Pipe()
		if err != nil {
			closeFiles(append(theirs, ours...))
			return nil, fmt.Errorf("execgate: %w", err)
		}
		theirs, ours = append(theirs, r), append(ours, w)
	}
	theirs[1], ours[1] = ours[1], theirs[1]
	theirs[2], ours[2] = ours[2], theirs[2]
	h, err := spawn(entry.RoleToolKeeper, [3]uintptr{theirs[0].Fd(), theirs[1].Fd(), theirs[2].Fd()}, theirs[3:])
	closeFiles(theirs)
	if err != nil {
		closeFiles(ours)
		return nil, err
	}
	go h.monitor()
	run := &toolRun{
		hold: h, ours: ours, pumps: make(chan struct{}),
		stdout: &capture{limit: t.MaxOutput}, stderr: &capture{limit: t.MaxOutput},
	}
	go run.pump(t.Stdin, payload)
	return run, nil
}

// pump moves the request, the input and both outputs, and returns when all four pipes are done.
func (r *toolRun) pump(stdin, payload []byte) {
	defer close(r.pumps)
	done := make(chan struct{}, 4)
	write := func(f *os.File, data []byte) {
		_, _ = f.Write(data) // a program need not read its input; a lost keeper is seen elsewhere
		_ = f.Close()        // a pipe has nothing to flush
		done <- struct{}{}
	}
	read := func(to *capture, f *os.File) {
		_, _ = io.Copy(to, f) // ends with the pipe, or with the deadline that finish sets
		done <- struct{}{}
	}
	go write(r.ours[0], stdin)
	go read(r.stdout, r.ours[1])
	go read(r.stderr, r.ours[2])
	go write(r.ours[3], payload)
	for range 4 {
		<-done
	}
}

// finish waits for the end, or brings it about, and collects.
func (r *toolRun) finish(ctx context.Context) (ToolOutput, error) {
	var started started
	select {
	case started = <-r.hold.up:
		proc.CloseFD(started.pidfd)
	case <-ctx.Done():
	}
	select {
	case <-r.hold.finished:
	case <-ctx.Done():
	}
	// A tool that ended in time loses nothing by this: it waits for what is left of its tree.
	ending, err := r.hold.stop(context.WithoutCancel(ctx), Grace{Term: toolGrace})
	if started.err == nil && ctx.Err() != nil {
		_ = r.hold.discard(ctx) // finished already: takes an answer that came late
	}
	r.close()
	out := ToolOutput{
		Stdout: r.stdout.data, Stderr: r.stderr.data, Code: ending.Code,
		Truncated: r.stdout.over || r.stderr.over,
	}
	if ending.Signal != 0 {
		out.Code = 128 + int(ending.Signal)
	}
	switch {
	case err != nil:
		return out, err
	case started.err != nil:
		return out, started.err
	case ctx.Err() != nil && ending.How != HowExited:
		return out, fmt.Errorf("execgate: %w", context.Cause(ctx))
	case !ending.Known:
		return out, fmt.Errorf("execgate: outcome of the program: %w", ErrUnknown)
	}
	return out, nil
}

// close ends the pumps. The tree is gone, so the pipes end by themselves unless somebody outside
// of it holds one.
func (r *toolRun) close() {
	deadline := time.Now().Add(pipeGrace)
	for _, f := range r.ours {
		_ = f.SetDeadline(deadline) // fails on a file that is closed, which is done already
	}
	<-r.pumps
	for i, to := range []*capture{r.stdout, r.stderr} {
		Drain(r.ours[i+1], func(p []byte) { _, _ = to.Write(p) }) // never fails
	}
	closeFiles(r.ours)
}

// capture keeps the first limit bytes.
type capture struct {
	data  []byte
	limit int64
	over  bool
}

// Write never fails, so that the program is never blocked by what is not kept.
func (c *capture) Write(p []byte) (int, error) {
	keep := min(int64(len(p)), c.limit-int64(len(c.data)))
	c.data = append(c.data, p[:keep]...)
	c.over = c.over || keep < int64(len(p))
	return len(p), nil
}

// GitEnv returns the environment for a git call: base without any GIT_* variable, since those of
// the daemon could lead git to another repository, no questions on a terminal, messages in
// English, and no housekeeping that goes on in the background after the call.
// Spec: DESIGN "GIT_* variables of the daemon's environment reach no git call".
func GitEnv(base []string) []string {
	env := make([]string, 0, len(base)+7)
	for _, variable := range base {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "GIT_") || name == "LC_ALL" || name == entry.MarkName {
			continue
		}
		env = append(env, variable)
	}
	return append(env, "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=gc.auto", "GIT_CONFIG_VALUE_0=0",
		"GIT_CONFIG_KEY_1=maintenance.auto", "GIT_CONFIG_VALUE_1=false")
}
