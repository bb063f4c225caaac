package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/dispatch"
	"greatminds/supervisor/policy"
	"greatminds/tasks"
)

// E-484 E-501 E-517
func TestRetryBudgetsAreWholeNumbersWithinTheirBounds(t *testing.T) {
	const binding, root = "bindings:\n  dev: {role: DEVELOPER, agent: a, ", "version: 1\n"
	for _, c := range []struct {
		key      string
		global   bool
		good     []string
		bad      []string
		standard int
	}{
		{"max_startup_retries", false, []string{"0", "20"}, []string{"-1", "21", "true", "1.5"}, 2},
		{"retry_initial_seconds", false, []string{"1"}, []string{"0", "-1", "1.5"}, 5},
		{"retry_max_seconds", false, []string{"5"}, []string{"0", "true"}, 60},
		{"max_no_progress_turns", false, []string{"1", "20"}, []string{"0", "21"}, 1},
		{"account_retry_initial_seconds", true, []string{"1"}, []string{"0", "1.5"}, 5},
		{"account_retry_max_seconds", true, []string{"5"}, []string{"0", "true"}, 60},
	} {
		text := func(value string) string {
			with := project
			if value == "" {
				return with
			}
			if c.global {
				return strings.Replace(with, root, root+c.key+": "+value+"\n", 1)
			}
			return strings.Replace(with, binding, binding+c.key+": "+value+", ", 1)
		}
		for _, value := range c.good {
			if _, err := contract.Parse("x", []byte(text(value)), contract.EmbeddedSchema()); err != nil {
				t.Errorf("%s: %s is refused: %v", c.key, value, err)
			}
		}
		for _, value := range c.bad {
			_, err := contract.Parse("x", []byte(text(value)), contract.EmbeddedSchema())
			if r, ok := refusal.Find(err); !ok || r.Status() != refusal.Invalid || !strings.Contains(r.Error(), c.key) {
				t.Errorf("%s: %s: got %v", c.key, value, err)
			}
		}
		k, err := contract.Parse("x", []byte(text("")), contract.EmbeddedSchema())
		must(t, err)
		b, _ := k.Binding("dev")
		got := map[string]int{"max_startup_retries": b.MaxStartupRetries, "retry_initial_seconds": b.RetryInitialSeconds,
			"retry_max_seconds": b.RetryMaxSeconds, "max_no_progress_turns": b.MaxNoProgressTurns,
			"account_retry_initial_seconds": k.AccountRetryInitialSeconds, "account_retry_max_seconds": k.AccountRetryMaxSeconds}[c.key]
		if got != c.standard {
			t.Errorf("%s is %d by default, want %d", c.key, got, c.standard)
		}
	}
}

// failStart records a run that failed before any effect was possible.
func (l *lab) failStart(f tasks.Found, binding string) *runstore.ClaimedRun {
	run := l.claim(f, binding)
	no := false
	l.to(run.ID, runstore.Starting)
	l.update(func(tx *runstore.Tx) error {
		return tx.Transition(run.ID, runstore.NewID(), runstore.Failed, "transport_failure",
			map[string]any{"details": runstore.Outcome{PromptStarted: &no, PrePromptActivity: &no}})
	})
	return run
}

// turn records a run whose turn ended without a decision.
func (l *lab) turn(f tasks.Found, binding string) *runstore.ClaimedRun {
	run := l.claim(f, binding)
	l.to(run.ID, runstore.Starting, runstore.Running, runstore.Completed)
	return run
}

// later moves the clock.
func (l *lab) later(span time.Duration) {
	l.now = l.now.Add(span)
	l.world.Now = l.now
}

// restart closes the store and opens it again, as a daemon's restart does.
func (l *lab) restart() {
	l.t.Helper()
	dir := l.dir
	must(l.t, l.store.Close(context.Background()))
	store, err := runstore.Open(l.t.Context(), runstore.Options{Dir: dir, Disk: durable.NewDisk(nil), Now: func() time.Time { return l.now }})
	must(l.t, err)
	l.store = store
}

func (l *lab) judge(f tasks.Found, binding string) dispatch.Judgement {
	l.t.Helper()
	b, ok := l.world.Contract.Binding(binding)
	if !ok {
		l.t.Fatalf("no binding %s", binding)
	}
	return dispatch.Judge(l.world, l.store.View(), dispatch.Candidate{Task: f.Ref, Binding: b})
}

// E-494 E-506 E-522
func TestARestartChangesNoVerdict(t *testing.T) {
	l := newLab(t)
	one, two := found("feature_dev", "0001-one"), found("feature_dev", "0002-two")
	l.failStart(one, "dev2")
	l.later(time.Second)
	l.turn(two, "dev")
	before := []dispatch.Judgement{l.judge(one, "dev2"), l.judge(two, "dev")}
	account := dispatch.Accounts(l.world, l.store.View())["default"]
	l.restart()
	for i, after := range []dispatch.Judgement{l.judge(one, "dev2"), l.judge(two, "dev")} {
		if after.Reason != before[i].Reason || !after.NextAt.Equal(before[i].NextAt) || after.Repeat != before[i].Repeat {
			t.Errorf("got %+v, before the restart %+v", after, before[i])
		}
	}
	if again := dispatch.Accounts(l.world, l.store.View())["default"]; again != account || again.Failures != 1 {
		t.Errorf("account: got %+v, before %+v", again, account)
	}
	if before[0].Reason != "retry_backoff" || before[1].Reason != "no_progress_limit" {
		t.Errorf("got %s and %s", before[0].Reason, before[1].Reason)
	}
}

// E-503 E-504 E-505 E-513 E-515
func TestAFailureDelaysItsWholeAccountAndNoOther(t *testing.T) {
	l := newLab(t)
	one, two := found("feature_dev", "0001-one"), found("feature_dev", "0002-two")
	test := found("feature_test", "0003-three")
	failed := l.failStart(one, "dev2")
	expect(t, "after a failure of account default", l.reasons(one, two, test), map[string]string{
		"0001-one/dev": "revision_already_attempted", "0001-one/dev2": "retry_backoff",
		"0002-two/dev": "ready", "0002-two/dev2": "account_backoff", "0003-three/tester": "account_backoff"})

	// An operator's retry waits like everything else, no longer than without it, and a claim that
	// is forced is refused.
	l.later(time.Second)
	l.update(func(tx *runstore.Tx) error {
		return tx.EditRun(failed.ID, func(r *runstore.Run) { r.RetryAuthorized = true })
	})
	if j := l.judge(one, "dev2"); j.Reason != "account_backoff" || !j.NextAt.Equal(l.now.Add(4*time.Second)) {
		t.Errorf("got %s until %v", j.Reason, j.NextAt)
	}
	b, _ := l.world.Contract.Binding("dev2")
	l.update(func(tx *runstore.Tx) error {
		_, holds, err := tx.Claim(runstore.Claim{OwnerID: "o", TaskID: "0002-two", TaskPath: two.File, TaskRevision: runstore.Revision(two.Revision),
			BindingID: "dev2", ConfigSHA256: l.world.ContractSHA256, SchemaSHA256: l.world.Schema.SHA256, Account: "default", AgentID: "a"},
			func(v *runstore.View) []runstore.Hold {
				h, _ := dispatch.Judge(l.world, v, dispatch.Candidate{Task: two.Ref, Binding: b}).Hold()
				return []runstore.Hold{h}
			})
		if len(holds) != 1 || holds[0].Code != "account_backoff" || holds[0].NextAt == nil {
			t.Errorf("got holds %+v", holds)
		}
		return err
	})

	// The task's own budget ends its repeats, whatever the account allows by then.
	l.later(4 * time.Second)
	l.failStart(one, "dev2")
	l.later(time.Minute)
	l.failStart(one, "dev2")
	l.later(time.Hour)
	expect(t, "after three failures", l.reasons(one, two), map[string]string{
		"0001-one/dev": "revision_already_attempted", "0001-one/dev2": "startup_retry_limit", "0002-two/dev": "ready", "0002-two/dev2": "ready"})
}

// E-498 E-529
func TestARepeatWaitsForCapacityToo(t *testing.T) {
	l := newLab(t)
	l.contract(strings.Replace(project, "dev2: {", "dev2: {max_no_progress_turns: 3, ", 1))
	one, two, three := found("feature_dev", "0001-one"), found("feature_dev", "0002-two"), found("feature_dev", "0003-three")
	l.failStart(one, "dev2")
	l.later(time.Minute)
	l.turn(two, "dev2")
	l.later(time.Minute)
	l.claim(three, "dev2")
	for _, f := range []tasks.Found{one, two} {
		j := l.judge(f, "dev2")
		if j.Reason != "binding_capacity" || j.Repeat.Dispatch == policy.None {
			t.Errorf("%s: got %s, repeat %+v", f.ID, j.Reason, j.Repeat)
		}
	}
	l.update(func(tx *runstore.Tx) error { tx.SetPaused(true); return nil })
	if j := l.judge(one, "dev2"); j.Reason != "dispatch_paused" {
		t.Errorf("got %s while paused", j.Reason)
	}
}

// E-493 E-526
func TestAChangedContractAuthorizesNoRepeat(t *testing.T) {
	l := newLab(t)
	more := strings.Replace(project, "dev2: {", "dev2: {max_no_progress_turns: 3, ", 1)
	l.contract(more)
	one, two := found("feature_dev", "0001-one"), found("feature_dev", "0002-two")
	l.failStart(one, "dev2")
	l.later(time.Minute)
	l.turn(two, "dev2")
	l.later(time.Minute)
	for _, f := range []tasks.Found{one, two} {
		if j := l.judge(f, "dev2"); j.Reason != dispatch.Ready {
			t.Fatalf("%s: got %s under the same contract", f.ID, j.Reason)
		}
	}
	l.contract(strings.Replace(more, "max_running: 2", "max_running: 3", 1))
	for _, f := range []tasks.Found{one, two} {
		if j := l.judge(f, "dev2"); j.Reason != "revision_already_attempted" || j.Remedy == "" {
			t.Errorf("%s: got %s under another contract", f.ID, j.Reason)
		}
	}
	l.contract(more)
	run := last(l.store.View(), "0002-two")
	l.update(func(tx *runstore.Tx) error {
		return tx.EditRun(run.ID, func(r *runstore.Run) { r.RetryAuthorized = false })
	})
	if j := l.judge(two, "dev2"); j.Reason != dispatch.Ready {
		t.Errorf("got %s under the old contract again", j.Reason)
	}
}

// E-526
func TestAnUnsettledCommandHoldsAContinuation(t *testing.T) {
	l := newLab(t)
	l.contract(strings.Replace(project, "dev2: {", "dev2: {max_no_progress_turns: 3, ", 1))
	one := found("feature_dev", "0001-one")
	run := l.claim(one, "dev2")
	l.to(run.ID, runstore.Starting, runstore.Running)
	l.update(func(tx *runstore.Tx) error {
		_, _, err := tx.RequestCommand(runstore.Command{ID: "c", RunID: run.ID, TaskID: run.TaskID, TaskRevision: run.TaskRevision,
			CommandID: "tests", ConfigSHA256: run.ConfigSHA256, SchemaSHA256: run.SchemaSHA256, Workspace: "/w"})
		return err
	})
	for _, s := range []string{"starting", "running", "needs_recovery"} {
		l.update(func(tx *runstore.Tx) error { return tx.SetCommand("c", s, nil) })
	}
	l.to(run.ID, runstore.Completed)
	l.later(time.Minute)
	if j := l.judge(one, "dev2"); j.Reason != "command_unresolved" || !strings.Contains(j.Remedy, "command-resolve") {
		t.Errorf("got %s, remedy %q", j.Reason, j.Remedy)
	}
}

// E-531
func TestRacingContinuationsNeverExceedTheBudget(t *testing.T) {
	l := newLab(t)
	l.contract(strings.Replace(project, "dev2: {", "dev2: {max_no_progress_turns: 2, max_running: 2, ", 1))
	one := found("feature_dev", "0001-one")
	l.turn(one, "dev2")
	l.later(time.Minute)
	b, _ := l.world.Contract.Binding("dev2")
	results := make(chan bool, 4)
	for range cap(results) {
		go func() {
			admitted := false
			err := l.store.Update(context.Background(), func(tx *runstore.Tx) error {
				run, _, err := tx.Claim(runstore.Claim{OwnerID: "o", TaskID: "0001-one", TaskPath: one.File, TaskRevision: runstore.Revision(one.Revision),
					BindingID: "dev2", BindingSHA256: b.SHA256(), ConfigSHA256: l.world.ContractSHA256, SchemaSHA256: l.world.Schema.SHA256,
					Account: "default", AgentID: "a"}, func(v *runstore.View) []runstore.Hold {
					if h, held := dispatch.Judge(l.world, v, dispatch.Candidate{Task: one.Ref, Binding: b}).Hold(); held {
						return []runstore.Hold{h}
					}
					return nil
				})
				admitted = run != nil
				return err
			})
			results <- admitted && err == nil
		}()
	}
	n := 0
	for range cap(results) {
		if <-results {
			n++
		}
	}
	if n != 1 {
		t.Fatalf("%d of %d claims were admitted", n, cap(results))
	}
	l.to(last(l.store.View(), "0001-one").ID, runstore.Starting, runstore.Running, runstore.Completed)
	l.later(time.Hour)
	if j := l.judge(one, "dev2"); j.Reason != "no_progress_limit" || j.Repeat.Turns != 2 {
		t.Errorf("got %s after %d turns", j.Reason, j.Repeat.Turns)
	}
}

// E-534
func TestAnEditOfAnExhaustedStageNeedsTheOperator(t *testing.T) {
	l := newLab(t)
	one := found("feature_dev", "0001-one")
	run := l.turn(one, "dev")
	edited := one
	edited.Revision = "edited"
	if j := l.judge(edited, "dev"); j.Reason != "no_progress_limit" || !strings.Contains(j.Remedy, string(run.ID)) {
		t.Errorf("got %s, remedy %q", j.Reason, j.Remedy)
	}
	moved := found("feature_test", "0001-one")
	if j := l.judge(moved, "tester"); j.Reason != dispatch.Ready {
		t.Errorf("in its next stage the task is held as %s", j.Reason)
	}
	l.update(func(tx *runstore.Tx) error {
		return tx.EditRun(run.ID, func(r *runstore.Run) { r.RetryAuthorized = true })
	})
	if j := l.judge(edited, "dev"); j.Reason != dispatch.Ready {
		t.Errorf("after the retry it is held as %s", j.Reason)
	}
}

func last(v *runstore.View, task runstore.TaskID) *runstore.Run {
	runs := v.RunsOfTask(task)
	return runs[len(runs)-1]
}
