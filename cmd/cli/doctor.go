package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"greatminds/supervisor/ops"
)

// errFindings ends a doctor that found errors; its report was the answer.
var errFindings = errors.New("errors were found")

func (a *app) runDoctor() *cobra.Command {
	rebuild := false
	cmd := &cobra.Command{
		Use: "doctor", Short: "Inspect what is on record and on the disk, and name what is wrong.", Args: exactly(),
		Long: "Reads the project's files, also beside a daemon, and changes nothing. Errors are broken\n" +
			"promises of the runtime; warnings need a person. Every finding says what helps.\n" +
			"With --rebuild-index it first makes the index of finished work again, for which the\n" +
			"daemon must be stopped.",
		Example: "  greatminds run doctor --json | jq .findings",
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.project()
			if err != nil {
				return err
			}
			if rebuild {
				lines, err := rebuildIndex(cmd.Context(), a.World, p)
				if err != nil {
					return err
				}
				a.complain(fmt.Sprintf("note: the index of finished work was made again from %d records", lines))
			}
			files := ops.Files{Project: p, Getenv: a.Getenv, Now: a.Now, Dispatch: judge(a.World, p)}
			report := files.Doctor(cmd.Context(), a.Environ, commandOf(cmd.Root()))
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			if a.json {
				err = a.printLine(report)
			} else {
				err = a.saySafe(report.Text())
			}
			if err == nil && report.Errors() > 0 {
				return errFindings
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&rebuild, "rebuild-index", false, "make the index of finished work again from its records")
	return exits(a.takesProject(cmd), "  0 nothing broken, 1 errors were found or no project, 2 wrong usage, 4 the index\n  could not be made again.")
}

// commandOf tells whether a line begins with a command of the tree below root.
func commandOf(root *cobra.Command) func(line string) bool {
	return func(line string) bool {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != root.Name() {
			return false
		}
		found := root
		for _, word := range words[1:] {
			at := slices.IndexFunc(found.Commands(), func(c *cobra.Command) bool { return c.Name() == word })
			if at < 0 {
				break
			}
			found = found.Commands()[at]
		}
		return found != root && found.Runnable() && !found.HasSubCommands()
	}
}
