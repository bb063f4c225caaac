package ops_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/control"
	"greatminds/supervisor/ops"
	"greatminds/supervisor/status"
	"greatminds/tasks"
)

// files reads a world's project while its store is held open.
func (w *world) files() ops.Files {
	must(w.t, os.MkdirAll(filepath.Dir(w.env.Project.ExecutionPath()), 0o755))
	must(w.t, os.WriteFile(w.env.Project.ExecutionPath(), []byte(agreed), 0o600))
	return ops.Files{Project: w.env.Project, Getenv: func(string) string { return "" }, Now: func() time.Time { return epoch },
		Dispatch: func(*contract.Contract, *contract.Schema, *runstore.View, []tasks.Found) status.Dispatch {
			return status.Dispatch{Assignments: []status.Assignment{{TaskID: "0001-one", Reason: "ready"}}}
		}}
}

// E-177: without a daemon's help an operator reads the last durable state, every receipt included.
func TestFilesAnswerWhatChangesNothing(t *testing.T) {
	w := newWorld(t)
	r := w.running()
	question := w.question(r)
	w.command(r, "one", "starting", "running")
	folder := filepath.Join(w.env.Project.StoreDir(), "command-output", "one")
	must(t, os.MkdirAll(folder, 0o700))
	streams := map[string]runstore.Stream{}
	for name, text := range map[string]string{"stdout": "said", "stderr": ""} {
		path := filepath.Join(folder, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		sum := sha256.Sum256([]byte(text))
		streams[name] = runstore.Stream{Path: path, SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(text)), StoredBytes: int64(len(text))}
	}
	w.update(func(tx *runstore.Tx) error {
		return tx.SetCommand("one", "succeeded", func(c *runstore.Command) {
			c.Output = &runstore.Output{Stdout: streams["stdout"], Stderr: streams["stderr"]}
		})
	})
	f := w.files()
	for op, args := range map[string]any{
		"run.status": nil, "run.events": ops.EventsArgs{Limit: 100, Wait: 600}, "run.list": ops.ListArgs{Limit: 10}, "run.show": ops.RunArgs{Run: r.id},
		"run.permission": ops.PermissionArgs{Request: question}, "run.command-status": ops.CommandStatusArgs{Request: "one", OutputLimit: 2},
	} {
		t.Run(op, func(t *testing.T) {
			var c = control.Call{Op: op}
			if args != nil {
				data, err := json.Marshal(args)
				must(t, err)
				c.Args = data
			}
			value, err := f.Serve(t.Context(), c)
			must(t, err)
			got, err := json.Marshal(value)
			must(t, err)
			want, err := w.operate(op, args)
			must(t, err)
			switch op {
			case "run.status":
				if field[[]status.Assignment](t, got, "assignments")[0].Reason != "ready" || field[map[string]any](t, got, "runs")[string(r.id)] == nil {
					t.Fatalf("got %s", got)
				}
			case "run.command-status":
				preview := field[map[string]map[string]any](t, got, "output_preview")
				if preview["stdout"]["text"] != "sa" || preview["stdout"]["truncated"] != true {
					t.Fatalf("got %s", got)
				}
			default:
				if string(got) != string(want) {
					t.Fatalf("got %s, want what the daemon says: %s", got, want)
				}
			}
		})
	}
}

func TestFilesChangeNothingAndServeNoRun(t *testing.T) {
	w := newWorld(t)
	r := w.running()
	f := w.files()
	for _, c := range []control.Call{{Op: "run.pause", ID: "x"}, {Op: "task.mv", ID: "x"}, {Op: "nonsense"}, r.call("run.contract"),
		r.call("run.submit"), r.call("run.command-status")} {
		if _, err := f.Serve(t.Context(), c); code(err) != refusal.CodeUnknownOperation {
			t.Errorf("%s: got %v, want a refusal", c.Op, err)
		}
	}
}

func TestFilesOfANewProjectAreEmptyNotMissing(t *testing.T) {
	w := newWorld(t)
	f := w.files()
	f.Project.Runtime = filepath.Join(t.TempDir(), ".greatminds")
	for _, q := range w.env.Schema.TaskQueues() {
		must(t, os.MkdirAll(f.Project.QueueDir(q), 0o755))
	}
	value, err := f.Serve(t.Context(), control.Call{Op: "run.status"})
	must(t, err)
	got, err := json.Marshal(value)
	must(t, err)
	if field[*string](t, got, "project_id") != nil || len(field[map[string]any](t, got, "runs")) != 0 {
		t.Fatalf("got %s", got)
	}
}
