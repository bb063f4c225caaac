package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"greatminds/internal/execgate"
	"greatminds/tools/realagents/model"
)

// callLimit bounds one command of the operator.
const callLimit = time.Minute

// operator is the person at the command line of one project.
type operator struct {
	cli     string
	project string
	environ []string
}

// option is one choice of a permission request.
type option struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
}

// question is what `run permission` shows of a permission request.
type question struct {
	RunID   string                `json:"run_id"`
	Tool    struct{ Kind string } `json:"tool"`
	Options []option              `json:"options"`
}

// status is what is read of `run status`.
type status struct {
	Runs map[string]struct {
		Role string `json:"role"`
	} `json:"runs"`
}

// shown is what is read of `run show`; the status has it of the newest runs only.
type shown struct {
	Run struct {
		State   string `json:"state"`
		Reason  string `json:"reason"`
		Process *struct {
			Pid int `json:"pid"`
		} `json:"process"`
		Outcome struct {
			StopReason *string `json:"stop_reason"`
			Strategy   string  `json:"session_strategy"`
		} `json:"outcome"`
		Protocol struct {
			Negotiated struct {
				Data struct {
					Agent struct{ Name, Version string } `json:"agent"`
				} `json:"data"`
			} `json:"negotiated"`
		} `json:"protocol"`
	} `json:"run"`
}

// agent is what the agent called itself on the wire, empty where it said nothing.
func (r shown) agent() string {
	a := r.Run.Protocol.Negotiated.Data.Agent
	return strings.TrimSpace(a.Name + " " + a.Version)
}

// command runs one command and returns what it printed. code is its exit status, also beside an
// error.
func (o operator) command(ctx context.Context, argv ...string) (stdout []byte, code int, err error) {
	out, err := execgate.RunTool(ctx, execgate.Tool{Argv: argv, Env: execgate.GitEnv(o.environ), Dir: o.project, Timeout: callLimit})
	if err == nil && out.Code != 0 {
		err = fmt.Errorf("status %d: %s", out.Code, tail(out.Stderr))
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return out.Stdout, out.Code, err
}

// read runs one command of greatminds that prints JSON.
func (o operator) read(ctx context.Context, into any, args ...string) error {
	stdout, _, err := o.command(ctx, append([]string{o.cli}, append(args, "--json")...)...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(stdout, into); err != nil {
		return fmt.Errorf("read what %s printed: %w", strings.Join(args, " "), err)
	}
	return nil
}

// answer looks at a waiting question as a person does, and answers it with the first option of
// the kind. It returns what it saw, also beside an error; nil when the question could not be read.
func (o operator) answer(ctx context.Context, id, kind string) (*permission, error) {
	var q question
	var s status
	if err := errors.Join(o.read(ctx, &q, "run", "permission", id), o.read(ctx, &s, "run", "status")); err != nil {
		return nil, err
	}
	p := &permission{Role: s.Runs[q.RunID].Role, Tool: q.Tool.Kind, Options: q.Options}
	var err error
	if p.Chosen, err = pick(q.Options, kind); err != nil {
		return p, fmt.Errorf("permission request %s: %w", id, err)
	}
	_, code, err := o.command(ctx, o.cli, "run", "permission", id, "--option", p.Chosen)
	p.Status = &code
	return p, err
}

// pick goes by kind: the ids are each agent's own, and an answer that lasts is not given.
func pick(options []option, kind string) (string, error) {
	i := slices.IndexFunc(options, func(o option) bool { return o.Kind == kind })
	if i < 0 {
		return "", fmt.Errorf("no option of kind %s among %v", kind, options)
	}
	return options[i].ID, nil
}

// inspect reads from the project itself what the table says of it; merged says whether there
// should be a merge.
func (o operator) inspect(ctx context.Context, merged bool, out *row) error {
	var s status
	if err := o.read(ctx, &s, "run", "status"); err != nil {
		return err
	}
	for id := range s.Runs {
		var r shown
		if err := o.read(ctx, &r, "run", "show", id); err != nil {
			return err
		}
		out.heard(r.agent())
	}
	if !merged {
		return nil
	}
	return o.inspectMerge(ctx, out)
}

// inspectMerge finds the merge commit and the agent's own file in it.
func (o operator) inspectMerge(ctx context.Context, out *row) error {
	git := func(args ...string) (string, error) {
		stdout, _, err := o.command(ctx, append([]string{"git"}, args...)...)
		return string(stdout), err
	}
	merge, err := git("log", "-1", "--merges", "--format=%H", "main")
	if err != nil {
		return err
	}
	out.Merge = strings.TrimSpace(merge)
	changed, err := git("diff", "--name-only", out.Merge+"^1", out.Merge)
	if err != nil {
		return err
	}
	out.Changed = strings.Fields(changed)
	written, err := git("show", out.Merge+":"+model.WrittenFile)
	if err != nil {
		return fmt.Errorf("the merge %s does not hold the agent's file: %w", out.Merge, err)
	}
	if written != model.WrittenText {
		return fmt.Errorf("%s says %q in the merge %s, want %q", model.WrittenFile, written, out.Merge, model.WrittenText)
	}
	out.File = model.WrittenFile
	return nil
}
