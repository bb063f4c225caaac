package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"time"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor"
	"greatminds/supervisor/activity"
	"greatminds/supervisor/control"
	"greatminds/supervisor/dispatch"
	"greatminds/supervisor/status"
	"greatminds/tasks"
)

// life is one process's work on a project, from the end of its recovery on. What a scenario does
// in it goes on from the state that it finds.
type life struct {
	ctx context.Context
	w   *world
	r   *supervisor.Rooms
	// agents are the runs' credentials and decisions, which outlive a daemon.
	agents *agents
	// faults, where it is set, lets steps fail; see (*life).do.
	faults *faults
	// driven is the run that this life drives now, empty for none.
	driven runstore.RunID
	// seen is the last durable state that was seen after a stage; moves are extra moves that
	// faults have made necessary.
	seen  *runstore.View
	moves int
}

// A life is the daemon that operations ask.

func (l *life) Wake()                                  {}
func (l *life) Live(id runstore.RunID) bool            { return id == l.driven }
func (l *life) Activity(runstore.RunID) *activity.Feed { return nil }

func (l *life) Waits(runstore.PermissionID) bool { return l.driven != "" }
func (l *life) Cancel(runstore.RunID)            {}

// agents is what agents still hold when the daemon that started them is gone.
type agents struct {
	tokens map[runstore.RunID]string
	texts  map[runstore.RunID]string
	// asked counts the requests of each kind, so that one whose answer was lost is sent again
	// under its own id.
	asked map[string]int
}

func newAgents() *agents {
	return &agents{map[runstore.RunID]string{}, map[runstore.RunID]string{}, map[string]int{}}
}

// clone returns agents that know the same.
func (a *agents) clone() *agents {
	return &agents{maps.Clone(a.tokens), maps.Clone(a.texts), maps.Clone(a.asked)}
}

func (l *life) view() *runstore.View { return l.r.Store.View() }

// update is one transaction.
func (l *life) update(f func(tx *runstore.Tx) error) error { return l.r.Store.Update(l.ctx, f) }

// live runs a life over a project and returns what came of it.
func (w *world) live(a *agents, o supervisor.Options, f *faults, play func(l *life) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return supervisor.InProcess(ctx, o, func(ctx context.Context, r *supervisor.Rooms) error {
		l := &life{ctx: ctx, w: w, r: r, agents: a, faults: f}
		r.Operations.Daemon = l
		return play(l)
	})
}

// dispatched is the world that dispatch judges in.
func (l *life) dispatched() dispatch.World {
	return dispatch.World{Contract: l.r.Contract, ContractSHA256: l.r.Contract.SHA256(), Schema: l.r.Schema, Now: l.w.now(),
		Places: dispatch.Places{Worktrees: l.r.Worktrees}}
}

func (l *life) plan(found []tasks.Found) []dispatch.Judgement {
	return dispatch.Plan(l.dispatched(), l.view(), found)
}

// ask performs an operation of the table as the operator, or as the agent of a run. Asked again,
// also in another life, it is the same request.
func (l *life) ask(op string, run runstore.RunID, args any) (json.RawMessage, error) {
	data, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	key := op + " " + string(run) + " " + string(data)
	c := control.Call{Version: control.Version, Op: op, Args: data, Role: "ARCHITECT-PLANNER"}
	if run != "" {
		c.RunID, c.Token, c.Role = string(run), l.agents.tokens[run], ""
	}
	self := execgate.Peer{PID: os.Getpid(), UID: uint32(os.Getuid()), Known: true}
	for {
		c.ID = fmt.Sprintf("%s-%x-%d", strings.ReplaceAll(op, ".", "-"), hash(key), l.agents.asked[key])
		answer, err := l.r.Operations.Serve(l.ctx, self, c)
		if r, is := refusal.Find(err); is && r.Code == refusal.CodeOutcomeUnknown {
			l.agents.asked[key]++ // its remedy is to look, and then to ask under another id
			continue
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(answer)
	}
}

// request performs an operator's operation without arguments under a request id.
func (l *life) request(id, op string) error {
	self := execgate.Peer{PID: os.Getpid(), UID: uint32(os.Getuid()), Known: true}
	_, err := l.r.Operations.Serve(l.ctx, self, control.Call{Version: control.Version, ID: id, Op: op, Args: []byte("{}")})
	return err
}

func hash(s string) uint32 {
	h := uint32(2166136261)
	for _, b := range []byte(s) {
		h = (h ^ uint32(b)) * 16777619
	}
	return h
}

func submission(text string) string {
	data, err := json.Marshal(map[string]any{"text": text})
	if err != nil {
		panic(err)
	}
	return string(data)
}

// errStuck is a task that nothing moves.
var errStuck = errors.New("nothing moves the task")

// errRestart says that this process can do no more, which is all right: another one can.
var errRestart = errors.New("the store has failed; a restart goes on")

// toEnd does what a daemon and its operator would until the task is where it should come to. turn
// is what the agent does in each of its runs.
func (l *life) toEnd(ended func(v *runstore.View, queue string) bool, turn func(a *attempt) error) error {
	for n := 0; n < 25+l.moves; n++ {
		if err := l.redeliver(); err != nil {
			return err
		}
		task, err := l.r.Tree.ReadCurrent(task0)
		if err != nil {
			return err
		}
		if ended(l.view(), string(task.Queue)) && len(l.view().OpenResults()) == 0 {
			return nil
		}
		if err := l.next(turn); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %v", errStuck, l.judgement())
}

func (l *life) judgement() string {
	found, err := l.r.Tree.Discover()
	var said []string
	for _, j := range l.plan(found) {
		said = append(said, fmt.Sprintf("%s in %s: %s: %s (%s)", j.Task.ID, j.Task.Queue, j.Reason, j.What, j.Remedy))
	}
	return fmt.Sprint(said, err)
}

// next makes the next move: an open result is applied, a ready task claimed, and where something
// stands in the way its own remedy is followed.
func (l *life) next(turn func(a *attempt) error) error {
	if len(l.view().OpenControls()) > 0 {
		return l.do("settle", func() error { return l.r.Settle(l.ctx) })
	}
	for _, res := range l.view().OpenResults() {
		if res.Status != "needs_recovery" && res.Hold() == nil {
			return l.apply(res.ID())
		}
	}
	found, err := l.r.Tree.Discover()
	if err != nil {
		return err
	}
	for _, j := range l.plan(found) {
		if j.Reason == dispatch.Ready {
			return l.run(j, turn)
		}
		for _, line := range ourCommand.FindAllString(j.Remedy, -1) {
			if done, err := l.follow(line); done || err != nil {
				return err
			}
		}
		// Where time alone helps, it passes.
		if res := l.held(); res != nil {
			return l.apply(res.ID())
		}
		if !j.NextAt.IsZero() {
			l.w.pass(j.NextAt)
			return nil
		}
	}
	for _, r := range status.Recoveries(l.view()) {
		for _, line := range r.Commands {
			if done, err := l.follow(line); done || err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%w: %v", errStuck, l.judgement())
}

// held is a result under a hold that clears by itself.
func (l *life) held() *runstore.Result {
	for _, res := range l.view().OpenResults() {
		if res.Status != "needs_recovery" {
			return res
		}
	}
	return nil
}

var ourCommand = regexp.MustCompile(`greatminds (run [a-z-]+|task [a-z-]+)( --operation)?( [A-Za-z0-9][A-Za-z0-9_-]*)?`)

// follow does what a remedy says, where it is a change.
func (l *life) follow(line string) (bool, error) {
	words := strings.Fields(line)
	verb, id := words[2], words[len(words)-1]
	switch {
	case verb == "resume":
		return true, l.do("resume", func() error { _, err := l.ask("run.resume", "", struct{}{}); return err })
	case verb == "retry":
		return true, l.do("retry", func() error {
			if _, err := l.ask("run.retry", "", map[string]any{"run_id": id}); err != nil {
				return err
			}
			return l.r.Settle(l.ctx)
		})
	case verb == "repair":
		return true, l.do("repair", func() error {
			_, err := l.ask("run.repair", "", map[string]any{"operation_id": id})
			return err
		})
	case verb == "command-resolve":
		return true, l.do("resolve", func() error {
			_, err := l.ask("run.command-resolve", "", map[string]any{"request_id": id, "reason": "looked at"})
			return err
		})
	}
	return false, nil
}

// apply takes a result as far as it goes. What holds it is looked at by whoever comes next.
func (l *life) apply(id runstore.ResultID) error {
	return l.do("apply", func() error {
		_, err := l.r.Results.Apply(l.ctx, id)
		if res := l.view().Result(id); err != nil && res.Status == "rejected" {
			return fmt.Errorf("result %s was rejected: %w", id, err)
		}
		return err
	})
}

// redeliver lets every agent hand its decision in again: the answer to an acknowledged one must
// be the same receipt.
func (l *life) redeliver() error {
	for run, text := range l.agents.texts {
		res := l.view().ResultOfRun(run)
		if res == nil {
			continue
		}
		l.agents.asked["run.submit "+string(run)+" "+submission(text)]++ // another call, not the same one again
		answer, err := l.ask("run.submit", run, map[string]any{"text": text})
		if err != nil {
			return fmt.Errorf("the decision of run %s, handed in again: %w", run, err)
		}
		var again struct{ SHA256 string }
		if err := json.Unmarshal(answer, &again); err != nil || again.SHA256 != res.SHA256 {
			return fmt.Errorf("the decision of run %s, handed in again, is %s: %w", run, answer, err)
		}
	}
	return nil
}
