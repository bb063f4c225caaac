package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// callLimit is the longest that a call of the command line may take. It waits ten seconds for a
// daemon that does not answer; nothing here stops one for so long.
const callLimit = 25 * time.Second

// call is one call of the command line by the operator.
type call struct {
	args  []string
	cmd   *exec.Cmd
	ended chan struct{}
	// The rest is valid once ended is closed.
	out, err string
	// status is the exit status, -1 where it was killed.
	status int
	took   time.Duration
}

// begin starts a call in a role, "" for none.
func (p *project) begin(ctx context.Context, role string, args ...string) (*call, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	c := &call{args: args, cmd: exec.CommandContext(ctx, p.built.greatminds, args...), ended: make(chan struct{})}
	c.cmd.Dir, c.cmd.Env, c.cmd.WaitDelay = p.dir, p.env(), 5*time.Second
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if role != "" {
		c.cmd.Env = append(c.cmd.Env, "GREATMINDS_ROLE="+role)
	}
	var out, errs bytes.Buffer
	c.cmd.Stdout, c.cmd.Stderr = &out, &errs
	began := time.Now()
	if err := startOwn(c.cmd); err != nil {
		cancel()
		return nil, fmt.Errorf("start greatminds: %w", err)
	}
	go func() {
		defer close(c.ended)
		defer cancel()
		err := c.cmd.Wait()
		ours.ended(c.cmd.Process.Pid)
		c.took, c.out, c.err, c.status = time.Since(began), out.String(), errs.String(), c.cmd.ProcessState.ExitCode()
		if errors.Is(err, exec.ErrWaitDelay) {
			c.err += "\nits output was held open by others"
		}
	}()
	return c, nil
}

// call makes a call and waits for its end.
func (p *project) call(ctx context.Context, role string, args ...string) (*call, error) {
	c, err := p.begin(ctx, role, args...)
	if err != nil {
		return nil, err
	}
	<-c.ended
	p.judgeCall(c, ctx.Err() != nil)
	return c, ctx.Err()
}

func (c *call) String() string { return "greatminds " + strings.Join(c.args, " ") }

// done tells whether the call said that it was done. Nothing else acknowledges anything.
func (c *call) done() bool { return c.status == 0 }

// judgeCall notes what no call may do, whatever happens around it. hit says that we signalled it.
func (p *project) judgeCall(c *call, hit bool) {
	switch {
	case strings.Contains(c.err, "panic:") || strings.Contains(c.err, "goroutine "):
		p.found(unsound, "%s: %s", c, c.err)
	case c.status == -1 && !hit && c.took >= callLimit:
		p.found(stuck, "%s did not end within %s", c, callLimit)
	case c.status == -1 && !hit:
		p.found(unsound, "%s ended by a signal that nobody sent: %s", c, c.err)
	case c.status > 0 && !slices.Contains([]int{1, 2, 3, 4}, c.status):
		p.found(unsound, "%s ended with status %d: %s", c, c.status, c.err)
	case c.status > 0 && c.err == "":
		p.found(unsound, "%s was refused with status %d and without a word", c, c.status)
	}
}
