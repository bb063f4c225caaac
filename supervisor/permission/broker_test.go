package permission_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/redact"
	"greatminds/runstore"
	"greatminds/supervisor/permission"
	"greatminds/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is a running run whose agent asks, and the broker.
type lab struct {
	store    *runstore.Store
	broker   *permission.Broker
	run      *runstore.Run
	revision runstore.Revision
}

// inLab runs f in a bubble of its own, so that five minutes pass at once.
func inLab(t *testing.T, f func(t *testing.T, l *lab)) {
	synctest.Test(t, func(t *testing.T) {
		l := &lab{revision: "rev"}
		var err error
		l.store, err = runstore.Open(t.Context(), runstore.Options{Dir: filepath.Join(t.TempDir(), ".runtime"), Disk: durable.NewDisk(nil), Now: time.Now})
		must(t, err)
		defer func() { must(t, l.store.Close(context.Background())) }()
		l.begin(t)
		l.broker = &permission.Broker{Store: l.store, Owner: "owner", Now: time.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Revision: func(runstore.TaskID) (runstore.Revision, error) { return l.revision, nil }}
		f(t, l)
	})
}

// begin makes the run that asks.
func (l *lab) begin(t testing.TB) {
	sha := map[string]string{}
	for _, kind := range []string{"execution", "schema"} {
		sha[kind] = pin(t, l.store, kind)
	}
	l.update(t, func(tx *runstore.Tx) error {
		claimed, _, err := tx.Claim(runstore.Claim{OwnerID: "owner", TaskID: "0001-a", TaskPath: "feature_dev/0001-a.yaml", TaskRevision: "rev",
			BindingID: "dev", AgentID: "a", ConfigSHA256: sha["execution"], SchemaSHA256: sha["schema"], Account: "default", Permission: "ask", Role: "DEVELOPER"},
			func(*runstore.View) []runstore.Hold { return nil })
		if err == nil {
			l.run = claimed.Run
		}
		return err
	})
	for _, s := range []runstore.State{runstore.Starting, runstore.Running} {
		l.update(t, func(tx *runstore.Tx) error { return tx.Transition(l.run.ID, runstore.NewID(), s, "", nil) })
	}
}

func pin(t testing.TB, s *runstore.Store, kind string) string {
	t.Helper()
	schema := contract.EmbeddedSchema()
	if kind == "schema" {
		doc, err := runstore.SchemaDocument(schema.Text, schema.Version)
		must(t, err)
		must(t, s.PinDocument(kind, schema.SHA256, doc))
		return schema.SHA256
	}
	c, err := contract.Parse("execution.yaml", []byte("version: 1\nagents: {}\nbindings: {}\n"), schema)
	must(t, err)
	must(t, s.PinDocument(kind, c.SHA256(), c.Canonical()))
	return c.SHA256()
}

func (l *lab) update(t testing.TB, f func(*runstore.Tx) error) {
	t.Helper()
	must(t, l.store.Update(t.Context(), f))
}

func request() transport.PermissionRequest {
	return transport.PermissionRequest{ID: "7", SessionID: "s", ToolKind: "edit", Title: "Edit",
		ToolCall: json.RawMessage(`{"toolCallId":"t1","kind":"edit","rawInput":{"password":"hunter2-hunter2","note":"CANARY-SECRET-VALUE"},"_meta":{"vendor":"x"}}`),
		Options: []transport.Option{{ID: "yes", Name: "Yes", Kind: "allow_once", Selectable: true}, {ID: "always", Name: "Always", Kind: "allow_always"},
			{ID: "no", Name: "No", Kind: "reject_once", Selectable: true}}}
}

// ask begins a question and returns where its answer arrives, and the question's record.
func (l *lab) ask(t *testing.T, ctx context.Context, ends time.Time) (<-chan permission.Answered, *runstore.Permission) {
	t.Helper()
	before := map[runstore.PermissionID]bool{}
	for _, p := range l.store.View().PermissionsOfRun(l.run.ID) {
		before[p.ID] = true
	}
	out := make(chan permission.Answered, 1)
	go func() {
		out <- l.broker.Ask(ctx, permission.Asked{Run: l.run, Policy: contract.PermissionAsk, SessionID: "s", PromptEnds: ends,
			Secrets: redact.New("CANARY-SECRET-VALUE"), Request: request()})
	}()
	for {
		changed := l.store.Changed()
		for _, p := range l.store.View().PermissionsOfRun(l.run.ID) {
			if !before[p.ID] {
				return out, p
			}
		}
		<-changed
	}
}

func (l *lab) answer(t *testing.T, id runstore.PermissionID, option string) {
	t.Helper()
	l.update(t, func(tx *runstore.Tx) error { _, _, err := tx.AnswerPermission(id, option); return err })
}

func (l *lab) state() runstore.State { return l.store.View().Run(l.run.ID).State }

// E-037 E-038 E-040 E-049 E-063 E-064
func TestAnOperatorsAnswerReachesTheCallback(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		out, p := l.ask(t, t.Context(), time.Time{})
		if l.state() != runstore.WaitingInput || p.Status != "pending" || len(p.Options) != 3 {
			t.Fatalf("got run %s, question %s with %d options", l.state(), p.Status, len(p.Options))
		}
		for _, secret := range []string{"CANARY-SECRET-VALUE", "hunter2", "vendor"} {
			if contains(p.Tool, secret) {
				t.Errorf("the record holds %q: %s", secret, p.Tool)
			}
		}
		l.answer(t, p.ID, "yes")
		if got := <-out; got.OptionID != "yes" || got.TimedOut {
			t.Fatalf("got %+v, want option yes", got)
		}
		if s := l.store.View().Permission(p.ID).Status; s != "consumed" || l.state() != runstore.Running {
			t.Fatalf("got question %s, run %s", s, l.state())
		}
	})
}

// E-052 E-053 E-054
func TestAQuestionWaitsNoLongerThanItMay(t *testing.T) {
	for _, c := range []struct {
		name   string
		budget time.Duration
		want   time.Duration
	}{{"E-052 300 seconds at most", 0, 300 * time.Second}, {"E-052 what is left of the prompt", time.Minute, time.Minute}} {
		t.Run(c.name, func(t *testing.T) {
			inLab(t, func(t *testing.T, l *lab) {
				began := time.Now()
				var ends time.Time
				if c.budget > 0 {
					ends = began.Add(c.budget)
				}
				out, p := l.ask(t, t.Context(), ends)
				got := <-out
				if !got.TimedOut || got.OptionID != "" || time.Since(began) != c.want {
					t.Fatalf("got %+v after %v, want a time-out after %v", got, time.Since(began), c.want)
				}
				if p := l.store.View().Permission(p.ID); p.Status != "cancelled" || p.Reason != permission.CallbackClosed {
					t.Fatalf("got %s (%s)", p.Status, p.Reason)
				}
			})
		})
	}
}

// E-046 E-055
func TestAnAnswerIsNotDeliveredOnceTheWorldHasMoved(t *testing.T) {
	for name, move := range map[string]func(t *testing.T, l *lab){
		"E-046 the task was edited": func(t *testing.T, l *lab) { l.revision = "other" },
		"E-043 another supervisor":  func(t *testing.T, l *lab) { l.broker.Owner = "other" },
		"E-055 the run is being cancelled": func(t *testing.T, l *lab) {
			l.update(t, func(tx *runstore.Tx) error {
				return tx.Transition(l.run.ID, runstore.NewID(), runstore.Cancelling, "operator_cancelled", nil)
			})
		},
		"E-055 a cancel is on record": func(t *testing.T, l *lab) {
			l.update(t, func(tx *runstore.Tx) error { _, err := tx.RequestControl(l.run.ID, "cancel"); return err })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(t *testing.T, l *lab) {
				out, p := l.ask(t, t.Context(), time.Time{})
				synctest.Wait()
				move(t, l)
				l.answer(t, p.ID, "yes")
				if got := <-out; got.OptionID != "" {
					t.Fatalf("delivered %q", got.OptionID)
				}
				if s := l.store.View().Permission(p.ID).Status; s != "cancelled" {
					t.Fatalf("got %s, want cancelled", s)
				}
			})
		})
	}
}

func TestTwoQuestionsKeepTheRunWaitingUntilBothAreAnswered(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		first, p1 := l.ask(t, t.Context(), time.Time{})
		second, p2 := l.ask(t, t.Context(), time.Time{})
		l.answer(t, p1.ID, "no")
		if got := <-first; got.OptionID != "no" || l.state() != runstore.WaitingInput {
			t.Fatalf("got %+v, run %s", got, l.state())
		}
		l.answer(t, p2.ID, "yes")
		if got := <-second; got.OptionID != "yes" || l.state() != runstore.Running {
			t.Fatalf("got %+v, run %s", got, l.state())
		}
	})
}

func TestACancelledCallbackIsClosedOnRecord(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		ctx, cancel := context.WithCancel(t.Context())
		out, p := l.ask(t, ctx, time.Time{})
		cancel()
		if got := <-out; got.OptionID != "" || got.TimedOut {
			t.Fatalf("got %+v, want cancelled", got)
		}
		if s := l.store.View().Permission(p.ID).Status; s != "cancelled" || l.state() != runstore.Running {
			t.Fatalf("got %s, run %s", s, l.state())
		}
	})
}

// E-069 E-070
func TestPoliciesAnswerWithoutAPerson(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		ws := t.TempDir()
		inside := request()
		inside.ToolCall = json.RawMessage(`{"locations":[{"path":"` + filepath.Join(ws, "a") + `"}]}`)
		for policy, want := range map[string]string{contract.PermissionDeny: "no", contract.PermissionAllowWorkspace: "yes"} {
			got := l.broker.Ask(t.Context(), permission.Asked{Run: l.run, Policy: policy, Workspace: ws, Secrets: redact.New(), Request: inside})
			if got.OptionID != want {
				t.Errorf("%s: got %q, want %q", policy, got.OptionID, want)
			}
		}
		if n := len(l.store.View().PermissionsOfRun(l.run.ID)); n != 0 || l.state() != runstore.Running {
			t.Fatalf("%d questions on record, run %s", n, l.state())
		}
	})
}

func contains(raw json.RawMessage, s string) bool {
	for i := 0; i+len(s) <= len(raw); i++ {
		if string(raw[i:i+len(s)]) == s {
			return true
		}
	}
	return false
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
