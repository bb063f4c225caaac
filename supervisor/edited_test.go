package supervisor

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"greatminds/runstore"
)

// editTask adds a line to the task's file, as somebody who edits it in place.
func (h *house) editTask(line string) {
	h.t.Helper()
	f, err := os.OpenFile(h.file(".greatminds/feature_dev/"+taskID+".yaml"), os.O_APPEND|os.O_WRONLY, 0)
	must(h.t, err)
	_, err = f.WriteString(line + "\n")
	must(h.t, err)
	must(h.t, f.Close())
}

// An agent that edits its task's file, and whose turn then ends badly, has not given itself another
// attempt: without that, each attempt would make the revision for the next one. An edit after the end
// is a person's word. E-245 E-491
func TestAnAgentThatEditsItsTaskIsNotRunAgain(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{
		"refusal":   `{"end_turn":"p","reason":"refusal"}`,
		"error":     `{"reply":"p","error":{"code":-32603,"message":"m"}}`,
		"cancelled": `{"end_turn":"p","reason":"cancelled"}`,
		"crash":     `{"exit":{"code":1}}`,
		"timeout":   `{"expect":"session/cancel","within_ms":30000},{"exit":{"code":0}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{binding: ", timeout_seconds: 2"})
			h.script(fmt.Sprintf(`%s{"file":{"op":"append","path":%q,"text":"# tried"}},`, talking, h.file(".greatminds/feature_dev/"+taskID+".yaml")) + end)
			h.task("feature_dev", taskID)
			h.start()
			first := last(h.until("the first run has ended", func(v *runstore.View) bool { return run0(v) != nil && run0(v).State.Terminal() }))
			h.left(first.ID)
			h.pass(500 * time.Millisecond)
			if n := len(h.d.store.View().Runs()); n != 1 {
				t.Fatalf("%d runs", n)
			}
			a := h.assigned(taskID)
			if a.Reason != "revision_already_attempted" || !strings.Contains(a.What, string(first.ID)+" was at work when the task was changed") ||
				a.Remedy != "greatminds run retry "+string(first.ID) {
				t.Errorf("got %+v", a)
			}
			must(t, h.end())
			h.script(fine)
			must(t, h.once())
			if n := len(h.read().Runs()); n != 1 {
				t.Fatalf("%d runs after a restart", n)
			}
			h.editTask("# told anew")
			must(t, h.once())
			if v := h.read(); len(v.Runs()) != 2 || last(v).State != runstore.Completed {
				t.Errorf("after an edit: %d runs, the last %s", len(v.Runs()), last(v).State)
			}
		})
	}
}

// The same for a daemon that died at work: what it has seen of the file by then is the run's doing.
func TestATaskThatWasChangedBeforeACrashWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seen bool
		runs int
	}{"seen": {true, 1}, "changed since": {false, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{steps: fine})
			h.task("feature_dev", taskID)
			h.open()
			d := h.d
			task, err := d.tree.ReadCurrent(taskID)
			must(t, err)
			h.editTask("# tried")
			edited, err := d.tree.ReadCurrent(taskID)
			must(t, err)
			must(t, d.store.Update(t.Context(), func(tx *runstore.Tx) error {
				seen := task.Revision
				if c.seen {
					seen = edited.Revision
				}
				tx.Observe(map[string]runstore.Revision{task.File: runstore.Revision(seen)})
				_, err := h.running(tx, task)
				return err
			}))
			h.shut()
			must(t, h.once())
			v := h.read()
			if r := run0(v); r.State != runstore.Interrupted || len(v.Runs()) != c.runs {
				t.Errorf("%d runs, the first %s (%s)", len(v.Runs()), r.State, r.Reason)
			}
		})
	}
}
