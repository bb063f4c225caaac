package main

import (
	"github.com/spf13/cobra"

	"greatminds/cmd/cli"
	"greatminds/demo"
)

// demoCommand tells the product's story on a small real project.
func demoCommand(w cli.World) *cobra.Command {
	var keep bool
	var realAgent bool
	cmd := &cobra.Command{
		Use:   "demo [--keep] [--agent ARGV...]",
		Short: "Take a small real task from plan to merged, through a real daemon, and show how.",
		Long: "It makes a Go module with a failing test in a temporary git repository, files and plans a task,\n" +
			"and lets coordd take it through developer, tester, reviewer and merge. The agents are scripted;\n" +
			"with --agent a real ACP agent is used. Nothing is left running or, without --keep, on disk.",
		Example: "  greatminds demo\n  greatminds demo --keep\n  greatminds demo --agent opencode acp",
		Args: func(cmd *cobra.Command, args []string) error {
			if realAgent == (len(args) > 0) {
				return nil
			}
			return cli.Usage(cmd, "--agent takes the agent's argv after it, and nothing else takes arguments")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return demo.Run(cmd.Context(), demo.Options{CLI: []string{w.Exe}, Agent: args, Keep: keep, Out: w.Stdout,
				Terminal: w.Terminal, Now: w.Now, Getenv: w.Getenv, Environ: w.Environ, Pass: names(w.Environ, realAgent)})
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the sample project on disk")
	cmd.Flags().BoolVar(&realAgent, "agent", false, "use the real ACP agent whose `argv` follows")
	return cli.Exits(cmd, "  0 the task was merged, 1 it was not, or git or go is missing, 2 wrong usage,\n  130 interrupted.")
}

// names lists what a real agent may need of the environment: all of it, as in a terminal.
func names(environ []string, realAgent bool) []string {
	if !realAgent {
		return nil
	}
	var out []string
	for _, v := range environ {
		for i := range v {
			if v[i] == '=' {
				out = append(out, v[:i])
				break
			}
		}
	}
	return out
}
