package execgate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"greatminds/internal/execgate"
)

// playRole is what the test binary does instead of testing.
func playRole(role string) int {
	name, argument, _ := strings.Cut(role, " ")
	switch name {
	case "daemon":
		return playDaemon(argument, true)
	case "daemon-at-gate":
		return playDaemon(argument, false)
	case "stop-signals":
		fmt.Println(execgate.StopSignals())
		return 0
	case "recover":
		return playRecover()
	case "daemon-of-tool":
		return playToolDaemon(argument)
	case "connect":
		return playConnect(argument)
	case "outer":
		return playOuter()
	}
	fmt.Fprintln(os.Stderr, "unknown role", role)
	return 99
}

// playDaemon launches a script with its standard output as the agent's, prints the record first,
// and lives until its input ends.
func playDaemon(script string, open bool) int {
	ctx := context.Background()
	if err := execgate.BecomeSubreaper(); err != nil {
		return fail(err)
	}
	out, err := os.OpenFile("/proc/self/fd/1", os.O_WRONLY, 0)
	if err != nil {
		return fail(err)
	}
	c, err := execgate.Start(ctx, execgate.Launch{
		Argv: []string{"sh", "-c", script}, Env: []string{path}, Dir: "/", Stdout: out, Mark: os.Getenv("TEST_MARK"),
	})
	if err != nil {
		return fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(c.Process()); err != nil {
		return fail(err)
	}
	if open {
		if err := c.Open(ctx); err != nil {
			return fail(err)
		}
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // the test ends it, or kills us before
	if _, err := c.Stop(ctx, execgate.Grace{Kill: time.Second}); err != nil {
		return fail(err)
	}
	return 0
}

// playRecover reads a record and ends what is left of it, as the next daemon does.
func playRecover() int {
	var p execgate.Process
	if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
		return fail(err)
	}
	e, err := execgate.EndRecorded(context.Background(), p, os.Getenv("TEST_MARK"), execgate.Grace{})
	if err != nil {
		return fail(err)
	}
	fmt.Println(e.How)
	return 0
}

// playToolDaemon runs a script as a tool. The script says by itself what a test has to know.
func playToolDaemon(script string) int {
	if err := execgate.BecomeSubreaper(); err != nil {
		return fail(err)
	}
	if _, err := execgate.RunTool(context.Background(), execgate.Tool{
		Argv: []string{"sh", "-c", script}, Env: []string{path}, Dir: "/",
	}); err != nil {
		return fail(err)
	}
	return 0
}

// playConnect connects to a socket and holds the connection until the other side closes it.
func playConnect(socket string) int {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return fail(err)
	}
	_, _ = io.Copy(io.Discard, conn) // until the end, whatever it is
	return 0
}

// playOuter is a daemon that says who it is and ends with status 9 at SIGTERM.
func playOuter() int {
	execgate.Outer()
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	fmt.Println(os.Getpid())
	fmt.Println(os.Getppid())
	<-terminated
	return 9
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "helper:", err)
	return 1
}
