package runstore

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	root := filepath.Dir(storeDir(t))
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
