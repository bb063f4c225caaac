package dispatch_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"greatminds/internal/durable"
	"greatminds/runstore"
	"greatminds/supervisor/dispatch"
	"greatminds/tasks"
)

// A task whose past cannot be read is held, with what helps; the others are not.
func TestATaskWhosePastIsDamagedIsHeldAlone(t *testing.T) {
	l := newLab(t)
	var all []tasks.Found
	for i := range 130 {
		f := found("feature_dev", tasks.ID(fmt.Sprintf("%04d-old", i)))
		all = append(all, f)
		l.now = l.now.Add(time.Second)
		run := l.claim(f, "dev2")
		l.update(func(tx *runstore.Tx) error { return tx.Transition(run.ID, "e", runstore.Interrupted, "why", nil) })
	}
	must(t, l.store.Close(context.Background()))
	segment := filepath.Join(l.dir, "history", "runs-000001.jsonl")
	text, err := os.ReadFile(segment)
	must(t, err)
	if !bytes.Contains(text, []byte(`0007-old`)) {
		t.Fatal("the run has not left")
	}
	text = bytes.Replace(text, []byte(`"task_id":"0007-old"`), []byte(`"task_id":"0007-odd"`), 1)
	must(t, os.WriteFile(segment, text, 0o600))
	l.store, err = runstore.Open(t.Context(), runstore.Options{Dir: l.dir, Disk: durable.NewDisk(nil), Now: func() time.Time { return l.now }})
	must(t, err)
	for _, j := range dispatch.Plan(l.world, l.store.View(), all[:10]) {
		want := "revision_already_attempted"
		if j.Task.ID == "0007-old" {
			want = "history_unreadable"
		}
		if j.Reason != want {
			t.Errorf("%s is held as %s (%s), want %s", j.Task.ID, j.Reason, j.What, want)
		}
		if j.Reason == "history_unreadable" && (j.Remedy == "" || !bytes.Contains([]byte(j.What), []byte(segment))) {
			t.Errorf("got %q, %q", j.What, j.Remedy)
		}
	}
}
