package runstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/refusal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a wall clock that tests set; each look moves it by a millisecond.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Unix(1_800_000_000, 0)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(time.Millisecond)
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// options are those of a store on fd; nil is a healthy disk that syncs nothing.
func options(dir string, fd *faultdisk.FaultDisk) Options {
	if fd == nil {
		fd = faultdisk.New()
	}
	return Options{Dir: dir, Disk: fd.Disk(), Now: newClock().now}
}

// storeDir is the folder of a store that does not exist yet, in memory where there is such a
// place: tests that try every step make thousands of files.
func storeDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "runstore-")
	if err != nil {
		return filepath.Join(t.TempDir(), "store")
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "store")
}

func openStore(t failer, o Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeStore(t failer, s *Store) {
	t.Helper()
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// fresh opens a new store that is closed with the test.
func fresh(t *testing.T) *Store {
	t.Helper()
	s := openStore(t, options(storeDir(t), nil))
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil && s.Err() == nil {
			t.Error(err)
		}
	})
	return s
}

func update(t failer, s *Store, f func(tx *Tx) error) {
	t.Helper()
	if err := s.Update(context.Background(), f); err != nil {
		t.Fatal(err)
	}
}

// claimOf is the claim that tests make of a task.
func claimOf(task string) Claim {
	return Claim{OwnerID: "owner1", TaskID: TaskID(task), TaskPath: "feature_dev/" + task + ".yaml", TaskRevision: "rev-" + Revision(task),
		Role: "DEVELOPER", BindingID: "implementation", BindingSHA256: "b", AgentID: "agent", AgentSHA256: "a",
		ConfigSHA256: "c", SchemaSHA256: "s", SchemaVersion: 1, Workspace: "/work", Account: "default", Permission: "ask"}
}

func claim(t failer, s *Store, task string) *ClaimedRun {
	t.Helper()
	var claimed *ClaimedRun
	update(t, s, func(tx *Tx) error {
		c, holds, err := tx.Claim(claimOf(task), nil)
		if err == nil && len(holds) > 0 {
			err = fmt.Errorf("held: %v", holds)
		}
		claimed = c
		return err
	})
	return claimed
}

// running claims a task and takes its run to running.
func running(t failer, s *Store, task string) *ClaimedRun {
	t.Helper()
	c := claim(t, s, task)
	for _, to := range []State{Starting, Running} {
		move(t, s, c.ID, to)
	}
	return c
}

func move(t failer, s *Store, run RunID, to State) {
	t.Helper()
	update(t, s, func(tx *Tx) error { return tx.Transition(run, NewID(), to, "", nil) })
}

func envelope(r *Run, id string) Envelope {
	return Envelope{ResultID: ResultID(id), RunID: r.ID, TaskID: r.TaskID, TaskRevision: r.TaskRevision,
		SchemaSHA256: r.SchemaSHA256, Decision: "handoff", Payload: []byte(`{"to_queue":"feature_test","blocks":[]}`)}
}

func receive(t failer, s *Store, r *Run, id string) *Result {
	t.Helper()
	var res *Result
	update(t, s, func(tx *Tx) (err error) {
		res, _, err = tx.Receive(r.ID, envelope(r, id))
		return err
	})
	return res
}

func kinds(events []*Event) string {
	var all []string
	for _, e := range events {
		all = append(all, e.Kind)
	}
	return strings.Join(all, " ")
}

// refused checks that err is a refusal with this code, a value and a remedy.
func refused(t failer, err error, code refusal.Code) {
	t.Helper()
	r, ok := refusal.Find(err)
	if !ok || r.Code != code {
		t.Fatalf("got %v, want a refusal with code %s", err, code)
	}
	if r.What == "" || r.Remedy == "" {
		t.Fatalf("the refusal %#v does not say what, or what to do", r)
	}
}

func readText(t failer, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "(none)"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func writeText(t failer, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// everything is the state as the snapshot would hold it, to compare two of them.
func everything(v *View) string { return string(v.h.sections(true).join()) }

func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// killed opens a store in dir, does the work and ends it as SIGKILL would: what is on the disk
// then stays.
func killed(t failer, dir string, work func(s *Store)) {
	t.Helper()
	fd := faultdisk.New()
	s := openStore(t, options(dir, fd))
	work(s)
	fd.Crash()
	if err := s.Close(context.Background()); err == nil {
		t.Fatal("a killed store closed cleanly")
	}
}
