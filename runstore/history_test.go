package runstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/refusal"
)

// rolling are the options of a store that rolls over after every group.
func rolling(dir string, fd *faultdisk.FaultDisk) Options {
	o := options(dir, fd)
	o.foldAlways, o.EagerHistory = true, true
	return o
}

// subjects are the ids that a view is asked about.
type subjects struct {
	runs        []RunID
	tasks       []TaskID
	results     []ResultID
	commands    []CommandID
	permissions []PermissionID
	operations  []OperationID
	requests    []string
}

// answers is everything that a view says about them, by id and by what belongs to it.
func (s *subjects) answers(v *View) string {
	var b strings.Builder
	say := func(what string, id any, got any) { fmt.Fprintf(&b, "%s %v: %s\n", what, id, encode(got)) }
	for _, id := range s.runs {
		say("run", id, v.Run(id))
		say("result of", id, v.ResultOfRun(id))
		say("commands of", id, v.CommandsOfRun(id))
		say("permissions of", id, v.PermissionsOfRun(id))
		say("reservations of", id, v.Reservations(id))
		sha, ok := v.receipt(id, "e-end")
		fmt.Fprintf(&b, "receipt %s %v\n", sha, ok)
	}
	for _, id := range s.tasks {
		say("runs of", id, v.RunsOfTask(id))
		say("operations of", id, v.OperationsOfTask(id))
	}
	for _, id := range s.results {
		say("result", id, v.Result(id))
	}
	for _, id := range s.commands {
		say("command", id, v.Command(id))
	}
	for _, id := range s.permissions {
		say("permission", id, v.Permission(id))
	}
	for _, id := range s.operations {
		say("operation", id, v.Operation(id))
	}
	for _, id := range s.requests {
		say("request", id, v.Request(id))
	}
	say("sessions", "s1", v.RunsOfSession("s1"))
	return credential.ReplaceAllString(strings.ReplaceAll(b.String(), v.ProjectID(), "PROJECT"), "")
}

// credential is what differs between two stores that were told the same.
var credential = regexp.MustCompile(`"token_sha256":"[0-9a-f]{64}",`)

// lived adds a run that has lived a whole life and ended, and everything that can belong to it.
func (s *subjects) lived(t failer, store *Store, n int) RunID {
	t.Helper()
	name := func(kind string) string { return fmt.Sprintf("%s-%03d", kind, n) }
	id, task := RunID(name("run")), TaskID(fmt.Sprintf("task-%d", n%3))
	s.runs, s.requests = append(s.runs, id), append(s.requests, name("req"))
	if !slices.Contains(s.tasks, task) {
		s.tasks = append(s.tasks, task)
	}
	s.results, s.commands = append(s.results, ResultID(name("res"))), append(s.commands, CommandID(name("cmd")))
	s.permissions = append(s.permissions, PermissionID(name("perm")))
	s.operations = append(s.operations, OperationID(name("res")), OperationID(name("resume")))
	session := fmt.Sprintf("s%d", n%2)
	update(t, store, func(tx *Tx) error {
		c := claimOf(string(task))
		c.ID, c.SessionID = id, &session
		c.BindingID, c.Account = fmt.Sprintf("b%d", n%2), fmt.Sprintf("a%d", n%2)
		claimed, holds, err := tx.Claim(c, nil)
		if err != nil || len(holds) > 0 {
			return fmt.Errorf("%v, %v", holds, err)
		}
		steps := []func() error{
			func() error { return tx.Transition(id, "e-start", Starting, "", nil) },
			func() error { return tx.Transition(id, "e-run", Running, "", nil) },
			func() error { return tx.Reserve(id, "first", Reservation{RequestedBytes: int64(n)}) },
			func() error {
				_, _, err := tx.RequestCommand(Command{ID: CommandID(name("cmd")), RunID: id, TaskID: task, CommandID: "unit"})
				return err
			},
			func() error { return tx.SetCommand(CommandID(name("cmd")), "cancelled", nil) },
			func() error {
				return tx.AskPermission(Permission{ID: PermissionID(name("perm")), RunID: id, ExpiresAt: 2e9, Options: []Option{{OptionID: "y", Kind: "allow_once"}}})
			},
			func() error { _, _, err := tx.Receive(id, envelope(claimed.Run, name("res"))); return err },
			func() error {
				return tx.PutOperation(Operation{ID: OperationID(name("res")), Kind: ResultOperation, Phase: "prepared", ResultID: ResultID(name("res")), RunID: id, TaskID: task})
			},
			func() error {
				return tx.PutOperation(Operation{ID: OperationID(name("resume")), Kind: ResumeOperation, Status: "prepared", TaskID: task})
			},
			func() error {
				return tx.PutOperation(Operation{ID: OperationID(name("resume")), Kind: ResumeOperation, Status: "applied", TaskID: task})
			},
			func() error { return tx.PutRequest(name("req"), json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))) },
			func() error { return tx.Transition(id, "e-end", Completed, "", nil) },
			func() error { return tx.SetResult(ResultID(name("res")), "applying", nil) },
			func() error { return tx.SetResult(ResultID(name("res")), "applied", nil) },
			func() error {
				return tx.PutOperation(Operation{ID: OperationID(name("res")), Kind: ResultOperation, Phase: "committed", ResultID: ResultID(name("res")), RunID: id, TaskID: task})
			},
		}
		for i, step := range steps {
			if err := step(); err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
		}
		return nil
	})
	return id
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("got\n%s\nwant\n%s", g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// historyFiles lists the names in the folder of the history.
func historyFiles(t failer, dir string) (segments, indexes []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, historyName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "runs-") {
			segments = append(segments, e.Name())
		} else {
			indexes = append(indexes, e.Name())
		}
	}
	return segments, indexes
}

// What has left answers every question as if it had stayed: in the same process, after a restart,
// and to a reader beside the daemon.
func TestFinishedWorkLeavesAndStaysAddressable(t *testing.T) {
	plain, dir := fresh(t), storeDir(t)
	o := rolling(dir, nil)
	s := openStore(t, o)
	for round := range 4 {
		here, there := &subjects{}, &subjects{}
		for i := range 10 {
			here.lived(t, plain, round*10+i)
			there.lived(t, s, round*10+i)
		}
		want := here.answers(plain.View())
		if got := there.answers(s.View()); got != want {
			t.Fatalf("round %d: %s", round, firstDifference(got, want))
		}
		if n := len(s.View().Runs()); n > 4 {
			t.Errorf("%d runs are hot", n)
		}
		closeStore(t, s)
		v, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := there.answers(v); got != want || v.HistoryFault() != nil {
			t.Fatalf("read: %v: %s", v.HistoryFault(), firstDifference(got, want))
		}
		s = openStore(t, o)
	}
	segments, indexes := historyFiles(t, dir)
	if len(segments) < 5 || len(indexes) > 8 {
		t.Errorf("got %d segments, want several, and %d indexes, want a few", len(segments), len(indexes))
	}
	closeStore(t, s)
}

// twins are a store without history and one that rolls over at every chance, told the same.
type twins struct {
	plain, rolled       *Store
	plainDir, rolledDir string
	about               subjects
	n                   int
}

func (w *twins) both(rt *rapid.T, f func(tx *Tx) error) {
	one := w.plain.Update(context.Background(), f)
	other := w.rolled.Update(context.Background(), f)
	if (one == nil) != (other == nil) || one != nil && one.Error() != other.Error() {
		rt.Fatalf("without history: %v\nwith it: %v", one, other)
	}
}

func (w *twins) reopen(rt *rapid.T) {
	if w.plain != nil {
		closeStore(rt, w.plain)
		closeStore(rt, w.rolled)
	}
	w.plain, w.rolled = openStore(rt, options(w.plainDir, nil)), openStore(rt, rolling(w.rolledDir, nil))
}

func (w *twins) live(rt *rapid.T) {
	before := w.about
	w.about.lived(rt, w.plain, w.n)
	before.lived(rt, w.rolled, w.n)
	w.n++
}

func (w *twins) run(rt *rapid.T) RunID {
	if len(w.about.runs) == 0 {
		rt.Skip("no run yet")
	}
	return rapid.SampledFrom(w.about.runs).Draw(rt, "run")
}

// compare asks both everything.
func (w *twins) compare(rt *rapid.T) {
	want := w.about.answers(w.plain.View())
	if got := w.about.answers(w.rolled.View()); got != want {
		rt.Fatal(firstDifference(got, want))
	}
}

func (w *twins) check(rt *rapid.T) {
	if err := w.rolled.View().HistoryFault(); err != nil {
		rt.Fatal(err)
	}
	if got, want := accounts(w.rolled.View()), accounts(w.plain.View()); got != want {
		rt.Fatalf("accounts rest on %s, want %s", got, want)
	}
	if got, want := listed(rt, w.rolled.View(), 2), listed(rt, w.plain.View(), 100); !slices.Equal(got, want) {
		rt.Fatalf("listed %v, want %v", got, want)
	}
	if got, want := encode(w.rolled.View().Totals()), encode(w.plain.View().Totals()); string(got) != string(want) {
		rt.Fatalf("totals %s, want %s", got, want)
	}
}

// listed walks through the pages of finished runs.
func listed(t failer, v *View, limit int) (all []RunID) {
	t.Helper()
	for after, more := RunID(""), true; more; {
		runs, next, err := v.History(after, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			all = append(all, r.ID)
		}
		after, more = next, next != ""
	}
	return all
}

func accounts(v *View) string {
	out := ""
	all := v.AccountRuns()
	for _, name := range sortedKeys(all) {
		for _, r := range all[name] {
			out += name + " " + string(r.ID) + "\n"
		}
	}
	return out
}

// No transaction and no question notices that there is a history.
func TestHistoryIsNotNoticed(t *testing.T) {
	root := filepath.Dir(storeDir(t))
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			rt.Fatal(err)
		}
		w := &twins{plainDir: filepath.Join(dir, "plain"), rolledDir: filepath.Join(dir, "rolled")}
		w.reopen(rt)
		defer func() { closeStore(rt, w.plain); closeStore(rt, w.rolled) }()
		edit := func(rt *rapid.T) {
			id := w.run(rt)
			w.both(rt, func(tx *Tx) error { return tx.EditRun(id, func(r *Run) { r.RetryAuthorized = !r.RetryAuthorized }) })
		}
		rt.Repeat(map[string]func(*rapid.T){
			"live": w.live, "live on": w.live, "edit": edit, "reopen": w.reopen, "compare": w.compare, "": w.check,
			"fail": func(rt *rapid.T) {
				c := claimOf(fmt.Sprintf("task-%d", w.n%3))
				c.ID, c.Account = RunID(fmt.Sprintf("run-%03d-failed", w.n)), fmt.Sprintf("a%d", w.n%2)
				w.n++
				ready := rapid.Bool().Draw(rt, "ready")
				w.both(rt, func(tx *Tx) error {
					if _, _, err := tx.Claim(c, nil); err != nil {
						return err
					}
					if err := tx.Transition(c.ID, "e1", Starting, "", nil); err != nil {
						return err
					}
					if ready {
						if err := tx.Transition(c.ID, "e2", Running, "", nil); err != nil {
							return err
						}
					}
					return tx.Transition(c.ID, "e3", Failed, "timeout", nil)
				})
			},
			"retry": func(rt *rapid.T) {
				id := w.run(rt)
				w.both(rt, func(tx *Tx) error {
					if tx.Run(id).Control == nil {
						return tx.EditRun(id, func(r *Run) { r.Control = &Control{ID: "c", Kind: "retry", Status: "pending"} })
					}
					return tx.SetControl(id, "c", "completed")
				})
			},
			"deliver again": func(rt *rapid.T) {
				id := w.run(rt)
				w.both(rt, func(tx *Tx) error {
					res := tx.ResultOfRun(id)
					again, fresh, err := tx.Receive(id, res.Envelope)
					if err != nil || fresh || again.ID() != res.ID() {
						return fmt.Errorf("new %v, %v", fresh, err)
					}
					return nil
				})
			},
			"the same event": func(rt *rapid.T) {
				id := w.run(rt)
				w.both(rt, func(tx *Tx) error { return tx.Transition(id, "e-end", Completed, "", nil) })
				w.both(rt, func(tx *Tx) error { return tx.Transition(id, "e-end", Failed, "", nil) })
			},
			"taken ids": func(rt *rapid.T) {
				id := w.run(rt)
				n := strings.TrimPrefix(string(id), "run-")
				w.both(rt, func(tx *Tx) error {
					c := claimOf("other")
					c.ID = id
					_, _, err := tx.Claim(c, nil)
					return err
				})
				w.both(rt, func(tx *Tx) error { return tx.AskPermission(Permission{ID: PermissionID("perm-" + n), RunID: id}) })
				w.both(rt, func(tx *Tx) error {
					_, _, err := tx.RequestCommand(Command{ID: CommandID("cmd-" + n), RunID: id, CommandID: "other"})
					return err
				})
				w.both(rt, func(tx *Tx) error { return tx.Reserve(id, "first", Reservation{RequestedBytes: 1000}) })
				w.both(rt, func(tx *Tx) error {
					return tx.PutOperation(Operation{ID: OperationID("resume-" + n), Kind: "other", TaskID: "x"})
				})
			},
			"put again": func(rt *rapid.T) {
				n := strings.TrimPrefix(string(w.run(rt)), "run-")
				w.both(rt, func(tx *Tx) error { return tx.PutRequest("req-"+n, json.RawMessage(`{"n":"again"}`)) })
				w.both(rt, func(tx *Tx) error {
					o := *tx.Operation(OperationID("res-" + n))
					o.ActionsDone = append(slices.Clone(o.ActionsDone), "again")
					return tx.PutOperation(o)
				})
				w.both(rt, func(tx *Tx) error {
					o := *tx.Operation(OperationID("resume-" + n))
					o.Resolution += "again"
					return tx.PutOperation(o)
				})
			},
			"rolled back": func(rt *rapid.T) {
				id := w.run(rt)
				w.both(rt, func(tx *Tx) error {
					if err := tx.EditRun(id, func(r *Run) { r.Workspace = "/elsewhere" }); err != nil {
						return err
					}
					return refusal.New(refusal.CodeRecordInvalid, "x", "on purpose")
				})
			},
		})
		w.compare(rt)
	})
}
