package commands_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"greatminds/commands"
	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
)

// roleVariable makes the test binary play a daemon that is killed, see crash_test.go.
const roleVariable = "COMMANDS_TEST_ROLE"

func TestMain(m *testing.M) {
	execgate.Main()
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(playDaemon(role))
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait; only a failing test reaches it.
const patience = 30 * time.Second

// lab is a project with one running run, and a service over a real store.
type lab struct {
	t        *testing.T
	dir      string // the project, which is the workspace
	store    *runstore.Store
	service  *commands.Service
	contract *contract.Contract
	current  *contract.Contract
	environ  []string
	run      runstore.RunID
	// disk is what the next open works on; nil is a healthy one.
	disk *durable.Disk
}

// configured wraps the definitions of commands into a contract.
func configured(t *testing.T, definitions string) *contract.Contract {
	t.Helper()
	text := `version: 1
agents:
  a: {transport: acp, argv: [agent], adapter_version: "1", harness_version: "1"}
bindings:
  b: {role: DEVELOPER, agent: a, workspace: "."}
commands:
` + definitions
	c, err := contract.Parse("execution.yaml", []byte(text), contract.EmbeddedSchema())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// shell is the definition of a command that runs a shell script, with further members.
func shell(id, script string, more ...string) string {
	return fmt.Sprintf("  %s: {argv: [sh, -c, %q], roles: [DEVELOPER]%s}\n", id, script, strings.Join(append([]string{""}, more...), ", "))
}

func newLab(t *testing.T, definitions ...string) *lab {
	t.Helper()
	l := &lab{t: t, dir: t.TempDir(), contract: configured(t, strings.Join(definitions, ""))}
	l.environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.dir, "TERM=dumb", "SECRET_PARENT=s3cret-value", "GIT_DIR=/elsewhere", "OTHER=x"}
	l.write("a.txt", "one")
	l.must(os.MkdirAll(l.runtime(), 0o700))
	l.open()
	l.run = l.claim("0001-task", "DEVELOPER")
	return l
}

func (l *lab) runtime() string { return filepath.Join(l.dir, ".greatminds", ".runtime") }

// open opens store and service, as a daemon does at its start.
func (l *lab) open() {
	l.t.Helper()
	disk := l.disk
	if disk == nil {
		disk = durable.NewDisk(nil)
	}
	store, err := runstore.Open(l.t.Context(), runstore.Options{Dir: l.runtime(), Disk: disk, Now: time.Now})
	l.must(err)
	l.store = store
	l.t.Cleanup(func() {
		if l.store == store {
			l.close()
		}
	})
	l.service, err = commands.New(commands.Options{
		Store: store, Disk: disk, Dir: l.runtime(), Now: time.Now, Environ: l.environ, Owner: "owner",
		Contract: func(string) (*contract.Contract, error) { return l.contract, nil },
		Current: func() *contract.Contract {
			if l.current != nil {
				return l.current
			}
			return l.contract
		},
	})
	l.must(err)
}

func (l *lab) close() {
	l.t.Helper()
	err := l.store.Close(context.Background())
	l.store = nil
	if l.disk == nil { // otherwise its failures are what the test is about
		l.must(err)
	}
}

// reopen is a restart of the daemon, with another environment where one is given.
func (l *lab) reopen(environ ...string) {
	l.t.Helper()
	l.close()
	if environ != nil {
		l.environ = environ
	}
	l.open()
}

func (l *lab) claim(task, role string) runstore.RunID {
	l.t.Helper()
	var id runstore.RunID
	l.must(l.store.Update(l.t.Context(), func(tx *runstore.Tx) error {
		c, holds, err := tx.Claim(runstore.Claim{
			OwnerID: "owner", TaskID: runstore.TaskID(task), TaskPath: "feature_dev/" + task + ".yaml", TaskRevision: "rev",
			Role: role, BindingID: "b", BindingSHA256: "b", AgentID: "a", AgentSHA256: "a",
			ConfigSHA256: l.contract.SHA256(), SchemaSHA256: "schema", SchemaVersion: 1,
			Workspace: l.dir, Account: "default", Permission: "ask",
		}, nil)
		if err != nil || len(holds) > 0 {
			return errors.Join(err, fmt.Errorf("holds %v", holds))
		}
		id = c.ID
		for _, to := range []runstore.State{runstore.Starting, runstore.Running} {
			if err := tx.Transition(id, runstore.NewID(), to, "", nil); err != nil {
				return err
			}
		}
		return nil
	}))
	return id
}

func (l *lab) write(name, text string) {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	l.must(os.MkdirAll(filepath.Dir(path), 0o755))
	l.must(os.WriteFile(path, []byte(text), 0o644))
}

func (l *lab) read(name string) string {
	l.t.Helper()
	data, err := os.ReadFile(filepath.Join(l.dir, name))
	l.must(err)
	return string(data)
}

func (l *lab) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(l.dir, name))
	return err == nil
}

func (l *lab) git(args ...string) {
	l.t.Helper()
	out, err := execgate.RunTool(l.t.Context(), execgate.Tool{
		Argv: append([]string{"git", "-c", "user.name=t", "-c", "user.email=t@example.invalid"}, args...),
		Env:  execgate.GitEnv(l.environ), Dir: l.dir,
	})
	if err != nil || out.Code != 0 {
		l.t.Fatalf("git %v: %v %s", args, err, out.Stderr)
	}
}

// repository makes the project a Git work tree that ignores *.log and the runtime folder.
func (l *lab) repository() {
	l.t.Helper()
	l.write(".gitignore", "*.log\n.greatminds/\n")
	out, err := execgate.RunTool(l.t.Context(), execgate.Tool{
		Argv: []string{"sh", "-c", "git init -q -b main && git add -A && git -c user.name=t -c user.email=t@example.invalid commit -q -m m"},
		Env:  execgate.GitEnv(l.environ), Dir: l.dir,
	})
	if err != nil || out.Code != 0 {
		l.t.Fatalf("repository: %v %s", err, out.Stderr)
	}
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) admit(command, id string) (*runstore.Command, error) {
	l.t.Helper()
	definition, ok := l.contract.Command(command)
	if !ok {
		l.t.Fatalf("no command %s", command)
	}
	return l.service.Admit(l.t.Context(), l.store.View().Run(l.run), definition, runstore.CommandID(id))
}

// carryOut requests a command and returns its receipt at the end.
func (l *lab) carryOut(command, id string) *runstore.Command {
	l.t.Helper()
	_, err := l.admit(command, id)
	l.must(err)
	l.must(l.service.Execute(l.t.Context(), runstore.CommandID(id)))
	return l.receipt(id)
}

func (l *lab) receipt(id string) *runstore.Command {
	l.t.Helper()
	c := l.store.View().Command(runstore.CommandID(id))
	if c == nil {
		l.t.Fatalf("no receipt %s", id)
	}
	return c
}

// begin requests a command and carries it out beside the test, which gets the end of it.
func (l *lab) begin(command, id string) (end <-chan error) {
	l.t.Helper()
	_, err := l.admit(command, id)
	l.must(err)
	done := make(chan error, 1)
	go func() { done <- l.service.Execute(context.WithoutCancel(l.t.Context()), runstore.CommandID(id)) }()
	return done
}

// until waits for a state of the store.
func (l *lab) until(what string, reached func(*runstore.View) bool) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	for {
		changed := l.store.Changed()
		if reached(l.store.View()) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			l.t.Fatalf("never came: %s", what)
		}
	}
}

func (l *lab) stdout(c *runstore.Command) string {
	l.t.Helper()
	data, err := os.ReadFile(c.Output.Stdout.Path)
	l.must(err)
	return string(data)
}

func wantOutcome(t *testing.T, c *runstore.Command, status, reason string) {
	t.Helper()
	if c.Status != status || c.Reason != reason {
		t.Errorf("got %s (%s) %s, want %s (%s)", c.Status, c.Reason, c.Extra["detail"], status, reason)
	}
}

func wantCode(t *testing.T, err error, code refusal.Code) {
	t.Helper()
	if r, ok := refusal.Find(err); !ok || r.Code != code {
		t.Errorf("got %v, want a refusal with code %s", err, code)
	}
}

// pin holds a process; the answer tells whether that very one is gone.
func pin(t *testing.T, pid int) (gone func() bool) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("pid %d: %v", pid, err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return func() bool {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		return err == nil && n == 1
	}
}
