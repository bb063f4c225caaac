package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/internal/termsafe"
	"greatminds/tasks"
)

func (a *app) taskShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "Print a task file and the queue that it stands in.", Args: exactly("ID"),
		Example: "  greatminds task show 7",
		RunE: func(_ *cobra.Command, argv []string) error {
			tree, _, err := a.tree()
			if err != nil {
				return err
			}
			ref, data, err := tree.Show(argv[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.print(struct {
					Version int `json:"version"`
					tasks.Ref
					Text string `json:"text"`
				}{1, ref, string(data)})
			}
			_, err = fmt.Fprintf(a.Stdout, "# queue: %s\n%s", ref.Queue, a.shown(string(data)))
			return err
		},
	}
	return exits(a.takesProject(cmd), exitRead)
}

// shown is a file's text as it goes to standard output: escaped for a terminal, as it is into a
// pipe.
func (a *app) shown(text string) string {
	if a.Terminal {
		return termsafe.Text(text)
	}
	return text
}

func (a *app) taskList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list QUEUE", Short: "List the task files of a queue.", Args: exactly("QUEUE"),
		Example: "  greatminds task list feature_dev --json",
		RunE: func(_ *cobra.Command, argv []string) error {
			tree, _, err := a.tree()
			if err != nil {
				return err
			}
			listed, err := tree.List(contract.Queue(argv[0]))
			if err != nil {
				return err
			}
			if a.json {
				if listed == nil {
					listed = []tasks.Listed{}
				}
				return a.print(listed)
			}
			for _, l := range listed {
				if err := a.saySafe(l.File); err != nil {
					return err
				}
			}
			return nil
		},
	}
	return exits(a.takesProject(cmd), "  0 done, 1 no project or no such queue, 2 wrong usage.")
}

func (a *app) taskValidate() *cobra.Command {
	var byID, file string
	cmd := &cobra.Command{
		Use: "validate [ID]", Short: "Check a task file against the schema.", Args: upTo(1),
		Example: "  greatminds task validate 7\n  greatminds task validate --file draft.yaml",
		RunE: func(cmd *cobra.Command, argv []string) error {
			given := 0
			for _, set := range []bool{len(argv) == 1, cmd.Flags().Changed("id"), cmd.Flags().Changed("file")} {
				if set {
					given++
				}
			}
			if given != 1 {
				return usage(cmd, "give exactly one of ID, --id and --file")
			}
			if len(argv) == 1 {
				byID = argv[0]
			}
			path, err := a.validate(byID, file)
			if err != nil {
				return err
			}
			return a.printOr(struct {
				Version int    `json:"version"`
				Valid   string `json:"valid"`
			}{1, path}, "valid: "+path)
		},
	}
	cmd.Flags().StringVar(&byID, "id", "", "`id` of the task")
	cmd.Flags().StringVar(&file, "file", "", "task `file`, wherever it lies")
	return exits(a.takesProject(cmd), "  0 valid, 1 no project or no such task, 2 not valid, or wrong usage.")
}

func (a *app) validate(id, file string) (string, error) {
	tree, p, err := a.tree()
	if err != nil {
		return "", err
	}
	if file != "" {
		path := a.absolute(file)
		return path, tree.ValidateFile(path)
	}
	ref, err := tree.Validate(id)
	return filepath.Join(p.Runtime, filepath.FromSlash(ref.File)), err
}

func (a *app) taskPaths() *cobra.Command {
	cmd := &cobra.Command{
		Use: "paths [ID]", Short: "Print where a task, or the project's task state, lies.", Args: upTo(1),
		Example: "  greatminds task paths 7",
		RunE: func(_ *cobra.Command, argv []string) error {
			tree, p, err := a.tree()
			if err != nil {
				return err
			}
			if len(argv) == 0 {
				return a.treePaths(tree.Paths())
			}
			ref, err := tree.Find(argv[0])
			if err != nil {
				return err
			}
			path := filepath.Join(p.Runtime, filepath.FromSlash(ref.File))
			return a.printOr(struct {
				Version int            `json:"version"`
				Queue   contract.Queue `json:"queue"`
				Path    string         `json:"path"`
			}{1, ref.Queue, path}, fmt.Sprintf("queue: %s\npath:  %s", ref.Queue, path))
		},
	}
	return exits(a.takesProject(cmd), exitRead)
}

func (a *app) treePaths(at tasks.Paths) error {
	return a.printOr(struct {
		Version   int    `json:"version"`
		Coord     string `json:"coord"`
		Canon     string `json:"canon"`
		IntentDir string `json:"intent_dir"`
		Journal   string `json:"journal"`
	}{1, at.Coord, at.Canon, at.IntentDir, at.Journal},
		fmt.Sprintf("coord:        %s\ncanon:        %s\nintent_dir:   %s\njournal:      %s", at.Coord, at.Canon, at.IntentDir, at.Journal))
}

func (a *app) journalGroup() *cobra.Command {
	journal := group(&cobra.Command{Use: "journal", Short: "Read the journal of task transitions.", Example: "  greatminds journal tail"})
	journal.AddCommand(a.journalTail())
	return journal
}

func (a *app) journalTail() *cobra.Command {
	var n int
	var role, task string
	cmd := &cobra.Command{
		Use: "tail", Short: "Print the last journal lines.", Args: exactly(), Example: "  greatminds journal tail -n 5 --task 7",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 {
				return usage(cmd, "invalid value for --num: %d is not positive", n)
			}
			tree, _, err := a.tree()
			if err != nil {
				return err
			}
			lines, err := tree.Journal()
			if err != nil {
				return err
			}
			if lines == nil {
				return refusal.New(refusal.CodeUsage, "file a task first", "there is no journal at %s", tree.Paths().Journal)
			}
			lines = lastLines(lines, n, role, task)
			if a.json {
				return a.print(lines)
			}
			return a.sayJournal(lines)
		},
	}
	f := cmd.Flags()
	f.IntVarP(&n, "num", "n", 20, "how many of the newest lines that fit")
	f.StringVar(&role, "role", "", "only lines of this acting `role`")
	f.StringVar(&task, "task", "", "only lines of this task, by short or full `id`")
	return exits(a.takesProject(cmd), "  0 done, 1 no project, 2 no journal, or wrong usage, 4 the journal is damaged.")
}

func lastLines(lines []tasks.JournalLine, n int, role, task string) []tasks.JournalLine {
	kept := []tasks.JournalLine{}
	for _, l := range lines {
		if (role == "" || l.Actor == role) && (task == "" || sameTask(l.Task, task)) {
			kept = append(kept, l)
		}
	}
	return kept[max(0, len(kept)-n):]
}

// sameTask compares two ids that may each be short: by their number, else as they are.
func sameTask(one, other string) bool {
	a, errA := number(one)
	b, errB := number(other)
	return errA == nil && errB == nil && a == b || one == other
}

func number(id string) (int, error) {
	n, digits := 0, 0
	for _, r := range id {
		if r == '-' && digits > 0 {
			break
		}
		if r < '0' || r > '9' || digits == 4 {
			return 0, errors.New("no number")
		}
		n, digits = n*10+int(r-'0'), digits+1
	}
	if digits == 0 {
		return 0, errors.New("no number")
	}
	return n, nil
}

func (a *app) sayJournal(lines []tasks.JournalLine) error {
	for _, l := range lines {
		text := fmt.Sprintf("%s  %s  %s  %s → %s", l.T, l.Actor, l.Task, l.From, l.To)
		if l.Reason != "" {
			text += "  (" + l.Reason + ")"
		}
		if err := a.saySafe(text); err != nil {
			return err
		}
	}
	return nil
}
