package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/refusal"
)

// cliWait is how long a starting daemon waits for a CLI that holds the lease for one operation.
const cliWait = 30 * time.Second

// holderCLI marks a lease that is held for one operation only.
const holderCLI = "cli"

// lease is the exclusive right to write a project's store: the original's supervisor.lock and,
// so that the original's own commands wait instead of writing, its store.lock. Both are kernel
// locks on files that are never removed. E-169, E-170, E-236.
type lease struct {
	supervisor, store *durable.FileLock
}

// takeLease takes both locks, in this order, and keeps them until release.
//
// who is empty for a daemon and holderCLI for one operation. A lease held by a command, ours or the
// original's, is waited for; one held by a daemon is refused at once, with its pid.
func takeLease(ctx context.Context, p contract.Project, who string) (*lease, error) {
	text := strings.TrimSpace(fmt.Sprintf("%d %s", os.Getpid(), who)) + "\n"
	first, err := takeLock(ctx, filepath.Join(p.StoreDir(), "supervisor.lock"), text, holder.passing)
	if err != nil {
		return nil, leaseRefusal(p, err)
	}
	// Whoever does not hold the first one holds the second for one commit.
	second, err := takeLock(ctx, filepath.Join(p.StoreDir(), "store.lock"), text, func(holder) bool { return true })
	if err != nil {
		return nil, errors.Join(leaseRefusal(p, err), first.Unlock())
	}
	return &lease{supervisor: first, store: second}, nil
}

// takeLock takes one lock, and waits for those who let go of it soon.
func takeLock(ctx context.Context, path, text string, wait func(holder) bool) (*durable.FileLock, error) {
	l, err := durable.TryLock(path, text)
	var held *durable.Held
	switch {
	case !errors.As(err, &held):
		return l, err
	case !wait(holderOf(held)):
		// Who held it may have let go while we looked who it was.
		return durable.TryLock(path, text)
	}
	ctx, cancel := context.WithTimeout(ctx, cliWait)
	defer cancel()
	return durable.Lock(ctx, path, text)
}

// passing tells whether a holder of the lease soon lets go of it: a command that said so, one of the
// original's, or a process that is ending, whatever it was.
func (h holder) passing() bool { return h.cli || h.ending || h.original() && !h.daemon() }

func (l *lease) release() error {
	return errors.Join(l.store.Unlock(), l.supervisor.Unlock())
}

// leaseRefusal says who holds the lease. The holder of the text may be another one by now.
func leaseRefusal(p contract.Project, err error) error {
	var held *durable.Held
	if !errors.As(err, &held) {
		return &refusal.Refusal{Code: refusal.CodeStoreWrite, Err: err, What: fmt.Sprintf("the lease of %s cannot be taken: %v", p.Root, err),
			Remedy: "mend the path, its permissions or the disk, then try again; nothing was changed"}
	}
	h := holderOf(held)
	err = errors.Join(&durable.Held{Path: held.Path, Holder: held.Holder, PID: h.pid}, err)
	switch {
	case h.original():
		// Nobody answers for it, so that nothing is gained by waiting: the error is no Held.
		return refusal.New(refusal.CodeOriginalRunning,
			fmt.Sprintf("stop it with its own `greatminds daemon stop`, or with `kill %d`, and try again", h.pid),
			"the original greatminds (%s) is at work on %s", h, p.Root)
	case h.cli:
		return &refusal.Refusal{Code: refusal.CodeLeaseBusy, Err: err,
			What:   fmt.Sprintf("another command (%s) is still at work on %s", h, p.Root),
			Remedy: "try again when it has ended"}
	case h.ours:
		return &refusal.Refusal{Code: refusal.CodeDaemonRunning, Err: err,
			What:   fmt.Sprintf("a daemon already supervises %s (%s)", p.Root, h),
			Remedy: "use it with `greatminds run status`, or stop it first (SIGTERM to that pid)"}
	}
	return &refusal.Refusal{Code: refusal.CodeLeaseBusy, Err: err,
		What:   fmt.Sprintf("another process (%s) holds %s", h, held.Path),
		Remedy: "look at that process; the lock ends with it, and the file must stay"}
}
