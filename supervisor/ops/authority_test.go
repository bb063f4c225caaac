package ops_test

import (
	"strings"
	"sync"
	"testing"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/control"
	"greatminds/supervisor/ops"
)

// arguments are valid arguments of every operation, so that only the caller decides.
func arguments(r run) map[string]any {
	return map[string]any{
		"run.status": nil, "run.events": ops.EventsArgs{Limit: 1}, "run.list": ops.ListArgs{Limit: 1}, "run.show": ops.RunArgs{Run: r.id},
		"run.watch": ops.WatchArgs{Run: r.id}, "run.permissions": nil,
		"run.pause": nil, "run.resume": nil, "run.cancel": ops.RunArgs{Run: r.id}, "run.retry": ops.RunArgs{Run: r.id},
		"run.repair": ops.RepairArgs{Operation: "x"}, "run.contract": nil,
		"run.submit":  ops.SubmitArgs{Text: `{"decision":"no_change","payload":{}}`},
		"run.command": ops.CommandArgs{Command: "unit"}, "run.command-status": ops.CommandStatusArgs{Request: "none"},
		"run.command-resolve": ops.ResolveArgs{Request: "none", Reason: "r"},
		"run.account-resume":  ops.AccountResumeArgs{Account: "default", Hold: "none", Reason: "r"},
		"run.permission":      ops.PermissionArgs{Request: "none"}, "run.permission-answer": ops.AnswerArgs{Request: "none", Option: "o"},
		"task.new": ops.NewTaskArgs{Stream: "product", Title: "x"}, "task.mv": ops.MoveArgs{ID: "1", To: "feature_test"},
		"task.append-block": ops.BlockArgs{ID: "1", Kind: "plan"}, "task.withdraw": ops.WithdrawArgs{ID: "1", Reason: "r"},
		"task.plan": ops.PlanArgs{ID: "1"}, "operator.check": nil,
	}
}

// E-016 E-050 E-051 E-173 E-259: who may ask is decided before anything is looked at, for every
// operation of the table.
func TestEveryOperationChecksItsCaller(t *testing.T) {
	operators := map[string]bool{"run.pause": true, "run.resume": true, "run.cancel": true, "run.retry": true, "run.repair": true,
		"run.command-resolve": true, "run.account-resume": true, "run.permission-answer": true, "task.mv": true, "task.append-block": true,
		"task.withdraw": true, "task.plan": true, "operator.check": true}
	runs := map[string]bool{"run.contract": true, "run.submit": true, "run.command": true}
	either := map[string]bool{"run.command-status": true, "task.new": true}
	w := newWorld(t)
	r := w.running()
	args := arguments(r)
	before := w.state()
	for _, op := range ops.Names() {
		t.Run(op, func(t *testing.T) {
			if _, listed := args[op]; !listed {
				t.Fatal("this test does not know the operation; say who may ask for it")
			}
			withCredential := r.call(op)
			half := control.Call{Op: op, RunID: string(r.id)}
			forged := control.Call{Op: op, RunID: string(r.id), Token: r.token[:len(r.token)-1] + "~"}
			unknownRun := control.Call{Op: op, RunID: "0000", Token: r.token}
			otherRole := r.call(op)
			otherRole.Role = "TESTER"
			switch {
			case operators[op]:
				for _, c := range []control.Call{withCredential, half, forged, {Op: op, Token: "x"}} {
					_, err := w.ask(operator, c, args[op])
					wants(t, err, refusal.CodeOperatorOnly, 3)
					wants(t, ops.Permit(c), refusal.CodeOperatorOnly, 3)
				}
				_, err := w.ask(agent, control.Call{Op: op}, args[op])
				wants(t, err, refusal.CodeOperatorOnly, 3)
				_, err = w.ask(stranger, control.Call{Op: op}, args[op])
				wants(t, err, refusal.CodeOperatorOnly, 3)
			case runs[op]:
				for _, c := range []control.Call{{Op: op}, half, forged, unknownRun, otherRole} {
					_, err := w.ask(operator, c, args[op])
					wants(t, err, refusal.CodeCredential, 3)
				}
			case either[op]:
				for _, c := range []control.Call{half, forged, unknownRun, otherRole} {
					_, err := w.ask(agent, c, args[op])
					wants(t, err, refusal.CodeCredential, 3)
				}
				_, err := w.ask(agent, control.Call{Op: op}, args[op])
				wants(t, err, refusal.CodeOperatorOnly, 3)
			default:
				if _, err := w.ask(stranger, control.Call{Op: op}, args[op]); code(err) == refusal.CodeOperatorOnly || code(err) == refusal.CodeCredential {
					t.Fatalf("a reader was refused: %v", err)
				}
			}
		})
	}
	if after := w.state(); after != before {
		t.Fatalf("a refused caller changed the store:\n%s\n%s", before, after)
	}
}

func TestAnUnknownOperationNamesItself(t *testing.T) {
	w := newWorld(t)
	_, err := w.operate("run.fly", nil)
	wants(t, err, refusal.CodeUnknownOperation, 2)
	if !strings.Contains(err.Error(), "run.fly") {
		t.Fatalf("got %v", err)
	}
}

func TestMisspeltArgumentsAreRefused(t *testing.T) {
	w := newWorld(t)
	for op, args := range map[string]string{"run.cancel": `{"run":"x"}`, "run.pause": `{"now":true}`, "run.events": `{"limit":"1"}`} {
		_, err := w.env.Serve(t.Context(), operator, control.Call{Op: op, ID: control.NewID(), Args: []byte(args)})
		wants(t, err, refusal.CodeRequestMalformed, 2)
	}
}

func TestAChangeNeedsARequestID(t *testing.T) {
	w := newWorld(t)
	_, err := w.env.Serve(t.Context(), operator, control.Call{Op: "run.pause"})
	wants(t, err, refusal.CodeRequestMalformed, 2)
	if w.env.Store.View().Paused() {
		t.Fatal("dispatch is paused all the same")
	}
}

func TestTheSameRequestIsDoneOnce(t *testing.T) {
	w := newWorld(t)
	r := w.claim(runstore.Starting, runstore.Failed)
	c := control.Call{Op: "run.retry", ID: "again"}
	first, err := w.ask(operator, c, ops.RunArgs{Run: r.id})
	must(t, err)
	before := w.state()
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			data, err := w.ask(operator, c, ops.RunArgs{Run: r.id})
			if err != nil || string(data) != string(first) {
				t.Errorf("got %s %v, want %s", data, err, first)
			}
		})
	}
	callers.Wait()
	if w.state() != before {
		t.Fatal("a repeated request changed the store")
	}
	_, err = w.ask(operator, c, ops.RunArgs{Run: "other"})
	wants(t, err, refusal.CodeRequestReused, 2)
	_, err = w.ask(operator, control.Call{Op: "run.pause", ID: "again"}, nil)
	wants(t, err, refusal.CodeRequestReused, 2)
}

func TestConcurrentCallsOfOneRequestGetOneAnswer(t *testing.T) {
	w := newWorld(t)
	c := control.Call{Op: "task.new", ID: "file-it", Role: "ARCHITECT-PLANNER"}
	answers := make(chan string, 8)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			data, err := w.ask(operator, c, ops.NewTaskArgs{Stream: "product", Title: "Two", Kind: "feature", Scope: "backend", Priority: "normal"})
			if err != nil {
				t.Error(err)
			}
			answers <- string(data)
		})
	}
	callers.Wait()
	close(answers)
	first := <-answers
	for other := range answers {
		if other != first {
			t.Errorf("got %s and %s", first, other)
		}
	}
	listed, err := w.env.Tree.List("feature_inbox")
	if err != nil || len(listed) != 1 {
		t.Fatalf("got %v %v, want one task", listed, err)
	}
}

func TestARequestWhoseEndIsUnknownIsNotRepeated(t *testing.T) {
	w := newWorld(t)
	c := control.Call{Op: "task.mv", ID: "moved", Role: "DEVELOPER"}
	_, err := w.ask(operator, c, ops.MoveArgs{ID: "9", To: "feature_test"})
	wants(t, err, refusal.CodeTaskNotFound, 1)
	// A refused one may be asked again, and gets judged again.
	_, err = w.ask(operator, c, ops.MoveArgs{ID: "9", To: "feature_test"})
	wants(t, err, refusal.CodeTaskNotFound, 1)
	// One that was begun, and whose process died, is told to be uncertain.
	stored := string(w.env.Store.View().Request("moved").Receipt)
	w.update(func(tx *runstore.Tx) error {
		return tx.PutRequest("moved", []byte(strings.Replace(stored, `"refused"`, `"begun"`, 1)))
	})
	_, err = w.ask(operator, c, ops.MoveArgs{ID: "9", To: "feature_test"})
	wants(t, err, refusal.CodeOutcomeUnknown, 4)
}
