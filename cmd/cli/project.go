package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

func (a *app) projectGroup() *cobra.Command {
	project := group(&cobra.Command{Use: "project", Short: "Show what the project has agreed on.", Example: "  greatminds project execution"})
	project.AddCommand(a.projectExecution(), a.projectSchema(), a.projectShow(), a.projectPresets(), a.projectPreset())
	return project
}

func (a *app) projectExecution() *cobra.Command {
	var config string
	cmd := &cobra.Command{
		Use: "execution", Short: "Check the execution contract and show it with every default.", Args: exactly(),
		Long:    "Nothing is started and no installed version is looked at: version strings are labels of intent.",
		Example: "  greatminds project execution --config draft.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			schema, err := contract.LoadSchema(a.Getenv)
			if err != nil {
				return err
			}
			path := a.absolute(config)
			if !cmd.Flags().Changed("config") {
				p, err := a.project()
				if err != nil {
					return err
				}
				path = p.ExecutionPath()
			}
			agreed, err := contract.Load(contract.Project{}, path, schema)
			if err != nil {
				return err
			}
			_, err = a.Stdout.Write(agreed.Document(path, schema))
			return err
		},
	}
	cmd.Flags().StringVar(&config, "config", "", "contract `file` (default: coordination/execution.yaml of the project)")
	return exits(a.takesProject(cmd), "  0 valid, 1 no project, 2 not valid or not readable, or wrong usage.")
}

func (a *app) projectSchema() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use: "schema", Short: "Print the workflow schema in force, or check the project's copy of it.", Args: exactly(),
		Long:    "The copy in the project is for people to read; nothing is decided from it.",
		Example: "  greatminds project schema --check",
		RunE: func(_ *cobra.Command, _ []string) error {
			schema, err := contract.LoadSchema(a.Getenv)
			if err != nil {
				return err
			}
			if !check && !a.json {
				_, err := a.Stdout.Write(schema.Text)
				return err
			}
			p, err := a.project()
			if err != nil {
				return err
			}
			mirror := contract.MirrorOf(p, schema)
			if err := a.saySchema(schema, mirror, check); err != nil {
				return err
			}
			if check && mirror.Status != contract.MirrorCurrent {
				return refusal.New(refusal.CodeUsage, "remove the copy and run `greatminds setup` to write it anew",
					"the project's copy of the schema is %s (%s)", mirror.Status, mirror.Path)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "compare the project's copy instead of printing the schema")
	return exits(a.takesProject(cmd), "  0 done, 1 no project or no schema, 2 the copy is not current (with --check), or wrong usage.")
}

func (a *app) saySchema(s *contract.Schema, m contract.Mirror, check bool) error {
	if a.json {
		_, err := a.Stdout.Write(s.Document(m, check))
		return err
	}
	return a.saySafe(fmt.Sprintf("schema: %s\nsha256: %s\nproject copy: %s (%s)", s.Source, s.SHA256, m.Status, m.Path))
}

func (a *app) projectShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show", Short: "Print the project's PROJECT.md.", Args: exactly(), Example: "  greatminds project show",
		RunE: func(_ *cobra.Command, _ []string) error {
			p, err := a.project()
			if err != nil {
				return err
			}
			path := filepath.Join(p.Root, "coordination", "PROJECT.md")
			data, err := contract.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				return refusal.New(refusal.CodeNotFound, "write it: anything worth knowing about the project", "there is no file %s", path)
			}
			if err != nil {
				return err
			}
			if a.json {
				return a.print(struct {
					Version int    `json:"version"`
					Path    string `json:"path"`
					Text    string `json:"text"`
				}{1, path, string(data)})
			}
			_, err = fmt.Fprint(a.Stdout, a.shown(string(data)))
			return err
		},
	}
	return exits(a.takesProject(cmd), exitRead)
}
