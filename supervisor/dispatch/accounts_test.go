package dispatch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/runstore"
	"greatminds/supervisor/policy"
)

type noSync struct{}

func (noSync) Before(s durable.Step) error {
	if s.Op == durable.OpSync || s.Op == durable.OpSyncDir {
		return durable.ErrSkip
	}
	return nil
}

func (noSync) After(_ durable.Step, err error) error { return err }

// E-496: what stays at hand of an account's runs gives the verdict that all of them give, however
// many have left for the history meanwhile.
func TestAnAccountIsJudgedTheSameWithoutItsHistory(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			rt.Fatal(err)
		}
		now := time.Unix(1_790_000_000, 0)
		o := runstore.Options{Dir: filepath.Join(dir, "store"), Disk: durable.NewDisk(noSync{}), Now: func() time.Time { return now }}
		store, err := runstore.Open(t.Context(), o)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() {
			if err := store.Close(context.Background()); err != nil {
				rt.Error(err)
			}
		}()
		agreed := &contract.Contract{AccountRetryInitialSeconds: 30, AccountRetryMaxSeconds: 3600, Bindings: []contract.Binding{{ID: "x", Account: "one"}, {ID: "y", Account: "two"}}}
		var all []*runstore.Run // every run that there has been, in its last state
		for i := range rapid.IntRange(0, 250).Draw(rt, "runs") {
			now = now.Add(time.Duration(rapid.IntRange(-5, 60).Draw(rt, "seconds")) * time.Second)
			id := runstore.RunID(fmt.Sprintf("run-%d", i))
			err := store.Update(t.Context(), func(tx *runstore.Tx) error {
				c := runstore.Claim{ID: id, TaskID: runstore.TaskID(fmt.Sprint("task-", i)), TaskPath: "q/t", BindingID: "x", Account: rapid.SampledFrom([]string{"one", "two"}).Draw(rt, "account")}
				if _, _, err := tx.Claim(c, nil); err != nil {
					return err
				}
				ways := [][]runstore.State{{"starting", "failed"}, {"starting", "failed"}, {"starting", "failed"}, {"starting", "running", "completed"},
					{"starting", "running", "failed"}, {"starting", "waiting_auth", "interrupted"}, {"starting"}, {"interrupted"}}
				for n, to := range rapid.SampledFrom(ways).Draw(rt, "way") {
					reason := rapid.SampledFrom([]string{"timeout", "transport_failure", "other"}).Draw(rt, "reason")
					if err := tx.Transition(id, fmt.Sprint(n), to, reason, map[string]any{"details": map[string]any{"stop_reason": nil, "prompt_started": false, "pre_prompt_activity": false}}); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				rt.Fatal(err)
			}
			all = append(all, store.View().Run(id))
			if i%60 == 59 { // a stop is when finished work leaves
				if err := store.Close(context.Background()); err != nil {
					rt.Fatal(err)
				}
				if store, err = runstore.Open(t.Context(), o); err != nil {
					rt.Fatal(err)
				}
			}
		}
		got := Accounts(World{Contract: agreed, Now: now}, store.View())
		want := map[string]policy.AccountVerdict{}
		for _, name := range []string{"one", "two"} {
			var runs []policy.AccountRun
			for _, r := range all {
				if r.Account == name {
					runs = append(runs, accountRun(World{Contract: agreed, Now: now}, store.View(), r))
				}
			}
			want[name] = policy.Account(runs, 30*time.Second, time.Hour, now)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("judged by all runs (-), and by what stays (+):\n%s", diff)
		}
	})
}
