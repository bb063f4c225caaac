package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

func (a *app) coordd() *cobra.Command {
	var once, verbose bool
	var name string
	var interval float64
	cmd := &cobra.Command{
		Use: "coordd", Short: "Supervise the project's agents in the foreground, until it is told to stop.", Args: exactly(),
		Long: "It ends cleanly on SIGINT or SIGTERM: agents are told to cancel, then stopped, and nothing is\n" +
			"left running. With --once it works until only held work is left. Its log goes to standard error.",
		Example: "  greatminds coordd\n  greatminds coordd --once",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := seconds(cmd, "interval-sec", interval, 0.2); err != nil {
				return err
			}
			if name != "" {
				return refusal.New(refusal.CodeNotFound, "give the project's folder with --project-dir",
					"no project is registered under the name %q", name)
			}
			p, err := a.project()
			if err != nil {
				return err
			}
			level := slog.LevelInfo
			if verbose {
				level = slog.LevelDebug
			}
			log := slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: level}))
			return a.supervise(cmd.Context(), p, once, log)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&once, "once", false, "work until only held work is left, then end")
	f.Bool("foreground", false, "accepted; it always runs in the foreground")
	f.BoolVarP(&verbose, "verbose", "v", false, "log everything that is decided")
	f.StringVar(&name, "project", "", "registered `name` of the project")
	f.Float64Var(&interval, "interval-sec", 1, "accepted, at least 0.2 `seconds`; every wait is for an event")
	return exits(a.takesProject(cmd), "  0 stopped cleanly, 1 no such project, 2 invalid contract or wrong usage,\n  4 another daemon holds the lease, or the store cannot be trusted.")
}

func (a *app) supervise(ctx context.Context, p contract.Project, once bool, log *slog.Logger) error {
	// A log that nobody reads any more is no reason to end: a write to it fails, and that is all.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, unix.SIGPIPE)
	defer signal.Stop(broken)
	return runDaemon(ctx, a.World, p, once, log)
}
