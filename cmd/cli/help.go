package cli

import "github.com/spf13/cobra"

const helpTemplate = `{{.Short}}{{with .Long}}

{{. | trimTrailingWhitespaces}}{{end}}

{{.UsageString}}`

const usageTemplate = `Usage: {{if .Runnable}}{{.UseLine}}{{else}}{{.CommandPath}} COMMAND{{end}}
{{- if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}
{{- if .HasAvailableLocalFlags}}

Options:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
{{- if .HasAvailableInheritedFlags}}

Options of every command:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
{{- if .HasExample}}

Example:
{{.Example}}{{end}}

Exit status:
{{with index .Annotations "exit"}}{{.}}{{else}}  0 done, 2 wrong usage.{{end}}
`

// Exits documents the exit statuses of a command that another package adds.
func Exits(cmd *cobra.Command, text string) *cobra.Command { return exits(cmd, text) }

// exits documents a command's exit statuses in its help.
func exits(cmd *cobra.Command, text string) *cobra.Command {
	cmd.Annotations = map[string]string{"exit": text}
	return cmd
}

// The exit statuses that most commands share.
const (
	exitRead   = "  0 done, 1 no project or nothing of that name, 2 wrong usage or an invalid contract,\n  4 the store cannot be read."
	exitRuns   = "  0 done, 1 no project, 2 unknown run, wrong usage or an invalid contract,\n  4 the store cannot be read."
	exitChange = "  0 done, 1 no project, 2 refused or wrong usage, 3 not the operator,\n  4 storage or lock conflict, or the daemon does not answer."
	exitRun    = "  0 done, 1 not found, 2 refused or wrong usage, 3 no valid run credential,\n  4 storage conflict, or the daemon does not answer."
	exitTask   = "  0 done, 1 not found, or the caller's role is missing, 2 a check refused it,\n  3 the role may not do it, 4 storage, lock or worktree conflict."
)
