package supervisor_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"greatminds/cmd/cli"
	"greatminds/fixtures/agent"
	"greatminds/internal/execgate"
)

func TestMain(m *testing.M) {
	execgate.Main()
	if len(os.Args) > 1 { // what daemons that run inside the tests start
		switch os.Args[1] {
		case "demo-agent":
			syscall.Exit(agent.Main(os.Args[2:])) // os.Exit sleeps for a second under the race detector
		case cli.CommandLine:
			w := cli.Process()
			w.Args = w.Args[1:]
			syscall.Exit(cli.Greatminds(context.Background(), w))
		}
	}
	// A daemon that is started under nohup outlives its terminal; those of the tests must not.
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	code := m.Run()
	if buildOnce.path != "" {
		if err := os.RemoveAll(buildOnce.dir); err != nil {
			fmt.Fprintln(os.Stderr, "left behind:", err)
			code = 1
		}
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
