package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"greatminds/runstore"
	"greatminds/supervisor/ops"
	"greatminds/supervisor/status"
)

func (a *app) runGroup() *cobra.Command {
	run := group(&cobra.Command{Use: "run", Short: "Inspect and control supervised runs.", Example: "  greatminds run status"})
	run.AddCommand(a.runStatus(), a.runDoctor(), a.runEvents(), a.runList(), a.runShow(), a.runWatch(),
		a.runPaused("pause", "Stop claiming new runs; active ones go on.", "ACP dispatch paused"),
		a.runPaused("resume", "Claim runs again.", "ACP dispatch resumed"),
		a.runControl("cancel", "Ask the daemon to end a run within its limits."),
		a.runControl("retry", "Allow one more attempt after a run that has ended or waits."),
		a.runRepair(), a.runPermission(),
		a.runContract(), a.runSubmit(), a.runCommand(), a.runCommandStatus(), a.runCommandResolve(), a.runAccountResume())
	return run
}

func (a *app) runStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Show runs, assignments and what each held task waits for.", Args: exactly(),
		Long:    "Readable on a terminal; the versioned JSON document with --json or into a pipe.",
		Example: "  greatminds run status --json | jq .assignments",
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.project()
			if err != nil {
				return err
			}
			document, from, err := a.readFrom(cmd.Context(), p, "run.status", struct{}{}, 0)
			if err != nil {
				return err
			}
			if a.json || !a.Terminal {
				return a.print(document)
			}
			text, err := status.Text(document, a.Now(), from)
			if err != nil {
				return err
			}
			return a.saySafe(text)
		},
	}
	return exits(a.takesProject(cmd), exitRead)
}

func (a *app) runEvents() *cobra.Command {
	var args ops.EventsArgs
	var follow bool
	var interval float64
	cmd := &cobra.Command{
		Use: "events", Short: "Print the durable event stream as JSON Lines.", Args: exactly(),
		Long: "A record of kind events_gap says that older events were discarded; go on from its sequence.\n" +
			"With --follow it waits for new events, in the daemon or on the files, until it is interrupted\n" +
			"or nobody reads its output any more.",
		Example: "  greatminds run events --after 120 --follow",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if args.Limit < 1 || args.Limit > 10000 {
				return usage(cmd, "invalid value for --limit: %d is not in the range 1 to 10000", args.Limit)
			}
			pause, err := seconds(cmd, "interval", interval, 0.2)
			if err != nil {
				return err
			}
			return a.events(cmd.Context(), args, follow, pause)
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&args.After, "after", 0, "exclusive cursor: `sequence` of the last event already seen")
	f.IntVar(&args.Limit, "limit", 200, "most events of one page, 1 to 10000")
	f.BoolVar(&follow, "follow", false, "go on with new events until interrupted")
	f.Float64Var(&interval, "interval", 1, "accepted, at least 0.2 `seconds`; looked at that often only where changes cannot be watched")
	return exits(a.takesProject(cmd), exitRead)
}

// events prints one page of events, or follows them.
func (a *app) events(ctx context.Context, args ops.EventsArgs, follow bool, interval time.Duration) error {
	p, err := a.project()
	if err != nil {
		return err
	}
	if follow {
		return a.followEvents(ctx, p, args, interval)
	}
	data, err := a.read(ctx, p, "run.events", args)
	if err != nil {
		return err
	}
	_, err = a.sayEvents(data)
	return err
}

// sayEvents prints one page and returns the sequence of its last event, 0 for an empty page.
func (a *app) sayEvents(page json.RawMessage) (last uint64, err error) {
	var events []json.RawMessage
	if err := json.Unmarshal(page, &events); err != nil {
		return 0, err
	}
	for _, event := range events {
		var sorted map[string]json.RawMessage
		if err := json.Unmarshal(event, &sorted); err != nil {
			return last, err
		}
		if err := json.Unmarshal(sorted["sequence"], &last); err != nil {
			return last, err
		}
		if err := a.printLine(sorted); err != nil {
			return last, err
		}
		if a.Terminal && string(sorted["kind"]) == `"events_gap"` {
			a.complain(fmt.Sprintf("note: events up to %d are not kept any more; `greatminds run status` shows how things stand", last))
		}
	}
	return last, nil
}

func (a *app) runList() *cobra.Command {
	var args ops.ListArgs
	var after string
	cmd := &cobra.Command{
		Use: "list", Short: "List runs, active ones first, then those that ended last.", Args: exactly(),
		Long: "Lists every run that there has ever been, page by page; `run status` shows the newest alone.\n" +
			"Readable on a terminal; the versioned JSON document with --json or into a pipe.",
		Example: "  greatminds run list --limit 20\n  greatminds run list --after 3f2a9c... --json | jq .runs",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if args.Limit < 1 || args.Limit > 1000 {
				return usage(cmd, "invalid value for --limit: %d is not in the range 1 to 1000", args.Limit)
			}
			args.After = runstore.RunID(after)
			p, err := a.project()
			if err != nil {
				return err
			}
			page, err := a.read(cmd.Context(), p, "run.list", args)
			if err != nil {
				return err
			}
			if a.json || !a.Terminal {
				return a.print(page)
			}
			text, err := status.ListText(page, a.Now())
			if err != nil {
				return err
			}
			return a.saySafe(text)
		},
	}
	cmd.Flags().StringVar(&after, "after", "", "`RUN_ID` of the last run of the page before")
	cmd.Flags().IntVar(&args.Limit, "limit", 50, "most finished runs of one page, 1 to 1000")
	return exits(a.takesProject(cmd), exitRuns)
}

func (a *app) runShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show RUN_ID", Short: "Show everything on record about one run.", Args: exactly("RUN_ID"),
		Long: "Readable on a terminal; the versioned JSON document with --json or into a pipe. Its member\n" +
			"activity is what the agent was seen doing: masked, bounded, and no evidence.",
		Example: "  greatminds run show 3f2a9c...",
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.project()
			if err != nil {
				return err
			}
			answer, from, err := a.readFrom(cmd.Context(), p, "run.show", ops.RunArgs{Run: runstore.RunID(args[0])}, 0)
			if err != nil {
				return err
			}
			if a.asJSON() || !a.Terminal {
				return a.print(answer)
			}
			text, err := status.RunText(answer, a.Now(), from)
			if err != nil {
				return err
			}
			return a.saySafe(text)
		},
	}
	return exits(a.takesProject(cmd), exitRuns)
}

func (a *app) runPaused(verb, short, done string) *cobra.Command {
	cmd := &cobra.Command{
		Use: verb, Short: short, Args: exactly(), Example: "  greatminds run " + verb,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := a.do(cmd.Context(), "run."+verb, struct{}{})
			if err != nil {
				return err
			}
			return a.printOr(answer, done)
		},
	}
	return exits(a.takesProject(cmd), exitChange)
}

func (a *app) runControl(verb, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use: verb + " RUN_ID", Short: short, Args: exactly("RUN_ID"), Example: "  greatminds run " + verb + " 3f2a9c...",
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := a.do(cmd.Context(), "run."+verb, ops.RunArgs{Run: runstore.RunID(args[0])})
			if err != nil {
				return err
			}
			return a.printLine(answer)
		},
	}
	return exits(a.takesProject(cmd), exitChange)
}

func (a *app) runRepair() *cobra.Command {
	var args ops.RepairArgs
	cmd := &cobra.Command{
		Use: "repair", Short: "Finish an operation that needs recovery, or give it up.", Args: exactly(),
		Long:    "Without --abandon the operation is finished where that is certain to be safe.\nBoth commands stand beside the operation in `greatminds run status`.",
		Example: "  greatminds run repair --operation 3f2a9c-result\n  greatminds run repair --operation 3f2a9c-result --abandon --reason \"merged by hand\"",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "operation"); err != nil {
				return err
			}
			if args.Abandon && args.Reason == "" {
				return usage(cmd, "--abandon needs --reason")
			}
			answer, err := a.do(cmd.Context(), "run.repair", args)
			if err != nil {
				return err
			}
			return a.print(answer)
		},
	}
	f := cmd.Flags()
	f.StringVar(&args.Operation, "operation", "", "`id` of the operation (required)")
	f.BoolVar(&args.Abandon, "abandon", false, "give it up instead of finishing it")
	f.StringVar(&args.Reason, "reason", "", "why it is given up, 1 to 1000 characters (required with --abandon)")
	return exits(a.takesProject(cmd), exitChange)
}
