package supervisor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"greatminds/contract"
	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/execgate"
	"greatminds/runstore"
	"greatminds/supervisor/control"
	"greatminds/tasks"
)

// house is a daemon that runs inside the test, over a project of its own whose disk and clock
// the test holds. Its tasks need no git.
type house struct {
	t    *testing.T
	root string
	o    Options
	disk *faultdisk.FaultDisk

	stops map[string]*stop // steps at which the daemon is held up; filled before it starts

	looks atomic.Int64 // how often the clock was read: a loop that spins reads it all the time
	shift atomic.Int64 // what was added to the clock, in nanoseconds

	mu   sync.Mutex
	log  bytes.Buffer
	more chan struct{} // closed at the next line of the log

	d     *Daemon
	halt  context.CancelFunc
	ended chan struct{}
	err   error // how the daemon ended, once ended is closed
}

// plan is what a house is built from.
type plan struct {
	steps string // of the agent's script
	// agent, binding and root are further members of the contract.
	agent, binding, root string
	// commands is the contract's section of commands.
	commands string
	// session is new where it is empty.
	session string
}

func newHouse(t *testing.T, p plan) *house {
	t.Helper()
	h := &house{t: t, root: t.TempDir(), disk: faultdisk.New()}
	schema := contract.EmbeddedSchema()
	must(t, os.MkdirAll(filepath.Join(h.root, "coordination"), 0o755))
	for _, q := range schema.Queues {
		must(t, os.MkdirAll(filepath.Join(h.root, ".greatminds", string(q.Name)), 0o755))
	}
	must(t, os.MkdirAll(filepath.Join(h.root, "agent"), 0o755))
	h.script(p.steps)
	exe, err := os.Executable()
	must(t, err)
	text := fmt.Sprintf("version: 1\n%sagents:\n  dev: {transport: acp, argv: [%q, demo-agent, --script, %q], adapter_version: \"1\", harness_version: \"1\"%s}\n"+
		"bindings:\n  dev: {role: DEVELOPER, agent: dev, scheduling: queue, session: %s%s}\n%s",
		p.root, exe, h.file("agent/script.json"), p.agent, cmp.Or(p.session, "new"), p.binding, p.commands)
	must(t, os.WriteFile(h.file("coordination/execution.yaml"), []byte(text), 0o600))
	project, err := contract.OpenProject(h.root)
	must(t, err)
	h.o = Options{Project: project, Log: slog.New(slog.NewTextHandler(h, &slog.HandlerOptions{Level: slog.LevelDebug})), Now: h.now,
		Getenv: os.Getenv, Environ: os.Environ(), Version: "0", CLI: []string{exe, "greatminds"}, Seam: h.disk}
	t.Cleanup(func() {
		if h.d != nil {
			h.end()
		}
		if t.Failed() {
			h.mu.Lock()
			defer h.mu.Unlock()
			t.Logf("the daemon said:\n%s", h.log.String())
		}
	})
	return h
}

// stop is a named step at which the daemon is held up, the first time that it comes there.
type stop struct{ reached, pass chan struct{} }

// holdAt holds the daemon up before the first step of the name, until let is called.
func (h *house) holdAt(name string) (reached <-chan struct{}, let func()) {
	s := &stop{reached: make(chan struct{}), pass: make(chan struct{})}
	if h.stops == nil {
		h.stops = map[string]*stop{}
	}
	h.stops[name] = s
	let = sync.OnceFunc(func() { close(s.pass) })
	h.t.Cleanup(let)
	return s.reached, let
}

// hold makes a step wait where the test wants it to.
func (h *house) hold(name string, f func() error) error {
	if s := h.stops[name]; s != nil {
		h.mu.Lock()
		select {
		case <-s.reached:
			h.mu.Unlock()
		default:
			close(s.reached)
			h.mu.Unlock()
			<-s.pass
		}
	}
	return h.d.disk.Step(name, f)
}

func (h *house) file(name string) string { return filepath.Join(h.root, name) }

// script replaces what the agent does at its next start.
func (h *house) script(steps string) {
	must(h.t, os.WriteFile(h.file("agent/script.json"), []byte(`{"version":1,"launches":[{"steps":[`+steps+`]}]}`), 0o644))
}

// Write takes the daemon's log.
func (h *house) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.more != nil {
		close(h.more)
		h.more = nil
	}
	return h.log.Write(b)
}

func (h *house) said(word string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Contains(h.log.String(), word)
}

// hears waits until the daemon's log holds a word.
func (h *house) hears(word string) {
	h.t.Helper()
	limit := h.limit()
	for {
		h.mu.Lock()
		if h.more == nil {
			h.more = make(chan struct{})
		}
		more := h.more
		h.mu.Unlock()
		if h.said(word) {
			return
		}
		select {
		case <-more:
		case <-h.ended:
			h.t.Fatalf("the daemon ended (%v) and did not say %q", h.err, word)
		case <-limit.Done():
			h.t.Fatalf("the daemon did not say %q", word)
		}
	}
}

func (h *house) now() time.Time {
	h.looks.Add(1)
	return time.Now().Add(time.Duration(h.shift.Load()))
}

// task files a task into a queue; it needs no worktree.
func (h *house) task(queue, id string) {
	h.t.Helper()
	text := strings.Replace(strings.Replace(sampleText, "0001-sample", id, 1), "kind: bugfix", "kind: research", 1)
	tmp := h.file(".greatminds/." + id)
	must(h.t, os.WriteFile(tmp, []byte(text), 0o644))
	must(h.t, os.Rename(tmp, h.file(".greatminds/"+queue+"/"+id+".yaml")))
}

const sampleText = `id: 0001-sample
stream: product
title: Sample task
reporter: ARCHITECT-PLANNER
opened_at: "2026-01-05T09:00:00Z"
priority: normal
kind: bugfix
scope: backend
blocks: []
`

// open brings a daemon up, without running it.
func (h *house) open() {
	h.t.Helper()
	d, err := newDaemon(h.t.Context(), h.o)
	must(h.t, err)
	h.d, d.step = d, h.hold
}

// start brings a daemon up and lets it run until end, or the test's end.
func (h *house) start() {
	h.t.Helper()
	h.open()
	h.run()
}

func (h *house) run() {
	ctx, stop := context.WithCancel(context.WithoutCancel(h.t.Context()))
	h.halt, h.ended = stop, make(chan struct{})
	go func() {
		defer close(h.ended)
		h.err = h.d.run(ctx)
	}()
}

// end stops the daemon and returns how it ended.
func (h *house) end() error {
	h.halt()
	<-h.ended
	h.d = nil
	return h.err
}

// once runs a daemon until only held work is left.
func (h *house) once() error {
	h.t.Helper()
	h.o.Once = true
	defer func() { h.o.Once = false }()
	h.start()
	select {
	case <-h.ended:
	case <-h.limit().Done():
		h.t.Fatal("the daemon did not come to its end")
	}
	h.halt()
	h.d = nil
	return h.err
}

// limit is a context that ends when a wait has taken too long.
func (h *house) limit() context.Context {
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	h.t.Cleanup(cancel)
	return ctx
}

// until waits for a durable state.
func (h *house) until(what string, is func(v *runstore.View) bool) *runstore.View {
	h.t.Helper()
	limit := h.limit()
	for {
		changed, v := h.d.store.Changed(), h.d.store.View()
		if is(v) {
			return v
		}
		select {
		case <-changed:
		case <-h.ended:
			h.t.Fatalf("the daemon ended (%v) before %s", h.err, what)
		case <-limit.Done():
			h.t.Fatalf("waited too long until %s", what)
		}
	}
}

// pass lets time go by, so that something may go wrong in it.
func (h *house) pass(span time.Duration) {
	ctx, cancel := context.WithTimeout(h.t.Context(), span)
	defer cancel()
	<-ctx.Done()
}

// run0 is the first run of all, nil before there is one.
func run0(v *runstore.View) *runstore.Run {
	if runs := v.Runs(); len(runs) > 0 {
		return runs[0]
	}
	return nil
}

func last(v *runstore.View) *runstore.Run {
	if runs := v.Runs(); len(runs) > 0 {
		return runs[len(runs)-1]
	}
	return nil
}

// inState waits until the newest run is in the state; where that state is one of rest, also until
// nobody drives it any more.
func (h *house) inState(s runstore.State) *runstore.Run {
	h.t.Helper()
	v := h.until("a run is "+string(s), func(v *runstore.View) bool { r := last(v); return r != nil && r.State == s })
	if s.Terminal() || s == runstore.WaitingAuth {
		h.left(last(v).ID)
	}
	return last(v)
}

// left waits until nobody drives a run any more.
func (h *house) left(id runstore.RunID) {
	h.t.Helper()
	h.d.mu.Lock()
	e := h.d.live[id]
	h.d.mu.Unlock()
	if e == nil {
		return
	}
	select {
	case <-e.ended:
	case <-h.limit().Done():
		h.t.Fatalf("run %s is driven without an end", id)
	}
}

// prompted waits until the agent has said its first word in the turn.
func (h *house) prompted() *runstore.Run {
	h.t.Helper()
	v := h.until("the turn is under way", func(v *runstore.View) bool {
		r := last(v)
		return r != nil && r.Timings["first_prompt_activity"] > 0
	})
	return last(v)
}

// operator performs an operation as somebody outside the daemon's processes.
func (h *house) operator(op string, args map[string]any) error {
	h.t.Helper()
	data, err := json.Marshal(args)
	must(h.t, err)
	if args == nil {
		data = []byte("{}")
	}
	peer := execgate.Peer{PID: os.Getppid(), UID: uint32(os.Getuid()), Known: true}
	_, err = h.d.operations(h.d).Serve(h.limit(), peer, control.Call{Version: control.Version, ID: control.NewID(), Op: op, Args: data})
	return err
}

// errNoSpace is a full disk.
var errNoSpace = errors.New("no space left on device")

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	taskID  = "0001-sample"
	talking = `{"handshake":{}},{"prompt":"p"},{"say":"at work"},`
	waiting = talking + `{"wait_file":"go","within_ms":60000},{"end_turn":"p"}`
)

// release lets an agent that waits go on.
func (h *house) release() { must(h.t, os.WriteFile(h.file("agent/go-go"), nil, 0o644)) }

// comes waits until the daemon is held up.
func (h *house) comes(reached <-chan struct{}) {
	h.t.Helper()
	select {
	case <-reached:
	case <-h.ended:
		h.t.Fatalf("the daemon ended (%v) before it came to the step", h.err)
	case <-h.limit().Done():
		h.t.Fatal("the daemon did not come to the step")
	}
}

// running puts a run of the task at work on record, with no process behind it.
func (h *house) running(tx *runstore.Tx, task *tasks.Task) (*runstore.ClaimedRun, error) {
	d := h.d
	b, _ := d.contract.Binding("dev")
	a, _ := d.contract.Agent("dev")
	run, _, err := tx.Claim(runstore.Claim{OwnerID: "o", TaskID: taskID, TaskPath: task.File, TaskRevision: runstore.Revision(task.Revision),
		Role: "DEVELOPER", BindingID: "dev", BindingSHA256: b.SHA256(), AgentID: "dev", AgentSHA256: a.SHA256(), ConfigSHA256: d.contractSHA,
		SchemaSHA256: d.schema.SHA256, SchemaVersion: 1, Workspace: h.root, Account: "default", Permission: "ask"}, nil)
	for _, s := range []runstore.State{runstore.Starting, runstore.Running} {
		if err == nil {
			err = tx.Transition(run.ID, runstore.NewID(), s, "", nil)
		}
	}
	return run, err
}
