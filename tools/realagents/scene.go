package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"greatminds/contract"
	"greatminds/demo"
	greeter "greatminds/fixtures/sample"
	"greatminds/supervisor/control"
	"greatminds/tools/realagents/model"
)

// sceneLimit bounds one scene: the start of an agent on a busy machine, one or two turns, and
// the time limit of each.
const sceneLimit = 4 * time.Minute

// scene is one task of one agent, in a project of its own, while coordd runs it.
type scene struct {
	operator
	recipe recipe
	model  *model.Server
	now    func() time.Time
	route  control.Route
	task   string // id of the task
	answer string // kind of the option that permission requests are answered with

	after       uint64   // sequence of the last event seen
	runs        []string // ids of the task's runs, in the order of their claims
	permissions []permission
	received    bool // the current run's decision is received, and nothing was done with it yet
	seen        facts
	info        string // what the agent called itself
}

// notice is what is read of one runtime event.
type notice struct {
	Sequence uint64  `json:"sequence"`
	Kind     string  `json:"kind"`
	RunID    *string `json:"run_id"`
	Data     struct {
		RequestID string `json:"request_id"`
	} `json:"data"`
}

// play runs one scenario with an agent that is ready to be started, and returns what was seen.
func (b *bench) play(ctx context.Context, r recipe, sc scenario, l launched) (*scene, error) {
	s := &scene{operator: b.operator(l), recipe: r, model: l.model, now: b.now, answer: sc.answer, seen: facts{}, permissions: []permission{}}
	if s.answer == "" {
		s.answer = "allow_once"
	}
	binding := map[string]any{"timeout_seconds": 60}
	for name, value := range sc.binding(r) {
		binding[name] = value
	}
	err := demo.Run(ctx, demo.Options{CLI: []string{b.cli}, Agent: l.argv, Auth: r.auth, Mode: r.mode, Pass: l.pass, Keep: true, Brief: true,
		Folder: l.folder, Out: b.out, Now: b.now, Environ: s.environ, Getenv: func(name string) string { return valueOf(s.environ, name) },
		Limit: sceneLimit, Instruction: sc.part.Marker(), Stages: greeter.Stages[:1], Binding: binding,
		Watch: func(ctx context.Context, project, task string) error {
			s.project, s.task = project, task
			p, err := contract.OpenProject(project)
			if err != nil {
				return err
			}
			s.route = control.Route{Project: p}
			if err := sc.act(ctx, s); err != nil {
				return errors.Join(err, s.look(context.WithoutCancel(ctx)))
			}
			return s.look(ctx)
		}})
	if err == nil {
		// With the daemon gone, nothing at all may be left of the project.
		if still := left(b.cli, naming(l.folder)); len(still) > 0 {
			s.seen["left"] = names(still)
		}
	}
	return s, err
}

// untilOver follows the events until the task's current run is over, with its decision applied,
// and no other will follow by itself. Permission requests are answered on the way.
func (s *scene) untilOver(ctx context.Context) error { return s.follow(ctx, "") }

// follow does the same, or ends with the first event of the kind.
func (s *scene) follow(ctx context.Context, kind string) error {
	for {
		if ended, err := s.page(ctx, longWait, kind); ended || err != nil {
			return err
		}
	}
}

// How long a page of events is waited for, in seconds.
const (
	longWait  = 20
	shortWait = 0.2
)

// page takes the next page of events. ended says that nothing more will happen by itself, or that
// there was an event of the kind; what comes after that one is left to the next page.
func (s *scene) page(ctx context.Context, wait float64, kind string) (ended bool, err error) {
	args, err := json.Marshal(map[string]any{"after": s.after, "limit": 1000, "wait_seconds": wait})
	if err != nil {
		return false, err
	}
	page, err := s.route.Do(ctx, control.Call{Op: "run.events", Args: args})
	if err != nil {
		return false, err
	}
	var events []notice
	if err := json.Unmarshal(page, &events); err != nil {
		return false, fmt.Errorf("read the events: %w", err)
	}
	for _, e := range events {
		s.after = e.Sequence
		over, err := s.see(ctx, e)
		if over || err != nil || e.Kind == kind {
			return true, err
		}
	}
	return false, context.Cause(ctx)
}

// see takes one event; over says that nothing more will happen by itself.
func (s *scene) see(ctx context.Context, e notice) (over bool, err error) {
	switch e.Kind {
	case "claimed":
		s.runs, s.received = append(s.runs, *e.RunID), false
	case "permission_requested":
		return false, s.ask(ctx, e.Data.RequestID)
	case "result_received":
		s.received = true
	case "result_applied", "result_rejected", "result_needs_recovery":
		s.received = false
		return true, nil
	case "completed", "failed", "cancelled", "interrupted", "waiting_auth", "waiting_input":
		if s.received {
			return false, nil // until it is applied
		}
		return s.held(ctx)
	}
	return false, nil
}

// ask answers a question as the operator. One that its run has withdrawn meanwhile is no fault.
func (s *scene) ask(ctx context.Context, id string) error {
	p, err := s.operator.answer(ctx, id, s.answer)
	if p != nil {
		s.permissions = append(s.permissions, *p)
	}
	return err
}

// held asks whether the task waits for a person now.
func (s *scene) held(ctx context.Context) (bool, error) {
	var doc struct {
		Assignments []struct {
			TaskID string `json:"task_id"`
			Reason string `json:"reason"`
		} `json:"assignments"`
	}
	if err := s.read(ctx, &doc, "run", "status"); err != nil {
		return false, err
	}
	for _, a := range doc.Assignments {
		if a.TaskID == s.task && slices.Contains([]string{"ready", "active_run", "domain_result_unresolved", "retry_backoff",
			"account_backoff", "account_rate_limit", "project_capacity", "binding_capacity", "account_capacity", "no_progress_backoff"}, a.Reason) {
			return false, nil
		}
	}
	return true, nil
}

// current is the run that was claimed last.
func (s *scene) current() (string, error) {
	if len(s.runs) == 0 {
		return "", errors.New("no run was claimed")
	}
	return s.runs[len(s.runs)-1], nil
}

func (s *scene) show(ctx context.Context, id string) (shown, error) {
	var r shown
	err := s.read(ctx, &r, "run", "show", id)
	return r, err
}

// look notes what the last run came to, and what it left.
func (s *scene) look(ctx context.Context) error {
	id, err := s.current()
	if err != nil {
		return err
	}
	r, err := s.show(ctx, id)
	if err != nil {
		return err
	}
	s.info = r.agent()
	s.seen["run"] = strings.TrimSpace(r.Run.State + " " + r.Run.Reason)
	s.seen["stop"] = "none"
	if stop := r.Run.Outcome.StopReason; stop != nil {
		s.seen["stop"] = *stop
	}
	s.seen["session"] = r.Run.Outcome.Strategy
	s.seen["asked"] = strconv.Itoa(len(s.permissions))
	s.seen["model"] = s.model.Model()
	s.seen["left"] = "nothing"
	for _, run := range s.runs {
		if still := left(s.cli, tagged(run)); len(still) > 0 {
			s.seen["left"] = names(still)
		}
	}
	s.seen["file"] = "absent"
	if text, err := os.ReadFile(filepath.Join(s.project, ".worktrees", s.task, model.WrittenFile)); err == nil && string(text) == model.WrittenText {
		s.seen["file"] = "written"
	}
	s.seen["task"], err = s.queue()
	return err
}

// queue says where the task is: whether it stays in its first queue, or in which other one it is.
func (s *scene) queue() (string, error) {
	found, err := filepath.Glob(filepath.Join(s.route.Project.Runtime, "*", s.task+".yaml"))
	if err != nil || len(found) != 1 {
		return "", errors.Join(err, fmt.Errorf("the task is in %q, want it once", found))
	}
	if queue := filepath.Base(filepath.Dir(found[0])); queue != "feature_dev" {
		return queue, nil
	}
	return "stays", nil
}
