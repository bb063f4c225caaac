package ops_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/runstore"
	"greatminds/supervisor/ops"
	"greatminds/supervisor/status"
	"greatminds/tasks"
)

const asksByConfig = `version: 1
agents: {a: {transport: acp, argv: [opencode, acp], adapter_version: "1", harness_version: "1"}}
bindings: {dev: {role: DEVELOPER, agent: a, scheduling: queue}}
`

// An agent that has asked once is known to ask, also when that run has left for the history.
func TestAnAgentThatHasAskedIsRemembered(t *testing.T) {
	for name, asked := range map[string]bool{"has asked": true, "has never asked": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var seconds atomic.Int64 // runs that end in the same moment leave in any order
			must(t, os.MkdirAll(filepath.Dir(w.env.Project.ExecutionPath()), 0o755))
			must(t, os.WriteFile(w.env.Project.ExecutionPath(), []byte(asksByConfig), 0o600))
			c, err := contract.Parse("execution.yaml", []byte(asksByConfig), w.env.Schema)
			must(t, err)
			must(t, w.env.Store.Close(context.Background()))
			w.env.Contract = c
			w.env.Store, err = runstore.Open(t.Context(), runstore.Options{Dir: w.env.Project.StoreDir(), Disk: durable.NewDisk(nil),
				Now: func() time.Time { return epoch.Add(time.Duration(seconds.Add(1)) * time.Second) }, EagerHistory: true, MinJournal: 1})
			must(t, err)
			must(t, w.env.Store.PinDocument("execution", c.SHA256(), c.Canonical()))
			first := w.claim(runstore.Starting, runstore.Running)
			if asked {
				w.update(func(tx *runstore.Tx) error {
					if err := tx.AskPermission(runstore.Permission{ID: "ask1", RunID: first.id, SessionID: "session", Tool: json.RawMessage(`{}`)}); err != nil {
						return err
					}
					return tx.ClosePermission("ask1", "callback_closed")
				})
			}
			w.move(first, runstore.Completed)
			for range 3 {
				w.move(w.claim(runstore.Starting, runstore.Running), runstore.Completed)
			}
			must(t, w.env.Store.Close(context.Background()))
			v, err := runstore.Read(w.env.Project.StoreDir())
			must(t, err)
			for _, r := range v.Runs() {
				if r.ID == first.id {
					t.Fatal("the first run has not left for the history")
				}
			}
			files := ops.Files{Project: w.env.Project, Getenv: func(string) string { return "" }, Now: w.env.Now,
				Dispatch: func(*contract.Contract, *contract.Schema, *runstore.View, []tasks.Found) status.Dispatch {
					return status.Dispatch{}
				}}
			warned := false
			for _, f := range files.Doctor(t.Context(), os.Environ(), nil).Findings {
				warned = warned || f.Code == "agent_asks_by_own_config"
			}
			if warned == asked {
				t.Errorf("warned %v", warned)
			}
		})
	}
}
