package execgate

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

var errUnfinished = errors.New("execgate: not built yet")

// Main must be the first call of every main function and TestMain that starts processes.
func Main() {}

// Launch says what to start behind the gate.
type Launch struct {
	Argv, Env             []string
	Dir                   string
	Stdin, Stdout, Stderr *os.File
	Mark                  string
}

// Grace bounds a stop: Term after SIGTERM, Kill after SIGKILL.
type Grace struct{ Term, Kill time.Duration }

// Ending is how a child and its tree ended.
type Ending struct {
	Known     bool
	Code      int
	Signal    syscall.Signal
	Survivors []Process
	Ended     int
	Took      time.Duration
	How       string
}

// ExecError is a launch that failed at exec.
type ExecError struct {
	Errno syscall.Errno
	Path  string
}

// Error names the path and the errno.
func (e *ExecError) Error() string { return e.Path + ": " + e.Errno.Error() }

// Child is a started keeper and gate.
type Child struct{}

// Start brings up keeper and gate.
func Start(ctx context.Context, l Launch) (*Child, error) { return nil, errUnfinished }

// Process is the identity to record before Open.
func (c *Child) Process() Process { return Process{} }

// Open lets the gate exec.
func (c *Child) Open(ctx context.Context) error { return errUnfinished }

// Abandon closes the gate without exec.
func (c *Child) Abandon(ctx context.Context) error { return errUnfinished }

// Ended is closed when the agent process itself has ended.
func (c *Child) Ended() <-chan struct{} { return nil }

// Stop ends the whole tree.
func (c *Child) Stop(ctx context.Context, g Grace) (Ending, error) { return Ending{}, errUnfinished }

// EndRecorded ends what a dead daemon recorded.
func EndRecorded(ctx context.Context, p Process, mark string, g Grace) (Ending, error) {
	return Ending{}, errUnfinished
}

// BecomeSubreaper makes this process the parent of orphaned descendants.
func BecomeSubreaper() error { return errUnfinished }

// Outer re-execs this program as a child where this process must not be the daemon itself.
func Outer() {}
