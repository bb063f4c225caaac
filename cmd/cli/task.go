package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/termsafe"
	"greatminds/supervisor/ops"
	"greatminds/tasks"
)

// blockKinds are the kinds that an operator may append.
var blockKinds = []string{"blocked", "implementation", "plan", "reader_review", "review", "rollback", "session_iteration", "tests", "triage"}

func (a *app) taskGroup() *cobra.Command {
	task := group(&cobra.Command{Use: "task", Short: "File, move, inspect and check tasks.", Example: "  greatminds task list feature_dev"})
	task.AddCommand(a.taskNew(), a.taskMove(), a.taskAppend(), a.taskWithdraw(),
		a.taskShow(), a.taskList(), a.taskValidate(), a.taskPaths())
	return task
}

// tree opens the task files of the command's project for reading. Reading needs no lease.
func (a *app) tree() (*tasks.Tree, contract.Project, error) {
	p, err := a.project()
	if err != nil {
		return nil, p, err
	}
	schema, err := contract.LoadSchema(a.Getenv)
	if err != nil {
		return nil, p, err
	}
	return tasks.Open(p, schema, durable.NewDisk(nil), a.Now), p, nil
}

func (a *app) taskNew() *cobra.Command {
	var args ops.NewTaskArgs
	var inQueue string
	cmd := &cobra.Command{
		Use: "new", Short: "File a task.", Args: exactly(),
		Example: "  GREATMINDS_ROLE=ARCHITECT-PLANNER greatminds task new --stream product \\\n    --title \"Add a greeting\" --kind feature --scope backend",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "stream", "title"); err != nil {
				return err
			}
			if err := oneOf(cmd, "stream", args.Stream, "product", "review_session"); err != nil {
				return err
			}
			if err := oneOf(cmd, "priority", args.Priority, "low", "normal", "high"); err != nil {
				return err
			}
			var err error
			if args.Description, err = a.readText(args.Description); err != nil {
				return err
			}
			args.Scenarios, args.Hosts, args.EvidenceFor = split(args.Scenarios), split(args.Hosts), split(args.EvidenceFor)
			args.InQueue = contract.Queue(inQueue)
			var filed ops.Filed
			answer, err := a.into(cmd.Context(), "task.new", args, &filed)
			if err != nil {
				return err
			}
			return a.printOr(answer, "created "+filed.Path)
		},
	}
	f := cmd.Flags()
	f.StringVar(&args.Stream, "stream", "", "product or review_session (required)")
	f.StringVar(&args.Title, "title", "", "title of at most 200 characters (required)")
	f.StringVar(&args.Reporter, "reporter", "", "`role` that reports it (default: the caller's)")
	f.StringVar(&args.Priority, "priority", "normal", "low, normal or high")
	f.StringVar(&args.Kind, "kind", "", "kind of a product task: bugfix, docs, feature, ops, release or research")
	f.StringVar(&args.Scope, "scope", "", "scope of a product task: backend, docs, release, research, stand or ui")
	f.StringVar(&args.Mode, "mode", "", "mode of a review session: A, B or C")
	f.StringVar(&args.TargetFunctionality, "target-functionality", "", "what a review session looks at")
	f.StringArrayVar(&args.Scenarios, "scenarios", nil, "scenario `ids`; repeat the flag or separate them by commas")
	f.StringArrayVar(&args.Hosts, "hosts", nil, "`hosts`; repeat the flag or separate them by commas")
	f.StringArrayVar(&args.EvidenceFor, "evidence-for", nil, "task `ids` that it is evidence for; repeat the flag or separate them by commas")
	f.StringVar(&args.Description, "description", "", "text, @FILE, or - for standard input")
	f.StringVar(&inQueue, "in-queue", "", "`queue` to file it in (default: the stream's)")
	f.StringVar(&args.Seq, "seq", "", "four digits to use instead of the next `number`")
	f.StringVar(&args.Reason, "reason", "", "reason for the journal")
	return exits(a.takesProject(cmd), exitTask)
}

// split takes list flags apart: repeated, separated by commas, or as [a, b].
func split(given []string) []string {
	var out []string
	for _, g := range given {
		g = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(g), "["), "]")
		for item := range strings.SplitSeq(g, ",") {
			if item = strings.TrimSpace(item); item != "" {
				out = append(out, item)
			}
		}
	}
	return out
}

func (a *app) taskMove() *cobra.Command {
	var args ops.MoveArgs
	cmd := &cobra.Command{
		Use: "mv ID TO_QUEUE", Short: "Move a task to another queue, where the schema lets the caller's role.",
		Args: exactly("ID", "TO_QUEUE"), Example: "  GREATMINDS_ROLE=ARCHITECT-PLANNER greatminds task mv 7 feature_plan",
		RunE: func(cmd *cobra.Command, argv []string) error {
			args.ID, args.To = argv[0], contract.Queue(argv[1])
			return a.move(cmd, "task.mv", "moved", argv[0], args)
		},
	}
	cmd.Flags().StringVar(&args.Reason, "reason", "", "reason for the journal")
	return exits(a.takesProject(cmd), exitTask)
}

func (a *app) taskWithdraw() *cobra.Command {
	var args ops.WithdrawArgs
	cmd := &cobra.Command{
		Use: "withdraw ID", Short: "Take a task out of work for good.", Args: exactly("ID"),
		Example: "  GREATMINDS_ROLE=ARCHITECT-PLANNER greatminds task withdraw 7 --reason \"no longer wanted\"",
		RunE: func(cmd *cobra.Command, argv []string) error {
			if err := required(cmd, "reason"); err != nil {
				return err
			}
			args.ID = argv[0]
			return a.move(cmd, "task.withdraw", "withdrew", argv[0], args)
		},
	}
	cmd.Flags().StringVar(&args.Reason, "reason", "", "why (required)")
	return exits(a.takesProject(cmd), exitTask)
}

// move performs an operation that moves a task and says so, with the id as it was typed.
func (a *app) move(cmd *cobra.Command, op, verb, typed string, args any) error {
	var moved ops.Moved
	answer, err := a.into(cmd.Context(), op, args, &moved)
	if err != nil {
		return err
	}
	if moved.Warning != "" {
		a.complain("warning: " + termsafe.Text(moved.Warning))
	}
	return a.printOr(answer, fmt.Sprintf("%s %s: %s → %s", verb, typed, moved.From, moved.To))
}

func (a *app) taskAppend() *cobra.Command {
	var id, body, bodyFile string
	var fields []string
	cmd := &cobra.Command{
		Use: "append-block KIND", Short: "File an evidence block on a task.", Args: exactly("KIND"),
		Long:    "KIND is one of " + strings.Join(blockKinds, ", ") + ".",
		Example: "  GREATMINDS_ROLE=ARCHITECT-PLANNER greatminds task append-block triage --id 7 --body \"worth doing\"",
		RunE: func(cmd *cobra.Command, argv []string) error {
			if err := among("KIND", cmd, argv[0], blockKinds...); err != nil {
				return err
			}
			if err := required(cmd, "id"); err != nil {
				return err
			}
			args := ops.BlockArgs{ID: id, Kind: contract.BlockKind(argv[0]), Fields: fields}
			var err error
			if args.Body, err = a.body(cmd, body, bodyFile); err != nil {
				return err
			}
			var filed ops.Filed
			answer, err := a.into(cmd.Context(), "task.append-block", args, &filed)
			if err != nil {
				return err
			}
			return a.printOr(answer, fmt.Sprintf("appended %s block to %s", argv[0], filed.Path))
		},
	}
	f := cmd.Flags()
	f.StringVar(&id, "id", "", "`id` of the task (required)")
	f.StringArrayVar(&fields, "field", nil, "`key=value` of the block; repeat the flag")
	f.StringVar(&body, "body", "", "the block's text, @FILE, or - for standard input")
	f.StringVar(&bodyFile, "body-file", "", "`file` with the block's text, or - for standard input")
	return exits(a.takesProject(cmd), exitTask)
}

// body is a block's text from --body or --body-file, nil where neither is given.
func (a *app) body(cmd *cobra.Command, body, file string) (*string, error) {
	byFile, byText := cmd.Flags().Changed("body-file"), cmd.Flags().Changed("body")
	switch {
	case byFile && byText:
		return nil, usage(cmd, "give only one of --body and --body-file")
	case byFile && file != "-":
		body = "@" + file
	case byFile:
		body = "-"
	case !byText:
		return nil, nil
	}
	text, err := a.readText(body)
	return &text, err
}
