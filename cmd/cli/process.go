package cli

import (
	"os"

	"golang.org/x/sys/unix"

	"greatminds/internal/clock"
)

// Version is the version of this program. A release sets it at link time.
var Version = "0.1.0-dev"

// Process is the world as this process finds it. It is main's half of the program: nothing else
// reads the clock, the environment, the working folder or the standard streams.
func Process() World {
	cwd, err := os.Getwd()
	if err != nil {
		cwd = "/" // a working folder that was removed: every relative path is then refused by name
	}
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	return World{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Terminal: isTerminal(os.Stdout), Input: isTerminal(os.Stdin),
		Getenv: os.Getenv, Environ: os.Environ(), Cwd: cwd, Exe: exe, Version: Version, Now: clock.Wall(os.Getenv),
	}
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
