// Command greatminds is the one command line of greatminds: for the operator, and for the tool
// calls of agents inside a run.
package main

import (
	"context"
	"os"
	"os/signal"

	"greatminds/cmd/cli"
	"greatminds/demo"
	"greatminds/internal/execgate"
)

func main() {
	execgate.Main()
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case demo.AgentCommand:
			os.Exit(demo.AgentMain(os.Args[2:]))
		case "coordd":
			execgate.Outer()
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), execgate.StopSignals()...)
	defer stop()
	os.Exit(cli.Greatminds(ctx, cli.Process(), demoCommand))
}
