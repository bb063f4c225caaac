package supervisor

import (
	"os"
	"testing"
	"time"

	"greatminds/internal/durable"
	"greatminds/runstore"
)

// Nothing tells a daemon that a lock is free, a folder is there or a clock was set: it has to look
// again by itself, soon, and without being busy with it.

// E-157
func TestATaskWhoseFileIsLockedIsClaimedWhenItIsFree(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"end_turn":"p"}`, root: "max_running: 4\n", binding: ", max_running: 4"})
	h.task("feature_dev", taskID)
	h.task("feature_dev", "0002-other")
	lock := h.lock(taskID)
	h.start()
	h.until("the other task is not held up", func(v *runstore.View) bool { return len(v.RunsOfTask("0002-other")) == 1 })
	h.hears("reason=task_locked")
	looks := h.looks.Load()
	h.pass(2 * time.Second)
	if n := h.looks.Load() - looks; n > 200 {
		t.Errorf("the clock was read %d times in 2 s", n)
	}
	must(t, lock.Unlock())
	h.until("it is claimed", func(v *runstore.View) bool { return len(v.RunsOfTask(taskID)) == 1 })
}

func (h *house) lock(id string) *durable.FileLock {
	h.t.Helper()
	must(h.t, os.MkdirAll(h.file(".greatminds/.locks"), 0o700))
	lock, err := durable.TryLock(h.file(".greatminds/.locks/"+id+".lock"), "1\n")
	must(h.t, err)
	return lock
}

// --once does not take a task for held that somebody is at work on for a moment.
func TestOnceWaitsForAShortLock(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"end_turn":"p"}`})
	h.task("feature_dev", taskID)
	lock := h.lock(taskID)
	h.o.Once = true
	h.start()
	h.hears("reason=task_locked")
	must(t, lock.Unlock())
	<-h.ended
	if r := last(h.read()); h.err != nil || r == nil || r.State != runstore.Completed {
		t.Errorf("the daemon ended with %v, run %+v", h.err, r)
	}
}

// A task that was put off and then went away is nothing that --once has to wait for.
func TestOnceForgetsAPutOffTaskThatIsGone(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"end_turn":"p"}`})
	h.task("feature_dev", taskID)
	lock := h.lock(taskID)
	h.o.Once = true
	h.start()
	h.hears("reason=task_locked")
	must(t, os.Rename(h.file(".greatminds/feature_dev/"+taskID+".yaml"), h.file("elsewhere")))
	began := time.Now()
	<-h.ended
	if took := time.Since(began); h.err != nil || took > 10*time.Second {
		t.Errorf("the daemon ended with %v after %v", h.err, took)
	}
	must(t, lock.Unlock())
}

// E-036
func TestAWorkspaceThatAppearsIsFound(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"end_turn":"p"}`, binding: ", workspace: later"})
	h.task("feature_dev", taskID)
	h.start()
	h.hears("reason=workspace_missing")
	must(t, os.Mkdir(h.file("later"), 0o755))
	began := time.Now()
	h.inState(runstore.Completed)
	if took := time.Since(began); took > placePause+10*time.Second {
		t.Errorf("the folder was found after %v", took)
	}
}

// A task that stands twice is claimed by nobody, and costs nothing until it stands once.
func TestATaskThatStandsTwiceIsHeld(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"end_turn":"p"}`})
	h.task("feature_docs", "0003-first")
	h.start()
	h.hears("0003-first") // the first sweep is over: what comes now is reported one by one
	must(t, h.operator("run.pause", nil))
	h.task("feature_test", taskID)
	h.task("feature_dev", taskID)
	h.hears("task_id=" + taskID + " binding=dev reason=dispatch_paused")
	must(t, h.operator("run.resume", nil))
	h.hears("reason=task_duplicate")
	looks := h.looks.Load()
	h.pass(2 * time.Second)
	if n := h.looks.Load() - looks; n > 200 {
		t.Errorf("the clock was read %d times in 2 s", n)
	}
	if n := len(h.d.store.View().Runs()); n != 0 {
		t.Fatalf("%d runs of a task that stands twice", n)
	}
	must(t, os.Remove(h.file(".greatminds/feature_test/"+taskID+".yaml")))
	h.until("it is claimed", func(v *runstore.View) bool { return len(v.Runs()) == 1 })
}

// E-485
func TestAClockThatIsSetBackDelaysNoRetry(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: `{"exit":{"code":1}}`, root: "account_retry_initial_seconds: 2\naccount_retry_max_seconds: 2\n",
		binding: ", retry_initial_seconds: 2, retry_max_seconds: 2, max_startup_retries: 3"})
	h.task("feature_dev", taskID)
	h.start()
	h.inState(runstore.Failed)
	h.shift.Store(int64(-time.Hour))
	began := time.Now()
	h.until("the second attempt has failed", func(v *runstore.View) bool {
		return len(v.Runs()) == 2 && last(v).State == runstore.Failed
	})
	h.shift.Store(int64(time.Hour))
	h.until("the third has, too", func(v *runstore.View) bool { return len(v.Runs()) == 3 && last(v).State == runstore.Failed })
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("two retries took %v", took)
	}
}
