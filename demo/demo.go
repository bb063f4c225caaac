// Package demo shows the whole product on a small real project: it makes a Go module with a
// failing test in a temporary git repository, files and plans a task with the operator's own
// commands, and lets a real coordd take it through developer, tester, reviewer and merge.
//
// The agents are the scripted agent of the tests, or any ACP agent given by the caller. Nothing
// is faked around them: the configured command is the real `go test`, the merge a real merge.
// The invariant kept: whatever happens, no process is left, and no folder unless it was asked for.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"greatminds/contract"
	"greatminds/fixtures/sample"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
)

// Options are what main hands over.
type Options struct {
	// CLI is the argv prefix of this product's command line; coordd and the scripted agent are
	// reached through it too.
	CLI []string
	// Agent is the argv of a real ACP agent to use instead of the scripted one; empty for none.
	Agent []string
	// Model, Mode and Auth are asked of a real agent; empty leaves its defaults.
	Model, Mode, Auth string
	// Instruction is what a real agent is asked to do in the task's description; empty for ours.
	Instruction string
	// Permission is the binding's policy for a real agent; empty for ask.
	Permission string
	// Pass names further variables of Environ that a real agent gets.
	Pass []string
	// Stages are the bindings of the project; nil is all of the product path.
	Stages []sample.Stage
	// Binding are further members of each binding, and replace ours of the same name.
	Binding map[string]any
	// Watch takes the place of watching the task until its merge, of which nothing is reported then.
	Watch func(ctx context.Context, project, task string) error
	// Question is told of each permission request that waits for the operator; nil only shows it.
	Question func(ctx context.Context, project, requestID string) error
	// Keep leaves the project on disk.
	Keep bool
	// Brief leaves out what is only told to a person: where the project stands and what to try next.
	Brief bool
	// Folder is the parent of the temporary project, empty for the system's.
	Folder string
	// Limit bounds the whole story; 0 is five minutes.
	Limit time.Duration

	Out      io.Writer
	Terminal bool
	Now      func() time.Time
	Getenv   func(string) string
	Environ  []string
}

// story is one run of the demonstration.
type story struct {
	Options
	root    string // the temporary folder
	project string // the sample project in it
	base    string // commit the task starts from
	task    string // full task id
	began   time.Time
	progress
}

// Run tells the story and returns nil when the task was merged. Ended early, it still ends every
// process and removes what it made.
func Run(ctx context.Context, o Options) (err error) {
	if o.Limit == 0 {
		o.Limit = 5 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	if o.Stages == nil {
		o.Stages = sample.Stages
	}
	s := &story{Options: o, began: o.Now()}
	if err := s.checkTools(ctx); err != nil {
		return err
	}
	if s.root, err = os.MkdirTemp(o.Folder, "greatminds-demo-"); err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	s.project = filepath.Join(s.root, "greeter")
	defer func() { err = errors.Join(err, s.cleanUp()) }()
	for _, act := range []struct {
		title string
		do    func(context.Context) error
	}{
		{"make a small Go module with a failing test", s.makeProject},
		{"set the project up: greatminds setup", s.setUp},
		{"file and plan a task as the operator", s.fileTask},
		{"start coordd and watch the task", s.supervise},
	} {
		s.say("%s", act.title)
		if err := act.do(ctx); err != nil {
			return err
		}
	}
	if s.Watch != nil {
		return nil
	}
	return s.report(context.WithoutCancel(ctx))
}

func (s *story) cleanUp() error {
	if !s.Keep {
		return os.RemoveAll(s.root)
	}
	if !s.Brief {
		s.plain("kept: %s", s.project)
	}
	return nil
}

// checkTools names what is missing before anything is made.
func (s *story) checkTools(ctx context.Context) error {
	for _, tool := range []struct{ name, probe, remedy string }{
		{"git", "--version", "install git 2.38 or newer (Debian: apt-get install git), then try again"},
		{"go", "version", "install Go 1.24 or newer and put it on PATH, then try again"},
	} {
		out, err := execgate.RunTool(ctx, execgate.Tool{Argv: []string{tool.name, tool.probe}, Env: s.env(), Dir: os.TempDir(),
			MaxOutput: 4096, Timeout: 20 * time.Second})
		if err != nil || out.Code != 0 {
			return refusal.New(refusal.CodeDemoTool, tool.remedy, "the demo needs the program %s, which does not run here: %v", tool.name, err)
		}
	}
	return nil
}

// cli runs one command of this product as the operator would, in the given role.
func (s *story) cli(ctx context.Context, role string, args ...string) (string, error) {
	env := s.env()
	if role != "" {
		env = append(env, "GREATMINDS_ROLE="+role)
	}
	out, err := execgate.RunTool(ctx, execgate.Tool{Argv: append(append([]string{}, s.CLI...), args...), Env: env, Dir: s.project,
		MaxOutput: 4 << 20, Timeout: time.Minute})
	if err != nil {
		return "", fmt.Errorf("greatminds %v: %w", args, err)
	}
	if out.Code != 0 {
		return "", fmt.Errorf("greatminds %v ended with status %d: %s", args, out.Code, out.Stderr)
	}
	return string(out.Stdout), nil
}

// env is the caller's environment without git's and our own variables: the demo's project must
// be found by its folder, and nobody's git identity is needed.
func (s *story) env() []string {
	var out []string
	for _, v := range execgate.GitEnv(s.Environ) {
		if len(v) < 11 || v[:11] != "GREATMINDS_" {
			out = append(out, v)
		}
	}
	return out
}

func (s *story) at() (contract.Project, error) { return contract.OpenProject(s.project) }
