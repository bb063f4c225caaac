// Command coordd is the daemon of one project: `greatminds coordd` under its own name.
package main

import (
	"context"
	"os"
	"os/signal"

	"greatminds/cmd/cli"
	"greatminds/internal/execgate"
)

func main() {
	execgate.Main()
	if len(os.Args) < 2 || os.Args[1] != cli.CommandLine {
		execgate.Outer()
	}
	ctx, stop := signal.NotifyContext(context.Background(), execgate.StopSignals()...)
	defer stop()
	os.Exit(cli.Coordd(ctx, cli.Process()))
}
