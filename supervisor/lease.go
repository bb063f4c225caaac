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
// who is empty for a daemon and holderCLI for one operation. A lease held by a CLI is waited
// for; one held by a daemon is refused at once, with its pid.
func takeLease(ctx context.Context, p contract.Project, who string) (*lease, error) {
	holder := strings.TrimSpace(fmt.Sprintf("%d %s", os.Getpid(), who)) + "\n"
	path := filepath.Join(p.StoreDir(), "supervisor.lock")
	first, err := durable.TryLock(path, holder)
	var held *durable.Held
	if errors.As(err, &held) && strings.Contains(held.Holder, holderCLI) {
		wait, cancel := context.WithTimeout(ctx, cliWait)
		defer cancel()
		first, err = durable.Lock(wait, path, holder)
	}
	if err != nil {
		return nil, leaseRefusal(p, err)
	}
	second, err := durable.TryLock(filepath.Join(p.StoreDir(), "store.lock"), holder)
	if errors.As(err, &held) {
		// The original's commands hold it only for one commit.
		wait, cancel := context.WithTimeout(ctx, cliWait)
		defer cancel()
		second, err = durable.Lock(wait, filepath.Join(p.StoreDir(), "store.lock"), holder)
	}
	if err != nil {
		return nil, errors.Join(leaseRefusal(p, err), first.Unlock())
	}
	return &lease{supervisor: first, store: second}, nil
}

func (l *lease) release() error {
	return errors.Join(l.store.Unlock(), l.supervisor.Unlock())
}

func leaseRefusal(p contract.Project, err error) error {
	var held *durable.Held
	if _, told := refusal.Find(err); told {
		return err
	}
	if !errors.As(err, &held) {
		return &refusal.Refusal{Code: refusal.CodeStoreWrite, Err: err, What: fmt.Sprintf("the lease of %s cannot be taken: %v", p.Root, err),
			Remedy: "mend the path, its permissions or the disk, then try again; nothing was changed"}
	}
	pid := strings.TrimSpace(held.Holder)
	if strings.Contains(held.Holder, holderCLI) {
		return &refusal.Refusal{Code: refusal.CodeLeaseBusy, Err: err,
			What:   fmt.Sprintf("another command (pid %s) is still at work on %s", pid, p.Root),
			Remedy: "try again when it has ended"}
	}
	return &refusal.Refusal{Code: refusal.CodeDaemonRunning, Err: err,
		What:   fmt.Sprintf("a daemon already supervises %s (pid %s)", p.Root, pid),
		Remedy: "use it with `greatminds run status`, or stop it first (SIGTERM to that pid)"}
}
