package runstore

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"greatminds/internal/refusal"
)

// moves is the table of the reference, section 2, in its own words.
const moves = `
claimed: starting cancelled interrupted
starting: running waiting_auth waiting_input failed cancelling interrupted
running: waiting_input waiting_auth completed failed cancelling interrupted
waiting_input: running cancelling failed interrupted
waiting_auth: starting cancelling failed interrupted
cancelling: cancelled failed interrupted
completed:
failed:
cancelled:
interrupted:`

func movesOf(t failer) map[State][]State {
	t.Helper()
	table := map[State][]State{}
	for _, row := range strings.Split(strings.TrimSpace(moves), "\n") {
		from, to, _ := strings.Cut(row, ":")
		table[State(from)] = []State{}
		for _, s := range strings.Fields(to) {
			table[State(from)] = append(table[State(from)], State(s))
		}
	}
	return table
}

// modelRun is what a run should look like.
type modelRun struct {
	id      RunID
	task    string
	state   State
	control string            // kind of the open control
	events  map[string]string // event id to its contents
}

// lifecycle is the store beside its model.
type lifecycle struct {
	s      *Store
	dir    string
	table  map[State][]State
	runs   []*modelRun
	paused bool
	events int
}

func (l *lifecycle) reopen(rt *rapid.T) {
	if l.s != nil {
		closeStore(rt, l.s)
	}
	l.s = openStore(rt, options(l.dir, nil))
}

func (l *lifecycle) pick(rt *rapid.T) *modelRun {
	if len(l.runs) == 0 {
		rt.Skip("no run yet")
	}
	return rapid.SampledFrom(l.runs).Draw(rt, "run")
}

func (l *lifecycle) active(task string) *modelRun {
	for _, r := range l.runs {
		if r.task == task && !r.state.Terminal() {
			return r
		}
	}
	return nil
}

func (l *lifecycle) claim(rt *rapid.T) {
	task := rapid.SampledFrom([]string{"0001-a", "0002-b", "0003-c"}).Draw(rt, "task")
	full := rapid.Bool().Draw(rt, "admit holds")
	var got *ClaimedRun
	var holds []Hold
	update(rt, l.s, func(tx *Tx) (err error) {
		got, holds, err = tx.Claim(claimOf(task), func(v *View) []Hold {
			if full {
				return []Hold{{Code: "project_capacity"}}
			}
			return nil
		})
		return err
	})
	want := ""
	switch {
	case l.paused:
		want = "dispatch_paused"
	case l.active(task) != nil:
		want = "active_run"
	case full:
		want = "project_capacity"
	}
	if want != "" {
		if got != nil || len(holds) != 1 || holds[0].Code != want {
			rt.Fatalf("got run %v with holds %v, want %s", got, holds, want)
		}
		return
	}
	if got == nil || len(holds) != 0 {
		rt.Fatalf("got holds %v, want a run", holds)
	}
	l.runs = append(l.runs, &modelRun{id: got.ID, task: task, state: Claimed, events: map[string]string{}})
	l.events++
}

func (l *lifecycle) transition(rt *rapid.T) {
	r := l.pick(rt)
	to := rapid.SampledFrom(sortedKeys(l.table)).Draw(rt, "to")
	event := rapid.SampledFrom([]string{"e1", "e2", "e3", "e4", "e5", "e6", "e7"}).Draw(rt, "event id")
	reason := rapid.SampledFrom([]string{"", "because"}).Draw(rt, "reason")
	contents := string(to) + "/" + reason
	err := l.s.Update(context.Background(), func(tx *Tx) error { return tx.Transition(r.id, event, to, reason, nil) })
	old, replayed := r.events[event]
	byControl := to == Cancelled && r.control != "" && !r.state.Terminal()
	switch {
	case replayed && old == contents:
		if err != nil {
			rt.Fatalf("the same event again: %v", err)
		}
	case replayed:
		refused(rt, err, refusal.CodeEventReused)
	case r.state.Terminal(), !slices.Contains(l.table[r.state], to) && !byControl:
		refused(rt, err, refusal.CodeRunTransition)
	default:
		if err != nil {
			rt.Fatalf("%s to %s: %v", r.state, to, err)
		}
		r.state, r.events[event] = to, contents
		l.events++
	}
}

func (l *lifecycle) control(rt *rapid.T) {
	r := l.pick(rt)
	kind := rapid.SampledFrom([]string{"cancel", "retry"}).Draw(rt, "kind")
	err := l.s.Update(context.Background(), func(tx *Tx) error { _, err := tx.RequestControl(r.id, kind); return err })
	if r.control != "" && r.control != kind {
		refused(rt, err, refusal.CodeControlPending)
		return
	}
	if err != nil {
		rt.Fatal(err)
	}
	if r.control == "" {
		l.events++
	}
	r.control = kind
}

func (l *lifecycle) complete(rt *rapid.T) {
	r := l.pick(rt)
	c := l.s.View().Run(r.id).Control
	if c == nil {
		rt.Skip("no control")
	}
	update(rt, l.s, func(tx *Tx) error { return tx.SetControl(r.id, c.ID, "completed") })
	if r.control != "" {
		l.events++
	}
	r.control = ""
}

func (l *lifecycle) recover(rt *rapid.T) {
	r := l.pick(rt)
	err := l.s.Update(context.Background(), func(tx *Tx) error { return tx.Recover(r.id, "owner2") })
	if r.state.Terminal() {
		refused(rt, err, refusal.CodeRunTransition)
		return
	}
	if err != nil {
		rt.Fatal(err)
	}
	if r.state != WaitingInput && r.state != WaitingAuth {
		r.state = Interrupted
	}
	l.events++
}

func (l *lifecycle) pause(rt *rapid.T) {
	paused := rapid.Bool().Draw(rt, "paused")
	update(rt, l.s, func(tx *Tx) error { tx.SetPaused(paused); return nil })
	if paused != l.paused {
		l.events++
	}
	l.paused = paused
}

// check compares the whole visible state with the model.
func (l *lifecycle) check(rt *rapid.T) {
	v := l.s.View()
	var active, open []RunID
	byTask := map[string][]RunID{}
	for _, m := range l.runs {
		r := v.Run(m.id)
		if r == nil || r.State != m.state {
			rt.Fatalf("run %s: got %v, want state %s", m.id, r, m.state)
		}
		if !m.state.Terminal() {
			active = append(active, m.id)
		}
		if m.control != "" {
			open = append(open, m.id)
		}
		byTask[m.task] = append(byTask[m.task], m.id)
	}
	same := func(what string, got []*Run, want []RunID) {
		if !slices.EqualFunc(got, want, func(r *Run, id RunID) bool { return r.ID == id }) {
			rt.Fatalf("%s: got %v, want %v", what, got, want)
		}
	}
	same("active runs", v.ActiveRuns(), active)
	same("open controls", v.OpenControls(), open)
	for task, ids := range byTask {
		same("runs of "+task, v.RunsOfTask(TaskID(task)), ids)
	}
	if v.Paused() != l.paused || v.Sequence() != uint64(l.events) {
		rt.Fatalf("paused %v, %d events; want %v, %d", v.Paused(), v.Sequence(), l.paused, l.events)
	}
}

// E-160, E-184, E-185, E-186, E-187, E-188
func TestRunsAgainstAModel(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			rt.Fatal(err)
		}
		l := &lifecycle{dir: filepath.Join(dir, "store"), table: movesOf(rt)}
		l.reopen(rt)
		defer func() { closeStore(rt, l.s) }()
		rt.Repeat(map[string]func(*rapid.T){
			"claim": l.claim, "move": l.transition, "move again": l.transition, "move once more": l.transition,
			"control": l.control, "complete": l.complete, "recover": l.recover, "pause": l.pause, "reopen": l.reopen, "": l.check,
		})
	})
}

// toState takes a fresh run into a state by the shortest way.
func toState(t *testing.T, s *Store, task string, state State) RunID {
	t.Helper()
	c := claim(t, s, task)
	ways := map[State][]State{Claimed: nil, Starting: {Starting}, Running: {Starting, Running},
		WaitingInput: {Starting, WaitingInput}, WaitingAuth: {Starting, WaitingAuth}, Cancelling: {Starting, Cancelling},
		Completed: {Starting, Running, Completed}, Failed: {Starting, Failed}, Cancelled: {Cancelled}, Interrupted: {Interrupted}}
	for _, to := range ways[state] {
		move(t, s, c.ID, to)
	}
	return c.ID
}

// E-184, E-187: every move in every state, legal or not.
func TestEveryMoveInEveryState(t *testing.T) {
	s := fresh(t)
	table := movesOf(t)
	n := 0
	for _, from := range sortedKeys(table) {
		for _, to := range sortedKeys(table) {
			n++
			run := toState(t, s, fmt.Sprintf("%04d-x", n), from)
			before := everything(s.View())
			err := s.Update(t.Context(), func(tx *Tx) error { return tx.Transition(run, "event", to, "r", nil) })
			if slices.Contains(table[from], to) {
				if got := s.View().Run(run); err != nil || got.State != to || got.Reason != "r" {
					t.Errorf("%s to %s: %v, %v", from, to, err, got)
				}
				continue
			}
			refused(t, err, refusal.CodeRunTransition)
			if got := everything(s.View()); got != before {
				t.Errorf("%s to %s: refused, and yet the state changed", from, to)
			}
		}
	}
	if len(runEdges) != len(table) || n != 100 {
		t.Errorf("%d states, %d moves tried", len(runEdges), n)
	}
}

// E-185, E-186
func TestAnEventIsToldOnce(t *testing.T) {
	s := fresh(t)
	c := running(t, s, "0001-a")
	tell := func(reason string, data map[string]any) error {
		return s.Update(t.Context(), func(tx *Tx) error { return tx.Transition(c.ID, "end", Completed, reason, data) })
	}
	if err := tell("turn_ended", map[string]any{"a": 1}); err != nil {
		t.Fatal(err)
	}
	before := everything(s.View())
	if err := tell("turn_ended", map[string]any{"a": 1}); err != nil {
		t.Errorf("the same event after the end: %v", err)
	}
	refused(t, tell("turn_ended", map[string]any{"a": 2}), refusal.CodeEventReused)
	refused(t, tell("", map[string]any{"a": 1}), refusal.CodeEventReused)
	refused(t, s.Update(t.Context(), func(tx *Tx) error { return tx.Transition(c.ID, "end", Failed, "turn_ended", nil) }), refusal.CodeEventReused)
	refused(t, s.Update(t.Context(), func(tx *Tx) error { return tx.Transition("nobody", "e", Failed, "", nil) }), refusal.CodeRunUnknown)
	refused(t, s.Update(t.Context(), func(tx *Tx) error { return tx.Transition(c.ID, "", Failed, "", nil) }), refusal.CodeIdentity)
	if got := everything(s.View()); got != before {
		t.Error("the state changed")
	}
	if !strings.Contains(string(s.View().Document()), `"event_receipts":{`) {
		t.Error("the receipts are not in the document")
	}
}

func TestATransitionTellsWhatItWas(t *testing.T) {
	s := fresh(t)
	c := running(t, s, "0001-a")
	update(t, s, func(tx *Tx) error {
		return tx.Transition(c.ID, NewID(), Failed, "transport_failure", map[string]any{
			"details": map[string]any{"prompt_started": false, "error_type": "ConnectionError", "updates": 3, "x_new": "kept"}})
	})
	e := s.View().Events(0, 100)[3]
	want := `{"details":{"error_type":"ConnectionError","prompt_started":false,"updates":3,"x_new":"kept"},"previous_state":"running","reason":"transport_failure"}`
	if e.Kind != "failed" || string(e.Data) != want || *e.RunID != c.ID {
		t.Errorf("got %s %s, want %s", e.Kind, e.Data, want)
	}
	o := s.View().Run(c.ID).Outcome
	if o == nil || o.ErrorType != "ConnectionError" || *o.PromptStarted || *o.Updates != 3 || string(o.Extra["x_new"]) != `"kept"` {
		t.Errorf("got outcome %+v", o)
	}
}

// E-155, E-159
func TestAClaimIsWholeAndAdmitted(t *testing.T) {
	s := fresh(t)
	conversation := "conv"
	wanted := claimOf("0001-a")
	wanted.ConversationID = &conversation
	wanted.Data = map[string]any{"retry_of": "r0"}
	var got *ClaimedRun
	update(t, s, func(tx *Tx) (err error) {
		got, _, err = tx.Claim(wanted, func(v *View) []Hold {
			if len(v.ActiveRuns()) != 0 {
				t.Error("admit sees the run that it is asked about")
			}
			return nil
		})
		return err
	})
	r := s.View().Run(got.ID)
	if r.State != Claimed || r.OwnerID != "owner1" || r.ConfigSHA256 != "c" || r.SchemaSHA256 != "s" || r.Account != "default" ||
		*r.ConversationID != "conv" || r.ProjectID != s.View().ProjectID() || r.Sequence != 1 || r.TaskRevision != "rev-0001-a" || r.Workspace != "/work" {
		t.Errorf("got %+v", r)
	}
	if e := s.View().Events(0, 1)[0]; string(e.Data) != `{"retry_of":"r0","task_id":"0001-a"}` {
		t.Errorf("got event %s", e.Data)
	}
	for name, c := range map[string]Claim{"taken id": {ID: got.ID, TaskID: "t2"}, "bad id": {ID: "a/b", TaskID: "t2"}, "no task": {}, "NUL": {TaskID: "a\x00b"}} {
		err := s.Update(t.Context(), func(tx *Tx) error { _, _, err := tx.Claim(c, nil); return err })
		if e, ok := refusal.Find(err); !ok || e.Code != refusal.CodeIdentity {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestTheCredentialIsNowhereInClear(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, options(dir, nil))
	c := claim(t, s, "0001-a")
	if len(c.Token) != 43 || strings.ContainsAny(string(c.Token), "+/=") {
		t.Errorf("got token %q, want 32 bytes of URL-safe base64", c.Token)
	}
	other := claim(t, s, "0002-b")
	v := s.View()
	if !v.Authorized(c.ID, string(c.Token)) || v.Authorized(other.ID, string(c.Token)) || v.Authorized(c.ID, "") ||
		v.Authorized(c.ID, v.Run(c.ID).TokenSHA256) || v.Authorized("nobody", string(c.Token)) {
		t.Error("the wrong credential is taken, or the right one is not")
	}
	if strings.Contains(string(v.Document()), "token") {
		t.Error("the document speaks of tokens")
	}
	if got := fmt.Sprint(Token(c.Token).LogValue()); strings.Contains(got, string(c.Token)) {
		t.Errorf("a log would say %s", got)
	}
	journal := readText(t, dir+"/journal.jsonl")
	move(t, s, c.ID, Cancelled)
	if s.View().Authorized(c.ID, string(c.Token)) {
		t.Error("the credential outlives its run")
	}
	closeStore(t, s)
	for _, text := range []string{journal, readText(t, dir+"/state.json")} {
		if strings.Contains(text, string(c.Token)) || !strings.Contains(text, hashText(string(c.Token))) {
			t.Error("the file holds the credential, or not its hash")
		}
	}
}

// E-242
func TestRecoveryKeepsHolds(t *testing.T) {
	s := fresh(t)
	for i, from := range []State{Claimed, Starting, Running, WaitingInput, WaitingAuth, Cancelling} {
		run := toState(t, s, fmt.Sprintf("%04d-x", i), from)
		held := from == WaitingInput || from == WaitingAuth
		update(t, s, func(tx *Tx) error {
			if err := tx.RecordProcess(run, Process{PID: 5}); err != nil {
				return err
			}
			return tx.AskPermission(Permission{ID: PermissionID(fmt.Sprint("p", i)), RunID: run, ExpiresAt: 2e9, Tool: json.RawMessage(`{}`)})
		})
		update(t, s, func(tx *Tx) error { return tx.Recover(run, "owner2") })
		r := s.View().Run(run)
		want := Interrupted
		if held {
			want = from
		}
		if r.State != want || r.OwnerID != "owner2" || r.Process != nil || (r.Reason == "supervisor_restart") == held {
			t.Errorf("%s: got %s, owner %s, process %v, reason %q", from, r.State, r.OwnerID, r.Process, r.Reason)
		}
		p := s.View().PermissionsOfRun(run)[0]
		if p.Status != "cancelled" || p.Reason != "supervisor_restart" {
			t.Errorf("%s: permission %s, %s", from, p.Status, p.Reason)
		}
		e := s.View().Events(s.View().Sequence()-1, 1)[0]
		if want := fmt.Sprintf(`{"held":%v,"previous_owner":"owner1","state":"%s"}`, held, want); e.Kind != "run_recovered" || string(e.Data) != want {
			t.Errorf("%s: got %s %s, want %s", from, e.Kind, e.Data, want)
		}
		if doc := string(encode(r)); !strings.Contains(doc, `"process":null`) {
			t.Errorf("%s: the gone process is not null: %s", from, doc)
		}
	}
}

func TestAGoneProcessStaysNull(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, options(dir, nil))
	run := toState(t, s, "0001-a", WaitingAuth)
	if doc := string(encode(s.View().Run(run))); strings.Contains(doc, `"process"`) {
		t.Errorf("a process that never was is told: %s", doc)
	}
	update(t, s, func(tx *Tx) error { return tx.RecordProcess(run, Process{PID: 5}) })
	update(t, s, func(tx *Tx) error { return tx.EditRun(run, func(r *Run) { r.Process = nil }) })
	update(t, s, func(tx *Tx) error { return tx.EditRun(run, func(r *Run) { r.Workspace = "/x" }) })
	closeStore(t, s)
	s = openStore(t, options(dir, nil))
	if doc := string(encode(s.View().Run(run))); !strings.Contains(doc, `"process":null`) {
		t.Errorf("got %s", doc)
	}
	closeStore(t, s)
}

func TestEditRunKeepsWhatIsNotItsOwn(t *testing.T) {
	s := fresh(t)
	c := running(t, s, "0001-a")
	before := s.View().Run(c.ID)
	update(t, s, func(tx *Tx) error {
		return tx.EditRun(c.ID, func(r *Run) {
			r.ID, r.State, r.Reason, r.TokenSHA256, r.TaskID, r.Sequence = "x", Completed, "x", "x", "x", 99
			r.Outcome = &Outcome{SessionStrategy: "loaded"}
		})
	})
	r := s.View().Run(c.ID)
	if r.State != Running || r.Reason != "" || r.TokenSHA256 != before.TokenSHA256 || r.TaskID != before.TaskID || r.Sequence != before.Sequence || r.Outcome.SessionStrategy != "loaded" {
		t.Errorf("got %+v", r)
	}
	if before.Outcome != nil {
		t.Error("the published run was changed")
	}
	refused(t, s.Update(t.Context(), func(tx *Tx) error {
		return tx.EditRun(c.ID, func(r *Run) { r.Usage = json.RawMessage(`{`) })
	}), refusal.CodeRecordInvalid)
	refused(t, s.Update(t.Context(), func(tx *Tx) error { return tx.EditRun("nobody", func(*Run) {}) }), refusal.CodeRunUnknown)
}

func TestStartupReadyIsSetOnce(t *testing.T) {
	s := fresh(t)
	c := running(t, s, "0001-a")
	first := *s.View().Run(c.ID).StartupReadyAt
	move(t, s, c.ID, WaitingInput)
	move(t, s, c.ID, Running)
	if got := *s.View().Run(c.ID).StartupReadyAt; got != first {
		t.Errorf("got %v, want %v", got, first)
	}
	waiting := toState(t, s, "0002-b", WaitingAuth)
	if s.View().Run(waiting).StartupReadyAt != nil {
		t.Error("a run that never ran has it")
	}
}

// E-582, E-583, E-584
func TestStagesAreFirstSights(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, options(dir, nil))
	c := running(t, s, "0001-a")
	stage := func(name string, offset time.Duration) error {
		return s.Update(t.Context(), func(tx *Tx) error { return tx.Stage(c.ID, name, offset) })
	}
	for _, err := range []error{stage("workspace_ready", 250*time.Millisecond), stage("protocol_ready", time.Second), stage("workspace_ready", 9*time.Second)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	refused(t, stage("lunch", 0), refusal.CodeRecordInvalid)
	refused(t, stage("context_ready", -1), refusal.CodeRecordInvalid)
	events := s.View().Events(3, 10)
	if kinds(events) != "run_stage_observed run_stage_observed" || string(events[0].Data) != `{"offset_seconds":0.25,"stage":"workspace_ready"}` {
		t.Errorf("got %s, %s", kinds(events), events[0].Data)
	}
	update(t, s, func(tx *Tx) error { return tx.Recover(c.ID, "owner2") })
	refused(t, stage("cleanup_complete", time.Second), refusal.CodeRunTransition)
	closeStore(t, s)
	s = openStore(t, options(dir, nil))
	if got := string(encode(s.View().Run(c.ID).Timings)); got != `{"protocol_ready":1.0,"workspace_ready":0.25}` {
		t.Errorf("got %s", got)
	}
	closeStore(t, s)
}

func TestReservationsAreIdempotent(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, options(dir, nil))
	c := running(t, s, "0001-a")
	reserve := func(id string, n int64) error {
		return s.Update(t.Context(), func(tx *Tx) error {
			return tx.Reserve(c.ID, id, Reservation{RequestedBytes: n, UsedBytes: n, LimitBytes: 100})
		})
	}
	for _, err := range []error{reserve("p1", 10), reserve("p2", 20), reserve("p1", 10)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	refused(t, reserve("p1", 11), refusal.CodeEventReused)
	refused(t, reserve("a b", 1), refusal.CodeIdentity)
	if got := kinds(s.View().Events(3, 10)); got != "prompt_input_reserved prompt_input_reserved" {
		t.Errorf("got %s", got)
	}
	move(t, s, c.ID, Failed)
	refused(t, reserve("p3", 1), refusal.CodeRunTransition)
	if err := reserve("p2", 20); err != nil {
		t.Errorf("the same again after the end: %v", err)
	}
	closeStore(t, s)
	s = openStore(t, options(dir, nil))
	if got := s.View().Reservations(c.ID); len(got) != 2 || got["p2"].RequestedBytes != 20 {
		t.Errorf("got %v", got)
	}
	closeStore(t, s)
}

func TestControlsHaveOneWay(t *testing.T) {
	s := fresh(t)
	c := running(t, s, "0001-a")
	var first, again *Control
	update(t, s, func(tx *Tx) (err error) { first, err = tx.RequestControl(c.ID, "retry"); return err })
	update(t, s, func(tx *Tx) (err error) { again, err = tx.RequestControl(c.ID, "retry"); return err })
	if again.ID != first.ID {
		t.Error("an open control was made twice")
	}
	set := func(id, status string) error {
		return s.Update(t.Context(), func(tx *Tx) error { return tx.SetControl(c.ID, id, status) })
	}
	refused(t, set("other", "processing"), refusal.CodeTransition)
	for _, status := range []string{"processing", "processing", "completed", "completed"} {
		if err := set(first.ID, status); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, set(first.ID, "pending"), refusal.CodeTransition)
	if r := s.View().Run(c.ID); !r.RetryAuthorized || r.Control.Status != "completed" {
		t.Errorf("got %+v", r.Control)
	}
	if got := kinds(s.View().Events(3, 10)); got != "control_requested control_processing control_completed" {
		t.Errorf("got %s", got)
	}
	refused(t, s.Update(t.Context(), func(tx *Tx) error { _, err := tx.RequestControl(c.ID, "dance"); return err }), refusal.CodeRecordInvalid)
}
