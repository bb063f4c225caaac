package tasks_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/refusal"
	"greatminds/tasks"
)

// story is a run of operator commands; each is done unless an earlier run has done it.
type story struct {
	name string
	do   func(l *desk) error
}

// done reports whether a task stands in a queue.
func (l *desk) in(queue, id string) bool {
	ref, err := l.tree.Find(id)
	return err == nil && string(ref.Queue) == queue
}

// has reports how many blocks of a kind a task holds.
func (l *desk) has(id string, kind contract.BlockKind) bool {
	task, err := l.tree.ReadCurrent(tasks.ID(id))
	return err == nil && task.Latest(kind) != nil
}

func stories() []story {
	planner := as("ARCHITECT-PLANNER")
	return []story{
		{"new", func(l *desk) error {
			if l.in("feature_inbox", "0001-one") {
				return nil
			}
			_, err := l.tree.New(bg, planner, tasks.NewTask{Stream: "product", Title: "One", Kind: "feature", Scope: "backend", Seq: "0001"})
			return err
		}},
		{"plan", func(l *desk) error {
			if l.in("feature_dev", "0001-one") {
				return nil
			}
			if l.has("0001-one", "plan") {
				_, err := l.tree.Mv(bg, planner, "1", "feature_dev", "")
				return err
			}
			_, err := l.tree.Plan(bg, planner, tasks.PlanTask{ID: "1", Scope: "backend", AssigneeRole: "DEVELOPER", BaseCommit: "a", PlanKind: "full", Mode: "A", Body: "x"})
			return err
		}},
		{"append", func(l *desk) error {
			if l.has("0001-one", "implementation") {
				return nil
			}
			_, err := l.tree.AppendBlock(bg, as("DEVELOPER"), tasks.NewBlock{ID: "1", Kind: "implementation", Fields: tasks.Fields{{Key: "base_commit", Value: "a"}, {Key: "files", Value: ""}, {Key: "ready_for_test", Value: "true"}}})
			return err
		}},
		{"mv", func(l *desk) error {
			if l.in("feature_test", "0001-one") {
				return nil
			}
			_, err := l.tree.Mv(bg, as("DEVELOPER"), "1", "feature_test", "")
			return err
		}},
		{"withdraw", func(l *desk) error {
			if l.in("feature_blocked", "0001-one") {
				return nil
			}
			_, err := l.tree.Withdraw(bg, planner, "1", "done with it")
			return err
		}},
	}
}

// order is how far the stories have come; a story is skipped where a later one has begun.
func play(l *desk, from int) (int, error) {
	all := stories()
	for i := from; i < len(all); i++ {
		if err := all[i].do(l); err != nil {
			return i, fmt.Errorf("%s: %w", all[i].name, err)
		}
	}
	return len(all), nil
}

// sound checks what holds at any time once interrupted changes are finished: the task stands in
// one queue at most, its file is valid, no intent is left, and the journal tells exactly what
// happened to it, in order and each thing once.
func sound(t *testing.T, l *desk) {
	t.Helper()
	found, err := l.tree.Discover()
	if err != nil {
		t.Fatal(err)
	}
	lines, err := l.tree.Journal()
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 1 {
		t.Fatalf("the task stands in %d places", len(found))
	}
	if intents, err := os.ReadDir(filepath.Join(l.project.Runtime, "intent")); err == nil {
		for _, i := range intents {
			if !strings.HasPrefix(i.Name(), ".") {
				t.Errorf("the intent %s is left", i.Name())
			}
		}
	}
	queue, blocks := "_new", 0
	intents := map[string]bool{}
	for _, e := range lines {
		if e.From != queue || intents[e.IntentID] {
			t.Errorf("the journal goes %s → %s where the task was in %s (intent %s)", e.From, e.To, queue, e.IntentID)
		}
		if strings.HasPrefix(e.Reason, "append-block ") {
			blocks++
		}
		queue, intents[e.IntentID] = e.To, true
	}
	switch {
	case len(found) == 0 && len(lines) > 0:
		t.Errorf("the journal knows a task that is nowhere")
	case len(found) == 1 && (found[0].Problem != nil || len(found[0].Faults) > 0):
		t.Errorf("the task is broken: %v %v", found[0].Problem, found[0].Faults)
	case len(found) == 1 && (string(found[0].Queue) != queue || len(found[0].Task.Blocks) != blocks):
		t.Errorf("the task is in %s with %d blocks, the journal says %s with %d", found[0].Queue, len(found[0].Task.Blocks), queue, blocks)
	}
}

// E-165: every command stopped at every one of its steps, or failed there by a full or broken
// disk, leaves the task as before or as after once the next start has finished what was begun,
// and the work goes on from there to the same end.
func TestCommandsAreWholeAtEveryStep(t *testing.T) {
	kinds := map[string]func(n int) faultdisk.Fault{
		"crash": faultdisk.CrashAt,
		"full":  func(n int) faultdisk.Fault { return faultdisk.FailAt(n, syscall.ENOSPC) },
		// Any other step torn is a step not made.
		"torn": func(n int) faultdisk.Fault {
			return faultdisk.On(func(s durable.Step) bool { return s.Op == durable.OpWrite }, faultdisk.TearAt(n, 7))
		},
	}
	for name, fault := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				fd := faultdisk.New(fault(n))
				root := t.TempDir()
				l := deskOn(t, root, fd.Disk())
				at, err := play(l, 0)
				if err != nil && name == "full" && !fd.Crashed() {
					// The process lives on: the same tree must recover by itself.
					if _, err = play(l, at); err != nil {
						t.Fatalf("step %d: after a full disk: %v", n, err)
					}
					at = len(stories())
				}
				again := deskOn(t, root, durable.NewDisk(nil))
				if err := again.tree.FinishChanges(bg); err != nil {
					t.Fatalf("step %d: %v", n, err)
				}
				sound(t, again)
				if _, err := play(again, at); err != nil {
					t.Fatalf("step %d: going on after %v: %v", n, err, err)
				}
				sound(t, again)
				if !again.in("feature_blocked", "0001-one") {
					t.Fatalf("step %d: the task did not reach its end", n)
				}
				if t.Failed() {
					t.Fatalf("at step %d", n)
				}
				if !fd.Reached() {
					if n < 25 {
						t.Errorf("only %d steps were tried", n)
					}
					return
				}
			}
		})
	}
}

// A change that others made meanwhile is not undone by finishing an old one.
func TestAnIntentThatFitsNothingIsLeftForAPerson(t *testing.T) {
	fd := faultdisk.New(faultdisk.On(func(s durable.Step) bool {
		return strings.HasSuffix(s.Path, "journal.ndjson") && s.Op == durable.OpCreate
	}, faultdisk.CrashAt(1)))
	root := t.TempDir()
	l := deskOn(t, root, fd.Disk())
	if _, err := l.tree.New(bg, as("TESTER"), tasks.NewTask{Stream: "product", Title: "One", Kind: "feature", Scope: "backend"}); err == nil || !fd.Crashed() {
		t.Fatalf("got %v, want a crash", err)
	}
	again := deskOn(t, root, durable.NewDisk(nil))
	edited := again.read("feature_inbox", "0001-one.yaml") + "# human note\n"
	again.put("feature_inbox", "0001-one.yaml", edited)
	if err := again.tree.FinishChanges(bg); err != nil {
		t.Fatal(err)
	}
	if got := again.read("feature_inbox", "0001-one.yaml"); got != edited {
		t.Errorf("the edited file became %q", got)
	}
	if names, err := os.ReadDir(filepath.Join(again.project.Runtime, "intent")); err != nil || len(names) != 1 {
		t.Errorf("got the intents %v, %v, want the one that fits nothing", names, err)
	}
}

// Intents of other tools and broken ones are nobody's business here.
func TestForeignIntentsAreLeftAlone(t *testing.T) {
	l := newDesk(t)
	ref := l.planned("feature", "backend", "DEVELOPER")
	if err := os.MkdirAll(filepath.Join(l.project.Runtime, "intent"), 0o755); err != nil {
		t.Fatal(err)
	}
	foreign := fmt.Sprintf(`{"task_id":%q,"from":"coordination/feature_plan/","to":"coordination/feature_dev/","role":"X","intent_id":"1","intent_at":"t","reason":""}`, ref.ID)
	l.put("intent", string(ref.ID)+"-X-1.json", foreign)
	l.put("intent", "broken.json", "{")
	if err := syscall.Mkfifo(filepath.Join(l.project.Runtime, "intent", "pipe.json"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := l.tree.FinishChanges(bg); err != nil {
		t.Fatal(err)
	}
	if got := l.read("intent", string(ref.ID)+"-X-1.json"); got != foreign {
		t.Errorf("the foreign intent became %q", got)
	}
}

// A corrupt journal stops a command before it has changed anything.
func TestACorruptJournalStopsCommandsFirst(t *testing.T) {
	l := newDesk(t)
	l.newTask("One", "feature", "backend")
	l.put("", "journal.ndjson", "nonsense\n"+l.journal())
	before := l.everything()
	_, err := l.tree.AppendBlock(bg, as("ARCHITECT-PLANNER"), tasks.NewBlock{ID: "1", Kind: "triage", Fields: tasks.Fields{{Key: "notes", Value: "x"}}})
	refused(t, err, refusal.CodeJournalCorrupt)
	_, err = l.tree.Mv(bg, as("ARCHITECT-PLANNER"), "1", "archive", "")
	refused(t, err, refusal.CodeJournalCorrupt)
	_, err = l.tree.New(bg, as("ARCHITECT-PLANNER"), tasks.NewTask{Stream: "product", Title: "Two", Kind: "feature", Scope: "backend"})
	refused(t, err, refusal.CodeJournalCorrupt)
	for name, text := range l.everything() {
		if before[name] != text {
			t.Errorf("%s became %q", name, text)
		}
	}
}

// A command that a full disk stops leaves no intent behind.
func TestAFailedCommandLeavesNoIntent(t *testing.T) {
	onTask := func(s durable.Step) bool {
		return s.Op == durable.OpWrite && strings.Contains(s.Path, "/feature_inbox/")
	}
	fd := faultdisk.New(faultdisk.On(onTask, faultdisk.FailAt(1, syscall.ENOSPC)))
	l := deskOn(t, t.TempDir(), fd.Disk())
	_, err := l.tree.New(bg, as("TESTER"), tasks.NewTask{Stream: "product", Title: "One", Kind: "feature", Scope: "backend"})
	refused(t, err, refusal.CodeTaskStorage)
	if names, err := os.ReadDir(filepath.Join(l.project.Runtime, "intent")); err != nil || len(names) != 0 || !fd.Reached() {
		t.Errorf("got the intents %v, %v", names, err)
	}
}

// A change whose line is in the journal is over, whatever has become of the task since.
func TestAJournaledIntentIsOver(t *testing.T) {
	onIntent := func(s durable.Step) bool { return s.Op == durable.OpUnlink && strings.Contains(s.Path, "/intent/") }
	fd := faultdisk.New(faultdisk.On(onIntent, faultdisk.CrashAt(1)))
	root := t.TempDir()
	l := deskOn(t, root, fd.Disk())
	if _, err := l.tree.New(bg, as("TESTER"), tasks.NewTask{Stream: "product", Title: "One", Kind: "feature", Scope: "backend"}); err == nil || !fd.Crashed() {
		t.Fatalf("got %v, want a crash", err)
	}
	again := deskOn(t, root, durable.NewDisk(nil))
	again.put("feature_inbox", "0001-one.yaml", again.read("feature_inbox", "0001-one.yaml")+"# human note\n")
	if err := again.tree.FinishChanges(bg); err != nil {
		t.Fatal(err)
	}
	sound(t, again)
	if lines, err := again.tree.Journal(); err != nil || len(lines) != 1 {
		t.Errorf("got %d lines, %v", len(lines), err)
	}
}
