package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"greatminds/internal/termsafe"
	"greatminds/setup"
)

// agentGroup holds what is about agents themselves, and about no run of theirs.
func (a *app) agentGroup() *cobra.Command {
	agent := group(&cobra.Command{Use: "agent", Short: "Find agents on this machine, and try one without a task.",
		Example: "  greatminds agent presets"})
	agent.AddCommand(a.agentPresets(), a.agentProbe())
	return agent
}

func (a *app) agentPresets() *cobra.Command {
	var wait float64
	cmd := &cobra.Command{
		Use: "presets", Short: "List the agents that are known, which of them are installed, and when each asks for permissions.",
		Args: exactly(),
		Long: "Every known agent that is on PATH is started and asked for its version, with --version or an\n" +
			"ACP initialize. Nothing is changed. On a terminal it is a table, else JSON.",
		Example: "  greatminds agent presets\n  greatminds agent presets --json | jq '.agents[] | select(.installed)'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			patience, err := seconds(cmd, "timeout", wait, 0.1)
			if err != nil {
				return err
			}
			list, err := setup.Look{Getenv: a.Getenv, Patience: patience}.Agents(cmd.Context())
			if err != nil {
				return err
			}
			if a.json || !a.Terminal {
				return a.print(list)
			}
			return a.say(strings.TrimRight(agentTable(list), "\n"))
		},
	}
	cmd.Flags().Float64Var(&wait, "timeout", setup.AgentPatience.Seconds(), "most `seconds` that one program may take to tell its version")
	return exits(cmd, "")
}

// agentTable is the list for a person.
func agentTable(l setup.AgentList) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "AGENT\tVERSION\tASKS FOR PERMISSIONS\tLOGIN\tPROGRAM")
	for _, p := range l.Agents {
		program := "not installed: " + p.Install
		if p.Path != nil {
			program = *p.Path
		}
		if p.Path != nil && !p.Installed {
			program += " (not complete)"
		}
		row := []string{p.ID, versionCell(p), askingCell(p), loginCell(p.Login), program}
		for i, cell := range row {
			row[i] = termsafe.Line(cell)
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // writes into memory
	for _, p := range l.Agents {
		if p.Path == nil && len(p.Login.Set) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", p.Title)
		if p.Unknown != nil {
			fmt.Fprintf(&b, "  %s\n", termsafe.Line(*p.Unknown))
		}
		for _, note := range p.Notes {
			fmt.Fprintf(&b, "  %s\n", termsafe.Line(note))
		}
	}
	return b.String()
}

func versionCell(p setup.AgentPreset) string {
	switch {
	case p.Version != nil:
		return *p.Version
	case p.Path != nil:
		return "unknown"
	}
	return "-"
}

func askingCell(p setup.AgentPreset) string {
	switch {
	case p.Mode != nil:
		return "in mode " + *p.Mode
	case p.Asking == "never":
		return "never"
	case p.Asking == "by_own_config":
		return "where its own configuration says so"
	}
	return "by default"
}

func loginCell(l setup.Login) string {
	if len(l.Credentials) == 0 {
		return "its own"
	}
	return strings.Join(l.Credentials, " or ")
}
