package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"greatminds/contract"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/supervisor/control"
)

// event is what the story reads of one runtime event.
type event struct {
	Sequence uint64  `json:"sequence"`
	Kind     string  `json:"kind"`
	RunID    *string `json:"run_id"`
	Data     struct {
		Reason    string `json:"reason"`
		RequestID string `json:"request_id"`
		Binding   string `json:"binding_id"`
		Details   struct {
			Destination string `json:"destination"`
			Error       string `json:"error"`
		} `json:"details"`
	} `json:"data"`
}

// supervise starts coordd, follows the task's events until it is merged, and stops coordd again.
func (s *story) supervise(ctx context.Context) (err error) {
	coordd, err := s.startDaemon(ctx)
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		ending, stopErr := coordd.Stop(end, execgate.Grace{Term: 40 * time.Second, Kill: 5 * time.Second})
		if stopErr == nil && ending.Known && ending.Code != 0 && err == nil {
			stopErr = fmt.Errorf("coordd ended with status %d; its log: %s", ending.Code, s.daemonLog())
		}
		err = errors.Join(err, stopErr)
	}()
	if s.Watch != nil {
		return s.Watch(ctx, s.project, s.task)
	}
	p, err := s.at()
	if err != nil {
		return err
	}
	return s.follow(ctx, p, coordd)
}

// startDaemon starts `coordd` under a keeper: should this program die, it and all below it end.
func (s *story) startDaemon(ctx context.Context) (*execgate.Child, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(s.root, "coordd.log"))
	if err != nil {
		return nil, errors.Join(err, null.Close())
	}
	argv := append(append([]string{}, s.CLI...), "coordd", "--foreground", "--project-dir", s.project)
	child, err := execgate.Start(ctx, execgate.Launch{Argv: argv, Env: s.env(), Dir: s.project, Stdin: null, Stdout: log, Stderr: log, Mark: "demo"})
	if err != nil {
		return nil, err
	}
	if err := child.Open(ctx); err != nil {
		return nil, errors.Join(err, child.Abandon(ctx))
	}
	return child, nil
}

func (s *story) daemonLog() string {
	data, err := os.ReadFile(filepath.Join(s.root, "coordd.log"))
	if err != nil {
		return "unreadable: " + err.Error()
	}
	if len(data) > 4000 {
		data = data[len(data)-4000:]
	}
	return string(data)
}

// follow takes pages of events, each as soon as there is one.
func (s *story) follow(ctx context.Context, p contract.Project, coordd *execgate.Child) error {
	route := control.Route{Project: p}
	for after := uint64(0); ; {
		args, err := json.Marshal(map[string]any{"after": after, "limit": 1000, "wait_seconds": 60})
		if err != nil {
			return err
		}
		page, err := s.call(ctx, route, coordd, control.Call{Op: "run.events", Args: args})
		if err != nil {
			return err
		}
		var events []event
		if err := json.Unmarshal(page, &events); err != nil {
			return fmt.Errorf("read the events: %w", err)
		}
		for _, e := range events {
			after = e.Sequence
			done, err := s.see(ctx, route, e)
			if done || err != nil {
				return err
			}
		}
	}
}

// call asks the daemon, and tells a daemon that has ended from one that is slow.
func (s *story) call(ctx context.Context, route control.Route, coordd *execgate.Child, c control.Call) (json.RawMessage, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-coordd.Ended():
			cancel()
		case <-ctx.Done():
		}
	}()
	page, err := route.Do(ctx, c)
	cancel()
	<-watched
	select {
	case <-coordd.Ended():
		return nil, fmt.Errorf("coordd ended early; its log:\n%s", s.daemonLog())
	default:
		return page, err
	}
}

// see shows one event; done means that the task is merged.
func (s *story) see(ctx context.Context, route control.Route, e event) (done bool, err error) {
	switch e.Kind {
	case "claimed":
		s.open(e.Data.Binding)
	case "process_recorded":
		s.note("agent started")
	case "command_running":
		s.redraw("go test is running; with an empty build cache it compiles the standard library first")
	case "command_succeeded", "command_failed", "command_stale":
		s.note("go test: " + e.Kind[len("command_"):])
	case "permission_requested":
		s.note("the agent asks for a permission")
		if s.Question != nil {
			return false, s.Question(ctx, s.project, e.Data.RequestID)
		}
		s.plain("  answer it in another terminal: greatminds run permission %s --option OPTION_ID (in %s)", e.Data.RequestID, s.project)
	case "result_received":
		s.note("decision received")
	case "result_applied":
		s.shut("→ " + path.Dir(e.Data.Details.Destination))
		return path.Dir(e.Data.Details.Destination) == "verified", nil
	case "failed":
		s.note("the attempt failed: " + e.Data.Reason)
		return false, s.stuck(ctx, route)
	case "result_rejected", "result_needs_recovery", "completed", "cancelled", "interrupted", "waiting_auth":
		return false, s.stuck(ctx, route)
	}
	return false, nil
}

// stuck asks why the task does not move; nil while it still will by itself.
func (s *story) stuck(ctx context.Context, route control.Route) error {
	page, err := route.Do(ctx, control.Call{Op: "run.status"})
	if err != nil {
		return err
	}
	var doc struct {
		Assignments []struct {
			TaskID string `json:"task_id"`
			Reason string `json:"reason"`
			What   string `json:"what"`
			Remedy string `json:"remedy"`
		} `json:"assignments"`
	}
	if err := json.Unmarshal(page, &doc); err != nil {
		return fmt.Errorf("read the status: %w", err)
	}
	for _, a := range doc.Assignments {
		switch a.Reason {
		case "ready", "active_run", "domain_result_unresolved", "command_unresolved", "retry_backoff", "account_backoff",
			"project_capacity", "binding_capacity", "account_capacity":
			continue
		}
		if a.TaskID == s.task {
			s.Keep = true
			return refusal.New(refusal.CodeDemoStuck, "look at it: greatminds run status --project-dir "+s.project,
				"the task is held: %s (%s)", a.Reason, a.What)
		}
	}
	return nil
}
