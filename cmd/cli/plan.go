package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"greatminds/supervisor/ops"
)

func (a *app) plan() *cobra.Command {
	var args ops.PlanArgs
	var stand, body, bodyFile, stopAt string
	cmd := &cobra.Command{
		Use: "plan ID", Short: "Triage and plan a task, and hand it to the role that works on it.", Args: exactly("ID"),
		Long: "Everything is checked before anything is written. The caller must be ARCHITECT-PLANNER.",
		Example: "  GREATMINDS_ROLE=ARCHITECT-PLANNER greatminds plan 7 --scope backend --assignee-role DEVELOPER \\\n" +
			"    --base-commit $(git rev-parse HEAD) --plan-kind full --mode A --stand-required false --body \"how\"",
		RunE: func(cmd *cobra.Command, argv []string) error {
			if err := planFlags(cmd, args, stand, stopAt); err != nil {
				return err
			}
			text, err := a.planBody(cmd, body, bodyFile)
			if err != nil {
				return err
			}
			args.ID, args.Body, args.StopAtPlan = argv[0], text, stopAt == "plan"
			args.StandRequired, _ = strconv.ParseBool(stand) // planFlags lets only true and false pass
			var filed ops.Filed
			answer, err := a.into(cmd.Context(), "task.plan", args, &filed)
			if err != nil {
				return err
			}
			return a.printOr(answer, fmt.Sprintf("plan: %s → %s (scope:%s assignee:%s)", argv[0], filed.Ref.Queue, args.Scope, args.AssigneeRole))
		},
	}
	f := cmd.Flags()
	f.StringVar(&args.Scope, "scope", "", "backend, docs or ui (required)")
	f.StringVar(&args.AssigneeRole, "assignee-role", "", "`role` that works on it (required)")
	f.StringVar(&args.BaseCommit, "base-commit", "", "`commit` that the work starts from (required)")
	f.StringVar(&args.PlanKind, "plan-kind", "", "full or bugfix (required)")
	f.StringVar(&args.Mode, "mode", "", "A, B or C (required)")
	f.StringVar(&stand, "stand-required", "", "true or false: whether it is tested on a stand (required)")
	f.StringVar(&args.StandReason, "stand-reason", "", "why it needs a stand")
	f.StringVar(&body, "body", "", "the plan's text")
	f.StringVar(&bodyFile, "body-file", "", "`file` with the plan's text, or - for standard input")
	f.StringVar(&args.Triage, "triage", "", "triage note")
	f.StringVar(&stopAt, "stop-at", "", "plan: file the plan, but leave the task in feature_plan")
	f.BoolVar(&args.AuditOnly, "audit-only", false, "send it straight to the reader (scope docs)")
	return exits(a.takesProject(cmd), exitTask)
}

func planFlags(cmd *cobra.Command, args ops.PlanArgs, stand, stopAt string) error {
	if err := required(cmd, "scope", "assignee-role", "base-commit", "plan-kind", "mode", "stand-required"); err != nil {
		return err
	}
	for _, choice := range []struct {
		flag, value string
		among       []string
	}{
		{"scope", args.Scope, []string{"backend", "docs", "ui"}},
		{"plan-kind", args.PlanKind, []string{"full", "bugfix"}},
		{"mode", args.Mode, []string{"A", "B", "C"}},
		{"stand-required", stand, []string{"true", "false"}},
		{"stop-at", stopAt, []string{"", "plan"}},
	} {
		if err := oneOf(cmd, choice.flag, choice.value, choice.among...); err != nil {
			return err
		}
	}
	return nil
}

// planBody is the plan's text: --body as it is typed, or the file's.
func (a *app) planBody(cmd *cobra.Command, body, file string) (string, error) {
	byFile, byText := cmd.Flags().Changed("body-file"), cmd.Flags().Changed("body")
	if byFile == byText {
		return "", usage(cmd, "give exactly one of --body and --body-file")
	}
	if byText {
		return body, nil
	}
	if file != "-" {
		file = "@" + file
	}
	return a.readText(file)
}
