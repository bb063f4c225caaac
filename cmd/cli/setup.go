package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/setup"
)

func (a *app) setup() *cobra.Command {
	var config string
	var agents []string
	cmd := &cobra.Command{
		Use: "setup", Short: "Prepare a project in a git repository.", Args: exactly(),
		Long: "It makes the runtime folders and an empty contract, or installs the given one, and records the\n" +
			"default branch. Running it again changes nothing. No agent and no service is started, but for\n" +
			"--agent: it finds an agent on PATH, asks its program for its version, and adds its manifest to\n" +
			"the contract, with the variables of its own that are set now, by name. Read it through.",
		Example: "  greatminds setup\n  greatminds setup --execution-config execution.yaml\n  greatminds setup --agent claude --agent gemini",
		RunE: func(cmd *cobra.Command, _ []string) error {
			schema, err := contract.LoadSchema(a.Getenv)
			if err != nil {
				return err
			}
			request := setup.Request{ProjectDir: a.Cwd, Schema: schema, Disk: durable.NewDisk(nil), Git: setup.GitTool(a.Environ)}
			if a.projectDir != "" {
				request.ProjectDir = a.absolute(a.projectDir)
			}
			if cmd.Flags().Changed("execution-config") {
				request.ExecutionConfig = a.absolute(config)
			}
			if len(agents) > 0 {
				if request.ExecutionConfig != "" {
					return usage(cmd, "give --agent or --execution-config, not both: a contract is installed as it is")
				}
				if err := a.mayAddAgents(cmd.Context(), request.ProjectDir); err != nil {
					return err
				}
				report, err := setup.RunWithAgents(cmd.Context(), request, agents, setup.Look{Getenv: a.Getenv})
				if err != nil {
					return err
				}
				return a.print(report)
			}
			report, err := setup.Run(cmd.Context(), request)
			if err != nil {
				return err
			}
			return a.print(report)
		},
	}
	cmd.Flags().StringVar(&config, "execution-config", "", "contract `file` to install (default: an empty contract)")
	cmd.Flags().StringArrayVar(&agents, "agent", nil, "`name` of an agent to add, as `greatminds agent presets` lists them (repeatable)")
	cmd.Flags().StringVar(&a.projectDir, "project-dir", "", "`folder` to prepare (default: the working folder)")
	return exits(cmd, "  0 done, 1 git is missing, too old, or finds no repository, or an agent is not installed,\n  2 the contract is not valid, another one is installed, or it has the agent, 3 --agent from inside\n  a run, 4 storage conflict, or the daemon does not answer.")
}

// mayAddAgents refuses an assigned agent that adds others to its project. A folder that is none has no
// daemon to ask.
func (a *app) mayAddAgents(ctx context.Context, dir string) error {
	const doing = "add agents"
	p, err := contract.ProjectAt(dir)
	if err != nil {
		return a.notAssigned(doing)
	}
	return a.operatorOnly(ctx, p, doing)
}

func (a *app) projectPresets() *cobra.Command {
	cmd := &cobra.Command{
		Use: "presets", Short: "List the role rosters that can be put into a contract.", Args: exactly(),
		Example: "  greatminds project presets",
		RunE:    func(*cobra.Command, []string) error { return a.print(setup.Presets()) },
	}
	return exits(cmd, "")
}

func (a *app) projectPreset() *cobra.Command {
	request := setup.PresetRequest{}
	cmd := &cobra.Command{
		Use: "preset NAME", Short: "Show a contract with a preset's bindings, or write it.", Args: exactly("NAME"),
		Example: "  greatminds project preset local --agent my-agent --apply",
		RunE: func(cmd *cobra.Command, argv []string) error {
			names := []string{}
			for _, p := range setup.Presets().Presets {
				names = append(names, p.ID)
			}
			if err := among("NAME", cmd, argv[0], names...); err != nil {
				return err
			}
			if err := required(cmd, "agent"); err != nil {
				return err
			}
			var err error
			if request.Project, err = a.project(); err != nil {
				return err
			}
			if request.Apply {
				if err := a.operatorOnly(cmd.Context(), request.Project, "bind agents to roles"); err != nil {
					return err
				}
			}
			if request.Schema, err = contract.LoadSchema(a.Getenv); err != nil {
				return err
			}
			request.Preset, request.Disk = argv[0], durable.NewDisk(nil)
			report, err := setup.UsePreset(cmd.Context(), request)
			if err != nil {
				return fmt.Errorf("preset %s: %w", argv[0], err)
			}
			return a.print(report)
		},
	}
	cmd.Flags().StringVar(&request.Agent, "agent", "", "`id` of the agent manifest that takes the roles (required)")
	cmd.Flags().BoolVar(&request.Apply, "apply", false, "write it")
	return exits(a.takesProject(cmd), "  0 done, 1 no project, 2 no such agent, other bindings stand in the way, not set up, or wrong\n  usage, 3 --apply from inside a run, 4 storage conflict, or the daemon does not answer.")
}
