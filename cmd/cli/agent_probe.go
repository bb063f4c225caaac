package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/supervisor/probe"
)

// answered ends a command whose answer was given, and says itself that something failed.
type answered struct{ status refusal.Status }

// Error is never shown: the answer has said it.
func (e answered) Error() string { return fmt.Sprintf("the answer has status %d", e.status) }

func isAnswered(err error) bool { return errors.As(err, new(answered)) }

func (a *app) agentProbe() *cobra.Command {
	request := probe.Request{Getenv: a.Getenv, Version: a.Version, Now: a.Now}
	var cwd string
	var wait float64
	cmd := &cobra.Command{
		Use: "probe ID", Short: "Start the agent of a manifest without a task, and report what it offers.", Args: exactly("ID"),
		Long: "It is started as a run would start it, with this environment in the place of the daemon's, and\n" +
			"gets an ACP initialize, authenticate where the manifest has an auth_method, with --session a\n" +
			"session with the manifest's MCP servers, with --mode one in this mode, and with --prompt one\n" +
			"prompt. Each permission that it asks for is answered with\n" +
			"cancelled and listed; an agent that does not ask does what it wants in its folder.\n" +
			"The answer is JSON also where the agent fails: member error then says at what.",
		Example: "  greatminds agent probe claude --session\n  greatminds agent probe claude --mode default --prompt 'Write a file.'",
		RunE: func(cmd *cobra.Command, argv []string) error {
			var err error
			if request.Timeout, err = seconds(cmd, "timeout", wait, 0.1); err != nil {
				return err
			}
			if cmd.Flags().Changed("prompt") && strings.TrimSpace(request.Prompt) == "" {
				return usage(cmd, "--prompt is empty")
			}
			if cmd.Flags().Changed("cwd") {
				if request.Workspace, err = a.folder(cwd); err != nil {
					return err
				}
			}
			if request.Agent, err = a.manifest(cmd.Context(), argv[0]); err != nil {
				return err
			}
			report, err := probe.Run(cmd.Context(), request)
			if err != nil {
				return err
			}
			if err := a.print(report); err != nil {
				return err
			}
			if status := report.Status(); status != 0 {
				return answered{status}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&request.Session, "session", false, "make a session too, and show its modes, models and options")
	f.StringVar(&request.Mode, "mode", "", "make a session in this `mode`, as the mode of a binding does")
	f.StringVar(&request.Prompt, "prompt", "", "make a session, and send this `text` as one prompt")
	f.StringVar(&cwd, "cwd", "", "`folder` that the agent works in (default: a fresh temporary one)")
	f.Float64Var(&wait, "timeout", probe.DefaultTimeout.Seconds(), "most `seconds` for the whole conversation")
	return exits(a.takesProject(cmd), "  0 done, 1 no project or no such agent, or the agent failed, 2 wrong usage, an invalid contract, or\n  the agent lacks what the manifest asks for, 3 called from inside a run, 4 the\n  daemon does not answer.")
}

// manifest is an agent of the project's contract. A run may not start agents.
func (a *app) manifest(ctx context.Context, id string) (contract.Agent, error) {
	const doing = "start agents"
	if err := a.notAssigned(doing); err != nil {
		return contract.Agent{}, err
	}
	p, err := a.project()
	if err != nil {
		return contract.Agent{}, err
	}
	if err := a.operatorOnly(ctx, p, doing); err != nil {
		return contract.Agent{}, err
	}
	schema, err := contract.LoadSchema(a.Getenv)
	if err != nil {
		return contract.Agent{}, err
	}
	agreed, err := contract.Load(p, "", schema)
	if err != nil {
		return contract.Agent{}, err
	}
	agent, ok := agreed.Agent(id)
	if !ok {
		return contract.Agent{}, refusal.New(refusal.CodeNotFound, agentsOf(agreed), "%s has no agent %q", p.ExecutionPath(), id)
	}
	return agent, nil
}

// agentsOf says which agents could have been meant.
func agentsOf(c *contract.Contract) string {
	if len(c.Agents) == 0 {
		return "add one with `greatminds setup --agent NAME`; `greatminds agent presets` lists the names"
	}
	var ids []string
	for _, agent := range c.Agents {
		ids = append(ids, agent.ID)
	}
	return "name one of " + strings.Join(ids, ", ")
}

// folder is the absolute path of an existing folder.
func (a *app) folder(path string) (string, error) {
	path = a.absolute(path)
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return "", refusal.New(refusal.CodeUsage, "name a folder that exists", "%s is no folder", path)
	}
	return path, nil
}
