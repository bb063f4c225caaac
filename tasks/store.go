package tasks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/refusal"
)

// lockWait is how long a task's lock is waited for.
const lockWait = 30 * time.Second

const (
	taskPerm  fs.FileMode = 0o644
	queuePerm fs.FileMode = 0o755
	locksPerm fs.FileMode = 0o700
)

// Held is the locks of some tasks. It belongs to one goroutine.
type Held struct {
	ids   []ID
	locks []*durable.FileLock
}

// Release gives the locks back. The lock files stay. A second call does nothing.
func (h *Held) Release() {
	for _, l := range slices.Backward(h.locks) {
		_ = l.Unlock() // only a closed descriptor can fail, and then the lock is gone too
	}
	h.ids, h.locks = nil, nil
}

// need panics where a task is changed without its lock.
func (h *Held) need(id ID) {
	if h == nil || !slices.Contains(h.ids, id) {
		panic(fmt.Sprintf("tasks: %s is changed without its lock", id))
	}
}

// Lock takes the locks of some tasks in the order of their ids, each once, so that two callers
// never wait for each other in a ring. It waits at most 30 s, and less where ctx ends before;
// then it fails with [refusal.CodeTaskLocked] and holds nothing.
//
// A lock is the kernel's, on <runtime>/.locks/<id>.lock, whose inode is stable; the file's
// existence says nothing.
// Spec: "Persistence and ownership".
func (t *Tree) Lock(ctx context.Context, ids ...ID) (*Held, error) {
	sorted := slices.Compact(slices.Sorted(slices.Values(ids)))
	for _, id := range sorted {
		if !id.Valid() {
			return nil, refusal.New(refusal.CodeTaskNotFound, "give a full id", "%s is no task id", shown(string(id)))
		}
	}
	h := &Held{}
	for _, id := range sorted {
		l, err := t.lockFile(ctx, string(id))
		if err != nil {
			h.Release()
			return nil, err
		}
		h.ids, h.locks = append(h.ids, id), append(h.locks, l)
	}
	return h, nil
}

// lockFile takes the lock <runtime>/.locks/<name>.lock.
func (t *Tree) lockFile(ctx context.Context, name string) (*durable.FileLock, error) {
	dir := filepath.Join(t.project.Runtime, ".locks")
	if err := t.disk.MkdirAll(dir, locksPerm); err != nil {
		return nil, storage(err, "the lock folder %s cannot be made", dir)
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	l, err := durable.Lock(ctx, filepath.Join(dir, name+".lock"), strconv.Itoa(os.Getpid())+"\n")
	var held *durable.Held
	switch {
	case errors.As(err, &held):
		r := refusal.New(refusal.CodeTaskLocked, "try again when it has finished", "the lock of %s is held by process %s",
			name, held.Holder)
		r.Err = err
		return nil, r
	case err != nil:
		return nil, storage(err, "the lock of %s cannot be taken", name)
	}
	return l, nil
}

// Write replaces a task's file with new bytes, whole or not at all, and returns its new ref. The
// file must still be at the ref's revision; else it fails with [refusal.CodeRevisionStale]. It
// needs the task's lock and does not judge the bytes.
func (t *Tree) Write(h *Held, r Ref, data []byte) (Ref, error) {
	h.need(r.ID)
	if err := t.unchanged(r); err != nil {
		return r, err
	}
	if err := t.disk.Replace(t.fullPath(r.File), data, taskPerm); err != nil {
		return r, storage(err, "%s cannot be written", r.File)
	}
	r.Revision = RevisionOf(r.File, data)
	return r, nil
}

// unchanged wants a file to be at its ref's revision.
func (t *Tree) unchanged(r Ref) error {
	data, err := readRegular(t.fullPath(r.File), r.File)
	if err != nil {
		return err
	}
	if found := RevisionOf(r.File, data); found != r.Revision {
		return stale(r, found)
	}
	return nil
}

// Move renames a task's file into another queue durably and returns its new ref. The file must
// still be at the ref's revision, and the destination must hold no file of that name; it fails
// with [refusal.CodeTaskDuplicate] then. It needs the task's lock and checks no transition.
func (t *Tree) Move(h *Held, r Ref, to contract.Queue) (Ref, error) {
	h.need(r.ID)
	if !isTaskQueue(t.schema, to) {
		return r, refusal.New(refusal.CodeQueueUnknown, "name one of "+queueNames(t.schema), "%q is no queue", to)
	}
	data, err := readRegular(t.fullPath(r.File), r.File)
	if err != nil {
		return r, err
	}
	if found := RevisionOf(r.File, data); found != r.Revision {
		return r, stale(r, found)
	}
	next := Ref{ID: r.ID, Queue: to, File: FileOf(to, r.ID)}
	next.Revision = RevisionOf(next.File, data)
	if err := t.disk.MkdirAll(t.project.QueueDir(to), queuePerm); err != nil {
		return r, storage(err, "the queue folder of %s cannot be made", to)
	}
	err = t.disk.Rename(t.fullPath(r.File), t.fullPath(next.File))
	switch {
	case errors.Is(err, fs.ErrExist):
		return r, duplicate(r.ID, []string{r.File, next.File})
	case err != nil:
		return r, storage(err, "%s cannot be moved to %s", r.File, to)
	}
	return next, nil
}

// Settle makes sure that what a dead process did to a task's file is on the disk: its bytes, its
// name, and that it has left the queue from. What it wrote may have been in the page cache alone.
func (t *Tree) Settle(r Ref, from contract.Queue) error {
	err := t.disk.Settle(t.fullPath(r.File))
	if err == nil && from != r.Queue && from != "" {
		dir := t.project.QueueDir(from)
		if err = t.disk.SyncDir(dir); errors.Is(err, fs.ErrNotExist) {
			err = t.disk.SyncDir(filepath.Dir(dir)) // an empty queue folder was removed: so is the name in it
		}
	}
	if err != nil {
		return storage(err, "%s cannot be synced", r.File)
	}
	return nil
}
