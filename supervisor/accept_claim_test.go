package supervisor

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
	"greatminds/runstore"
	"greatminds/tasks"
)

// during calls f before every durable step of the house's daemon, one at a time.
func (h *house) during(f func(s durable.Step)) {
	h.disk.Plan(faultdisk.On(func(s durable.Step) bool { f(s); return false }, faultdisk.FailAt(1, errNoSpace)))
}

// publishes tells whether a step writes the claim of a run into the store.
func publishes(s durable.Step) bool {
	return s.Op == durable.OpWrite && filepath.Base(s.Path) == "journal.jsonl" && bytes.Contains(s.Data, []byte(`"kind":"claimed"`))
}

// Both documents that a run refers to are whole and synced, folder entry included, before the
// run is published, and nobody writes them again.
//
// E-154 E-156
func TestARunIsPublishedAfterItsDocuments(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"end_turn":"p"}`})
	h.task("feature_dev", taskID)
	must(t, h.once())
	steps := h.disk.Steps()
	h.open()
	run := run0(h.d.store.View())
	h.shut()
	claim := slices.IndexFunc(steps, publishes)
	if run == nil || claim < 0 {
		t.Fatalf("got run %v, published at step %d", run, claim)
	}
	contracts := filepath.Join(h.root, ".greatminds", ".runtime", "contracts")
	for _, name := range []string{"execution-" + run.ConfigSHA256 + ".json", "schema-" + run.SchemaSHA256 + ".json"} {
		moved := slices.IndexFunc(steps, func(s durable.Step) bool {
			return s.Op == durable.OpMove && s.To == filepath.Join(contracts, name)
		})
		if moved < 0 || moved > claim {
			t.Fatalf("%s is there at step %d, the run at %d", name, moved, claim)
		}
		temporary := steps[moved].Path
		written := slices.IndexFunc(steps, func(s durable.Step) bool { return s.Op == durable.OpWrite && s.Path == temporary })
		synced := slices.IndexFunc(steps, func(s durable.Step) bool { return s.Op == durable.OpSync && s.Path == temporary })
		folder := moved + slices.IndexFunc(steps[moved:], func(s durable.Step) bool { return s.Op == durable.OpSyncDir && s.Path == contracts })
		if written < 0 || synced < written || moved < synced || folder <= moved || folder > claim {
			t.Errorf("%s: written %d, synced %d, moved %d, folder synced %d, run published %d", name, written, synced, moved, folder, claim)
		}
	}
	for i, s := range steps[claim:] {
		if strings.HasPrefix(s.Path+s.To, contracts) {
			t.Errorf("step %d, after the run: %s %s", claim+i, s.Op, s.Path)
		}
	}
}

// shut gives back a daemon that was opened and never run.
func (h *house) shut() {
	h.t.Helper()
	h.d.catalog.Close()
	must(h.t, h.d.close(context.WithoutCancel(h.t.Context())))
	h.d = nil
}

// A task that is changed between its discovery and its claim is claimed as it then is, or not at
// all.
//
// E-158
func TestATaskChangedSinceItsDiscoveryIsNotClaimedAsItWas(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(path string) error
		runs   int
	}{
		{"edited", func(path string) error { return replaceText(path, "title: Sample task", "title: Another task") }, 1},
		{"moved", func(path string) error {
			return os.Rename(path, filepath.Join(filepath.Dir(path), "../feature_test", filepath.Base(path)))
		}, 0},
		{"deleted", os.Remove, 0},
		{"spoilt", func(path string) error { return replaceText(path, "blocks: []", "blocks: [") }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{steps: talking + `{"end_turn":"p"}`})
			h.task("feature_dev", taskID)
			path := h.file(".greatminds/feature_dev/" + taskID + ".yaml")
			found := readText(t, path)
			var changed bool
			var fault error
			h.during(func(s durable.Step) {
				// The store notes what was found before it is claimed.
				if !changed && s.Op == durable.OpWrite && bytes.Contains(s.Data, []byte("feature_dev/"+taskID+".yaml")) {
					changed, fault = true, c.change(path)
				}
			})
			must(t, h.once())
			must(t, fault)
			h.open()
			runs := h.d.store.View().Runs()
			h.shut()
			if !changed || len(runs) != c.runs {
				t.Fatalf("changed %v, then %d runs, want %d", changed, len(runs), c.runs)
			}
			stale := tasks.RevisionOf("feature_dev/"+taskID+".yaml", []byte(found))
			for _, r := range runs {
				if r.TaskRevision == runstore.Revision(stale) {
					t.Errorf("run %s was claimed for the task as it was before", r.ID)
				}
			}
			prompts, err := filepath.Glob(h.file("agent/*prompt*"))
			must(t, err)
			for _, p := range prompts {
				if strings.Contains(readText(t, p), "Sample task") {
					t.Error("the agent was told of the task as it was before")
				}
			}
		})
	}
}

// replaceText changes a file at once, as an editor does.
func replaceText(path, old, new string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", bytes.Replace(data, []byte(old), []byte(new), 1), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

// The task's lock comes before the store's: a claim that has to wait for a task holds up nobody
// else's business with the store, and one that is being written holds the task.
//
// E-157
func TestAClaimTakesTheTaskBeforeTheStore(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"end_turn":"p"}`})
	h.task("feature_dev", taskID)
	lock := h.file(".greatminds/.locks/" + taskID + ".lock")
	var claims, free atomic.Int64
	h.during(func(s durable.Step) {
		if !publishes(s) {
			return
		}
		claims.Add(1)
		l, err := durable.TryLock(lock, "test\n")
		var held *durable.Held
		if !errors.As(err, &held) {
			free.Add(1)
		}
		if l != nil {
			_ = l.Unlock() // the count above is what the test is about
		}
	})
	h.open()
	mine, err := h.d.tree.Lock(t.Context(), taskID)
	must(t, err)
	h.run()
	h.until("the claim has waited", func(*runstore.View) bool { return h.said("task_locked") || h.nudge() })
	must(t, h.operator("run.pause", nil))
	must(t, h.operator("run.resume", nil))
	if n := len(h.d.store.View().Runs()); n != 0 {
		t.Fatalf("%d runs of a task that somebody else holds", n)
	}
	mine.Release()
	h.inState(runstore.Completed)
	if claims.Load() != 1 || free.Load() > 0 {
		t.Errorf("%d claims were written, %d while nobody held the task", claims.Load(), free.Load())
	}
	must(t, h.end())
}

// nudge makes the store report a change, so that a wait looks again; it is never what is waited for.
func (h *house) nudge() bool {
	must(h.t, h.operator("run.resume", nil))
	return false
}

// Many claims beside people who take tasks and then use the store, as a command does, all come
// to their end.
//
// E-157 E-160
func TestClaimsAndCommandsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: `{"handshake":{}},{"prompt":"p"},{"end_turn":"p"}`, binding: ", max_running: 3", root: "max_running: 3\n"})
	ids := []tasks.ID{"0001-a", "0002-b", "0003-c", "0004-d", "0005-e", "0006-f"}
	for _, id := range ids {
		h.task("feature_dev", string(id))
	}
	h.start()
	var busy sync.WaitGroup
	var over atomic.Bool
	for n := range 2 {
		busy.Go(func() {
			for i := n; !over.Load(); i++ {
				held, err := h.d.tree.Lock(h.limit(), ids[i%len(ids)])
				if err != nil {
					t.Error(err)
					return
				}
				err = h.d.store.Update(h.limit(), func(tx *runstore.Tx) error { tx.Emit("looked_at", "", nil); return nil })
				held.Release()
				if err != nil {
					t.Error(err)
					return
				}
				h.d.Wake()
			}
		})
	}
	h.until("every task has had its run", func(v *runstore.View) bool {
		done := 0
		for _, r := range v.Runs() {
			if r.State.Terminal() {
				done++
			}
		}
		return done == len(ids)
	})
	over.Store(true)
	busy.Wait()
	must(t, h.end())
}
