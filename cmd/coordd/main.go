// Command coordd is the daemon of one project: `greatminds coordd` under its own name.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"greatminds/cmd/cli"
	"greatminds/internal/execgate"
)

func main() {
	execgate.Main()
	if len(os.Args) < 2 || os.Args[1] != cli.CommandLine {
		execgate.Outer()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(cli.Coordd(ctx, cli.Process()))
}
