package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/control"
	"greatminds/supervisor/ops"
)

// maxInline bounds a decision given on the command line, in bytes. E-178.
const maxInline = 65536

func (a *app) runContract() *cobra.Command {
	var args ops.ContractArgs
	cmd := &cobra.Command{
		Use: "contract", Short: "Show what the calling run is assigned, as JSON.", Args: exactly(),
		Example: "  greatminds run contract\n  greatminds run contract --schema",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if args.Schema && args.Decision {
				return usage(cmd, "give only one of --schema and --decision")
			}
			answer, err := a.runCall(cmd.Context(), "run contract", "run.contract", args)
			if err != nil {
				return err
			}
			return a.print(answer)
		},
	}
	cmd.Flags().BoolVar(&args.Schema, "schema", false, "show the schema that is pinned to the run instead")
	cmd.Flags().BoolVar(&args.Decision, "decision", false, "show the JSON Schema of the decisions that the run may submit instead")
	return exits(a.takesProject(cmd), exitRun)
}

// runCall performs an operation for the run that calls, never in process.
func (a *app) runCall(ctx context.Context, command, op string, args any) (json.RawMessage, error) {
	p, err := a.project()
	if err != nil {
		return nil, err
	}
	if err := a.needCredential(p, command); err != nil {
		return nil, err
	}
	return a.doIn(ctx, p, op, args)
}

func (a *app) runSubmit() *cobra.Command {
	var file, text string
	cmd := &cobra.Command{
		Use: "submit", Short: "Submit the calling run's decision and print its receipt.", Args: exactly(),
		Long: "The decision is checked with the rules that apply it later, while it can still be mended:\n" +
			"a refusal names every reason, stores nothing, and leaves the run free to submit again.\n" +
			"\"received\" means durably accepted, not applied. The same decision again gets its receipt.",
		Example: `  greatminds run submit --json '{"decision":"no_change","payload":{"reason":"already done"}}'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			inline := cmd.Flags().Changed("json")
			if inline == cmd.Flags().Changed("file") {
				return usage(cmd, "give exactly one of --file and --json")
			}
			if inline && len(text) > maxInline {
				return refusal.New(refusal.CodeUsage, "write it to a file and give --file",
					"the decision is %d bytes long, but --json takes %d", len(text), maxInline)
			}
			if !inline {
				var err error
				if text, err = a.readFile(file); err != nil {
					return err
				}
			}
			answer, err := a.runCall(cmd.Context(), "run submit", "run.submit", ops.SubmitArgs{Text: text})
			if err != nil {
				return err
			}
			return a.print(answer)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "`file` that holds the decision as JSON")
	cmd.Flags().StringVar(&text, "json", "", "the decision itself, as one JSON `text` of at most 65536 bytes")
	return exits(a.takesProject(cmd), "  0 received, or received before, 2 refused with every reason, 3 no valid run credential or\n  not in the run's turn, 4 storage conflict, or the daemon does not answer.")
}

func (a *app) runCommand() *cobra.Command {
	var args ops.CommandArgs
	var id string
	cmd := &cobra.Command{
		Use: "command COMMAND_ID", Short: "Ask the daemon to run a configured command, and optionally wait for its receipt.",
		Args:    exactly("COMMAND_ID"),
		Long:    "The daemon runs it, never this program. --wait only waits: when it ends, the command goes on.\nThe same request id again returns the same receipt and runs nothing.",
		Example: "  greatminds run command unit-tests --request-id tests-1 --wait 60",
		RunE: func(cmd *cobra.Command, argv []string) error {
			if _, err := seconds(cmd, "wait", args.Wait, 0); err != nil {
				return err
			}
			if err := previewRange(cmd, args.OutputLimit); err != nil {
				return err
			}
			args.Command, args.Request = argv[0], runstore.CommandID(id)
			if id == "" {
				args.Request = runstore.CommandID(control.NewID())
			}
			answer, err := a.commandReceipt(cmd.Context(), args)
			if err != nil {
				return err
			}
			return a.print(answer)
		},
	}
	f := cmd.Flags()
	f.StringVar(&id, "request-id", "", "`id` of this request (default: a fresh one)")
	f.Float64Var(&args.Wait, "wait", 0, "most `seconds` to wait for the outcome")
	outputLimit(cmd, &args.OutputLimit)
	return exits(a.takesProject(cmd), "  0 the receipt was printed, whatever the command came to, 1 unknown command, or an earlier\n  one is open, 2 wrong usage, 3 no valid run credential or wrong role, 4 storage conflict.")
}

// commandReceipt asks for a command and waits for its outcome, in slices that one call may last.
func (a *app) commandReceipt(ctx context.Context, args ops.CommandArgs) (json.RawMessage, error) {
	p, err := a.project()
	if err != nil {
		return nil, err
	}
	if err := a.needCredential(p, "run command"); err != nil {
		return nil, err
	}
	end := a.Now().Add(time.Duration(args.Wait * float64(time.Second)))
	for {
		args.Wait = min(max(end.Sub(a.Now()).Seconds(), 0), waitSlice.Seconds())
		answer, err := a.waitIn(ctx, p, args)
		if err != nil {
			return nil, err
		}
		var receipt struct{ Status string }
		if err := json.Unmarshal(answer, &receipt); err != nil {
			return nil, err
		}
		open := receipt.Status == "queued" || receipt.Status == "starting" || receipt.Status == "running"
		if !open || !a.Now().Before(end) {
			return answer, nil
		}
	}
}

// waitSlice is how long one call waits in the daemon.
const waitSlice = 60 * time.Second

func (a *app) waitIn(ctx context.Context, p contract.Project, args ops.CommandArgs) (json.RawMessage, error) {
	bounded, cancel := context.WithTimeout(ctx, waitSlice+time.Minute)
	defer cancel()
	return a.doIn(bounded, p, "run.command", args)
}

func (a *app) runCommandStatus() *cobra.Command {
	var args ops.CommandStatusArgs
	cmd := &cobra.Command{
		Use: "command-status REQUEST_ID", Short: "Show the receipt of a command request, with a preview of its output.",
		Args: exactly("REQUEST_ID"), Long: "An operator sees every receipt, a run its own.",
		Example: "  greatminds run command-status tests-1",
		RunE: func(cmd *cobra.Command, argv []string) error {
			if err := previewRange(cmd, args.OutputLimit); err != nil {
				return err
			}
			args.Request = runstore.CommandID(argv[0])
			p, err := a.project()
			if err != nil {
				return err
			}
			var answer json.RawMessage
			if run, token := a.credential(p); run != "" || token != "" {
				answer, err = a.doIn(cmd.Context(), p, "run.command-status", args)
			} else {
				answer, err = a.read(cmd.Context(), p, "run.command-status", args)
			}
			if err != nil {
				return err
			}
			return a.print(answer)
		},
	}
	outputLimit(cmd, &args.OutputLimit)
	return exits(a.takesProject(cmd), "  0 done, 1 unknown request, 2 wrong usage, 3 another run's request, 4 storage conflict.")
}

func (a *app) runCommandResolve() *cobra.Command {
	var args ops.ResolveArgs
	cmd := &cobra.Command{
		Use: "command-resolve REQUEST_ID", Short: "Acknowledge a command whose outcome is unknown, after looking at its effects.",
		Args: exactly("REQUEST_ID"), Long: "It runs nothing and makes no evidence; another attempt is a `greatminds run retry` of its own.",
		Example: "  greatminds run command-resolve tests-1 --reason \"left no trace\"",
		RunE: func(cmd *cobra.Command, argv []string) error {
			if err := required(cmd, "reason"); err != nil {
				return err
			}
			args.Request = runstore.CommandID(argv[0])
			answer, err := a.do(cmd.Context(), "run.command-resolve", args)
			if err != nil {
				return err
			}
			return a.print(answer)
		},
	}
	cmd.Flags().StringVar(&args.Reason, "reason", "", "what was found, 1 to 1000 characters (required)")
	return exits(a.takesProject(cmd), "  0 done, 1 unknown, or not in needs_recovery, 2 wrong usage, 3 not the operator, 4 storage conflict.")
}

func outputLimit(cmd *cobra.Command, limit *int) {
	cmd.Flags().IntVar(limit, "output-limit", 8192, "most `bytes` of each output stream to show, 0 to 65536")
}

func previewRange(cmd *cobra.Command, limit int) error {
	if limit < 0 || limit > 65536 {
		return usage(cmd, "invalid value for --output-limit: %d is not in the range 0 to 65536", limit)
	}
	return nil
}
