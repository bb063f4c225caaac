package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"greatminds/tools/realagents/model"
)

// pipeline is the name of the demo's whole story, beside the scenarios of one turn.
const pipeline = "pipeline"

// shortTurn bounds the turns whose model fails for ever, in seconds: several agents try again
// without a word for longer than anybody waits.
const shortTurn = 25

// scenario is one thing that every agent is put through, in one turn of the developer.
type scenario struct {
	name string
	// about says what is done, for the table.
	about string
	part  model.Part
	// members are added to the binding; nil for none.
	members func(r recipe) map[string]any
	// answer is the kind of the option that the operator chooses; empty for allow_once.
	answer string
	// play is what is done while the turn runs; nil only waits for its end.
	play func(ctx context.Context, s *scene) error
	// want is what every agent comes to, but for the deviations of its own.
	want facts
}

func (sc scenario) binding(r recipe) map[string]any {
	if sc.members == nil {
		return nil
	}
	return sc.members(r)
}

func (sc scenario) act(ctx context.Context, s *scene) error {
	if sc.play == nil {
		return s.untilOver(ctx)
	}
	return sc.play(ctx, s)
}

// settingsName is the scenario whose expected model is the recipe's.
const settingsName = "settings"

const (
	endedWell = "completed turn_ended"
	moved     = "feature_test"
	stays     = "stays"
)

// scenarios in the order in which they run and in which the table shows them.
var scenarios = []scenario{
	{
		name: "text", about: "the model says one sentence; no decision, so the task stays", part: model.Text,
		want: facts{"run": endedWell, "stop": "end_turn", "task": stays, "asked": "0", "left": "nothing"},
	},
	{
		name: "submit-cli", about: "the decision is submitted by the agent's shell tool, which the operator allows", part: model.SubmitCLI,
		want: facts{"run": endedWell, "stop": "end_turn", "task": moved, "asked": "1", "left": "nothing"},
	},
	{
		name: "submit-mcp", about: "the decision is submitted by the supervisor's own tool over MCP; the operator allows what is asked", part: model.SubmitMCP,
		want: facts{"run": endedWell, "stop": "end_turn", "task": moved, "left": "nothing"},
	},
	{
		name: "allowed", about: "the operator allows the agent's writing tool once", part: model.Write,
		want: facts{"run": endedWell, "stop": "end_turn", "task": stays, "asked": "1", "file": "written", "left": "nothing"},
	},
	{
		name: "rejected", about: "the operator rejects it once", part: model.Write, answer: "reject_once",
		want: facts{"run": endedWell, "stop": "end_turn", "task": stays, "asked": "1", "file": "absent", "left": "nothing"},
	},
	{
		name: "cancelled", about: "`run cancel` while the agent's shell tool runs", part: model.Shell, play: cancelled,
		want: facts{"run": "cancelled operator_cancelled", "task": stays, "asked": "1", "left": "nothing"},
	},
	{
		name: "killed", about: "SIGKILL of the agent's whole tree in the turn, then `run retry` with the saved session", part: model.HangOnce,
		members: func(recipe) map[string]any { return map[string]any{"session": "resume-if-compatible"} }, play: killed,
		want: facts{"first": "failed transport_failure", "run": endedWell, "stop": "end_turn", "session": "loaded", "task": moved, "left": "nothing"},
	},
	{
		name: settingsName, about: "model and mode are set by the binding, and confirmed before the prompt", part: model.Text, members: settings,
		want: facts{"run": endedWell, "stop": "end_turn", "task": stays, "left": "nothing"},
	},
	{
		name: "429-once", about: "the model answers 429 once, then well", part: model.LimitOnce,
		want: facts{"run": endedWell, "stop": "end_turn", "task": moved, "left": "nothing"},
	},
	{
		name: "429", about: "the model answers 429 for ever", part: model.Limit, members: short,
		want: facts{"run": "failed timeout", "task": stays, "left": "nothing"},
	},
	{
		name: "500", about: "the model answers 500 for ever", part: model.Fault, members: short,
		want: facts{"run": "failed timeout", "task": stays, "left": "nothing"},
	},
	{
		name: "detached", about: "the shell tool leaves a child in a session of its own, which ends with the run", part: model.Detached, play: detached,
		want: facts{"run": endedWell, "stop": "end_turn", "task": moved, "child": "seen", "left": "nothing"},
	},
}

func short(recipe) map[string]any { return map[string]any{"timeout_seconds": shortTurn} }

func settings(r recipe) map[string]any {
	m := map[string]any{}
	for name, value := range map[string]string{"model": r.set.model, "mode": r.set.mode} {
		if value != "" {
			m[name] = value
		}
	}
	return m
}

// cancelled lets the shell tool begin its long command, and then has the operator cancel the run.
func cancelled(ctx context.Context, s *scene) error {
	return s.beside(ctx, func(ctx context.Context, run string) error {
		if !await(ctx, func() bool { return running(run, model.LongCommand) }) {
			return fmt.Errorf("the agent's shell did not come to run %s", strings.Join(model.LongCommand, " "))
		}
		_, _, err := s.command(ctx, s.cli, "run", "cancel", run)
		return err
	})
}

// detached looks for the child while the turn runs: it must have been there to be ended.
func detached(ctx context.Context, s *scene) error {
	s.seen["child"] = "not seen"
	return s.beside(ctx, func(ctx context.Context, run string) error {
		if await(ctx, func() bool { return running(run, model.LongCommand) }) {
			s.seen["child"] = "seen"
		}
		return nil
	})
}

// beside does something with the run as soon as it is claimed, while its events are followed to
// its end. What is done is told when the run is over before.
func (s *scene) beside(ctx context.Context, do func(ctx context.Context, run string) error) error {
	if err := s.follow(ctx, "claimed"); err != nil {
		return err
	}
	run, err := s.current()
	if err != nil {
		return err
	}
	doing, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- do(doing, run) }()
	err = s.untilOver(ctx)
	stop()
	return errors.Join(err, <-done)
}

// killed kills the agent while its model owes it an answer in the middle of a turn, and has the operator retry the run.
func killed(ctx context.Context, s *scene) error {
	if err := s.follow(ctx, "claimed"); err != nil {
		return err
	}
	first, err := s.current()
	if err != nil {
		return err
	}
	if err := s.untilHanging(ctx); err != nil {
		return err
	}
	r, err := s.show(ctx, first)
	if err != nil || r.Run.Process == nil {
		return errors.Join(err, fmt.Errorf("run %s has no process on record", first))
	}
	killTree(first, r.Run.Process.Pid, s.cli)
	if err := s.untilOver(ctx); err != nil {
		return err
	}
	if r, err = s.show(ctx, first); err != nil {
		return err
	}
	s.seen["first"] = strings.TrimSpace(r.Run.State + " " + r.Run.Reason)
	if _, _, err := s.command(ctx, s.cli, "run", "retry", first); err != nil {
		return err
	}
	if err := s.follow(ctx, "claimed"); err != nil {
		return err
	}
	return s.untilOver(ctx)
}

// untilHanging follows the run's events until its model owes it an answer.
func (s *scene) untilHanging(ctx context.Context) error {
	for {
		select {
		case <-s.model.Hanging():
			return nil
		default:
		}
		over, err := s.page(ctx, shortWait, "")
		if over || err != nil {
			return errors.Join(err, errors.New("the agent did not come to ask its model again"))
		}
	}
}
