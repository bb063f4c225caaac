package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"greatminds/internal/durable"
	"greatminds/runstore"
)

// perTransaction is how many runs one transaction makes: the filling is not what is measured.
const perTransaction = 200

// fillOurs plays n whole runs through the store, so that it folds and rolls over as it does in life.
func fillOurs(ctx context.Context, p project, n int) (err error) {
	s, err := runstore.Open(ctx, runstore.Options{Dir: p.store(), Disk: durable.NewDisk(nil), Now: time.Now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	for done := 0; done < n; done += perTransaction {
		err := s.Update(ctx, func(tx *runstore.Tx) error {
			for i := done; i < min(done+perTransaction, n); i++ {
				if err := playRun(tx, i); err != nil {
					return err
				}
			}
			tx.Observe(nil) // as a daemon does: the tasks have left their queues
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// playRun makes the records of one run that was claimed, ran one command, decided and ended.
func playRun(tx *runstore.Tx, i int) error {
	task := runstore.TaskID(fmt.Sprintf("%06d-done", i))
	revision := runstore.Revision(fmt.Sprintf("%064x", i))
	claimed, holds, err := tx.Claim(runstore.Claim{OwnerID: fmt.Sprintf("%032x", 1), TaskID: task, TaskPath: "feature_dev/" + string(task) + ".yaml",
		TaskRevision: revision, Role: "DEVELOPER", BindingID: "dev", BindingSHA256: hex64("b"), AgentID: "dev", AgentSHA256: hex64("a"),
		ConfigSHA256: hex64("c"), SchemaSHA256: hex64("d"), SchemaVersion: 5, Workspace: "/project/.worktrees/" + string(task),
		Account: "dev", Permission: "ask"}, nil)
	if err != nil || len(holds) > 0 {
		return fmt.Errorf("run %d not claimed: %v, %w", i, holds, err)
	}
	id := claimed.ID
	steps := []error{
		tx.Transition(id, "1", runstore.Starting, "", nil),
		tx.RecordProcess(id, runstore.Process{PID: 100 + i, StartTicks: 1, BootID: "00000000-0000-0000-0000-000000000000", Group: 100 + i, Session: 100 + i}),
		tx.Transition(id, "2", runstore.Running, "ready", nil),
	}
	command := runstore.Command{ID: runstore.CommandID(runstore.NewID()), RunID: id, TaskID: task, TaskRevision: revision, CommandID: "unit-tests",
		DefinitionSHA256: hex64("e"), ConfigSHA256: hex64("c"), SchemaSHA256: hex64("d"), Workspace: claimed.Workspace}
	_, _, err = tx.RequestCommand(command)
	zero := 0
	steps = append(steps, err,
		tx.SetCommand(command.ID, "starting", nil), tx.SetCommand(command.ID, "running", nil),
		tx.SetCommand(command.ID, "succeeded", func(c *runstore.Command) { c.ExitCode, c.Argv = &zero, []string{"go", "test", "./..."} }))
	result := runstore.Envelope{ResultID: runstore.ResultID(runstore.NewID()), RunID: id, TaskID: task, TaskRevision: revision, SchemaSHA256: hex64("d"),
		Decision: "handoff", Payload: json.RawMessage(`{"to_queue":"feature_test","blocks":[{"kind":"implementation","files":["a.go","b.go"],"ready_for_test":true}]}`)}
	_, _, err = tx.Receive(id, result)
	steps = append(steps, err, tx.Transition(id, "3", runstore.Completed, "end_turn", map[string]any{"details": map[string]any{"prompt_started": true, "updates": 12, "stop_reason": "end_turn"}}),
		tx.SetResult(result.ResultID, "applying", nil),
		tx.SetResult(result.ResultID, "applied", func(r *runstore.Result) {
			r.Details = &runstore.ResultDetails{Destination: "feature_test", Decision: "handoff", DestinationRevision: revision}
		}))
	return errors.Join(steps...)
}

func hex64(digit string) string {
	var b []byte
	for range 64 {
		b = append(b, digit...)
	}
	return string(b)
}

// fillOriginal writes the same history in the format of the original: our snapshot's records without
// the members that are ours, one run's worth repeated under other ids.
func fillOriginal(ctx context.Context, p project, n int) error {
	sample := project{dir: filepath.Join(filepath.Dir(p.dir), "sample")}
	if err := fillOurs(ctx, sample, 1); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(sample.store(), "state.json"))
	if err != nil {
		return err
	}
	state, err := repeated(data, n)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.store(), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.store(), "state.json"), state, 0o600)
}

// repeated returns a state of the original with n copies of the one run of data.
func repeated(data []byte, n int) ([]byte, error) {
	var state map[string]json.RawMessage
	if err := json.Unmarshal(data, &state); err != nil {
		return nil, err
	}
	for _, ours := range []string{"store", "operations", "requests"} {
		delete(state, ours)
	}
	for _, section := range []string{"runs", "results", "commands"} {
		var one map[string]map[string]any
		if err := json.Unmarshal(state[section], &one); err != nil {
			return nil, err
		}
		many := make(map[string]any, n)
		for _, record := range one {
			for i := range n {
				id := fmt.Sprintf("%032x", i+1)
				many[id] = renamed(record, i, id, section)
			}
		}
		raw, err := json.Marshal(many)
		if err != nil {
			return nil, err
		}
		state[section] = raw
	}
	return json.MarshalIndent(state, "", "  ")
}

// renamed returns a copy of a record as the i-th one.
func renamed(record map[string]any, i int, id, section string) map[string]any {
	next := map[string]any{}
	for k, v := range record {
		next[k] = v
	}
	task := fmt.Sprintf("%06d-done", i)
	if envelope, ok := next["envelope"].(map[string]any); ok {
		inner := renamed(envelope, i, id, "")
		inner["result_id"], inner["run_id"] = id, id
		next["envelope"] = inner
	}
	for key, value := range map[string]any{"id": id, "run_id": id, "task_id": task, "task_path": "feature_dev/" + task + ".yaml"} {
		if _, there := next[key]; there {
			next[key] = value
		}
	}
	if section == "runs" {
		next["sequence"] = i + 1
	}
	return next
}
