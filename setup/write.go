package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/refusal"
)

// Modes of what setup makes. Runtime state is for its owner alone; the rest is the project's.
const (
	privateDir  fs.FileMode = 0o700
	publicDir   fs.FileMode = 0o755
	privateFile fs.FileMode = 0o600
	publicFile  fs.FileMode = 0o644
)

// lockWait is how long a setup waits for another one.
const lockWait = 10 * time.Second

// write makes what the plan found missing, the contract last. Under the lock the plan is made
// again: what another setup did meanwhile is taken as it stands.
func (q Request) write(ctx context.Context, p *plan) error {
	if err := q.Disk.MkdirAll(p.project.Runtime, privateDir); err != nil {
		return failed(err)
	}
	unlock, err := lock(ctx, p.project)
	if err != nil {
		return err
	}
	defer unlock()
	again, err := q.plan(ctx)
	if err != nil {
		return err
	}
	*p = *again
	return p.make(q.Disk)
}

// lock serialises setups and presets of one project.
func lock(ctx context.Context, p contract.Project) (unlock func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	held, err := durable.Lock(waiting, filepath.Join(p.Runtime, "setup.lock"), fmt.Sprintf("%d\n", os.Getpid()))
	var other *durable.Held
	if errors.As(err, &other) {
		return nil, &refusal.Refusal{Code: refusal.CodeSetupBusy, Err: err, What: err.Error(),
			Remedy: "wait until the other setup has ended, then try again"}
	}
	if err != nil {
		return nil, failed(err)
	}
	// The kernel ends the lock with this process in any case.
	return func() { _ = held.Unlock() }, nil
}

func (p *plan) make(disk *durable.Disk) error {
	for _, queue := range p.schema.TaskQueues() {
		if err := disk.MkdirAll(p.project.QueueDir(queue), publicDir); err != nil {
			return failed(err)
		}
	}
	if err := disk.MkdirAll(filepath.Dir(p.project.ExecutionPath()), publicDir); err != nil {
		return failed(err)
	}
	if p.ignore != nil {
		if err := replace(disk, filepath.Join(p.project.Root, ".gitignore"), p.ignore); err != nil {
			return failed(err)
		}
	}
	if contract.MirrorOf(p.project, p.schema).Status == contract.MirrorMissing {
		if err := disk.Create(p.project.SchemaMirrorPath(), p.schema.Text, privateFile); err != nil {
			return failed(err)
		}
	}
	if p.coord != nil {
		if err := replace(disk, p.coordPath, p.coord); err != nil {
			return failed(err)
		}
	}
	if p.text != nil {
		// Last: from here on the project counts as set up.
		if err := disk.Create(p.project.ExecutionPath(), p.text, privateFile); err != nil {
			return failed(err)
		}
	}
	return nil
}

// replace writes a file of the project, with the mode that it has.
func replace(disk *durable.Disk, path string, data []byte) error {
	mode := publicFile
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	return disk.Replace(path, data, mode)
}
