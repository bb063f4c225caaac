package cli

import (
	"github.com/spf13/cobra"

	"greatminds/supervisor/ops"
)

func (a *app) runAccountResume() *cobra.Command {
	var args ops.AccountResumeArgs
	cmd := &cobra.Command{
		Use: "account-resume ACCOUNT", Short: "End the hold of an account whose provider has told of a limit.",
		Args: exactly("ACCOUNT"), Long: "A rate limit ends by itself, a used-up quota does not. Runs that ended with the limit are not repeated by it;\n" +
			"`greatminds run retry RUN_ID` is a step of its own. Accounts and their holds stand in `greatminds run status`.",
		Example: "  greatminds run account-resume default --hold-id 0123456789abcdef0123456789abcdef --reason \"bought more\"",
		RunE: func(cmd *cobra.Command, argv []string) error {
			if err := required(cmd, "hold-id", "reason"); err != nil {
				return err
			}
			args.Account = argv[0]
			answer, err := a.do(cmd.Context(), "run.account-resume", args)
			if err != nil {
				return err
			}
			return a.print(answer)
		},
	}
	cmd.Flags().StringVar(&args.Hold, "hold-id", "", "`id` of the hold as `run status` shows it (required)")
	cmd.Flags().StringVar(&args.Reason, "reason", "", "why the account may be used again, 1 to 1000 characters (required)")
	return exits(a.takesProject(cmd), "  0 done, 1 no hold or another one is on record, 2 wrong usage, 3 not the operator, 4 storage conflict.")
}
