package tasks

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/refusal"
)

// Tree is the task files of one project. Two trees over one project, in one process or two,
// agree through the locks on disk; a tree remembers only how far it has read the journal, and what
// files hold that nobody has touched since. It is safe for concurrent use.
type Tree struct {
	project contract.Project
	schema  *contract.Schema
	disk    *durable.Disk
	now     func() time.Time

	mu    sync.Mutex
	index journalIndex // what is known of the journal's lines
	read  readings
}

// Open returns the tree of a project. It touches no file. now gives the time for blocks and
// journal lines.
func Open(p contract.Project, s *contract.Schema, d *durable.Disk, now func() time.Time) *Tree {
	return &Tree{project: p, schema: s, disk: d, now: now, read: readings{}}
}

// Found is one entry of a queue folder that is a task, or looks as if it wanted to be one.
type Found struct {
	// Ref has the entry's place. Its id is the stem of the name, and its revision is empty where
	// the bytes could not be read.
	Ref
	// Task is nil where the file could not be read as one.
	Task *Task
	// Problem says why the entry must not be worked on; nil for a good task. It is a
	// *refusal.Refusal.
	Problem error
	// Faults are what the blocks of a readable task have wrong. Such a task can be claimed: a
	// decision about it is judged with all of them, by name.
	Faults []refusal.Reason
}

// Discover reads every task file of every queue, in the order of the schema's queues and then
// of the names. A queue folder that is missing is empty.
//
// Only regular files are opened, without following a link and without waiting for a pipe.
// Links, folders, pipes, names that are no task id, oversized and unreadable files become
// entries with a Problem where their name ends like a task's (.yaml, .yml, .md), and are left
// out otherwise: temporary files, editors' backups, subfolders. One odd entry never hides the
// others. A task that moves from queue to queue meanwhile is found once. It fails only where the
// runtime folder itself cannot be read.
func (t *Tree) Discover() ([]Found, error) {
	if _, err := os.Stat(t.project.Runtime); err != nil {
		return nil, storage(err, "the runtime folder %s cannot be read", t.project.Runtime)
	}
	for try := 1; ; try++ {
		before := t.list()
		found := t.readAll(before)
		if try == discoverTries || before.same(t.list()) {
			markDuplicates(found)
			return found, nil
		}
	}
}

// discoverTries is how often Discover looks at most, where tasks move all the time.
const discoverTries = 5

// listing is what the queue folders hold, in the order of the schema's queues.
type listing []folder

type folder struct {
	queue contract.Queue
	names []string
	err   error
}

// list looks into every queue folder once.
func (t *Tree) list() listing {
	var all listing
	for _, queue := range t.schema.TaskQueues() {
		names, err := t.names(queue)
		all = append(all, folder{queue, names, err})
	}
	return all
}

// same tells whether two looks found the same names: then no task has moved from a folder that was
// looked at later into one that was looked at before, or the other way round.
func (l listing) same(other listing) bool {
	return slices.EqualFunc(l, other, func(a, b folder) bool { return slices.Equal(a.names, b.names) && (a.err == nil) == (b.err == nil) })
}

// readAll reads the files of a listing.
func (t *Tree) readAll(all listing) []Found {
	found := []Found{}
	for _, folder := range all {
		if folder.err != nil {
			found = append(found, Found{Ref: Ref{Queue: folder.queue, File: string(folder.queue)}, Problem: folder.err})
			continue
		}
		for _, name := range folder.names {
			if f, ok := t.Look(folder.queue, name); ok {
				found = append(found, f)
			}
		}
	}
	return found
}

// names lists the entries of a queue folder that may concern tasks, sorted.
func (t *Tree) names(queue contract.Queue) ([]string, error) {
	dir := t.project.QueueDir(queue)
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, storage(err, "the queue folder %s cannot be read", dir)
	}
	f := os.NewFile(uintptr(fd), dir)
	names, err := f.Readdirnames(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, storage(err, "the queue folder %s cannot be read", dir)
	}
	names = slices.DeleteFunc(names, hidden) // writes under way come and go
	slices.Sort(names)
	return names, nil
}

// hidden tells whether a name is no task's, whatever it ends in.
func hidden(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }

// Look reads one entry of a queue folder; false where there is none, or none that concerns
// tasks. It does not know of other queues: Discover marks a task that stands in two.
func (t *Tree) Look(queue contract.Queue, name string) (Found, bool) {
	stem, suffix := stemOf(name)
	if hidden(name) || suffix == "" || strings.ContainsRune(name, '/') {
		return Found{}, false
	}
	f := Found{Ref: Ref{ID: ID(stem), Queue: queue, File: path.Join(string(queue), name)}}
	full := filepath.Join(t.project.QueueDir(queue), name)
	switch info, err := os.Lstat(full); {
	case errors.Is(err, fs.ErrNotExist):
		return Found{}, false
	case err != nil:
		f.Problem = storage(err, "%s cannot be looked at", f.File)
	case suffix != ".yaml" && info.IsDir():
		return Found{}, false
	case suffix == ".md" && ID(stem).Valid():
		f.Problem = legacy(f.File)
	case suffix != ".yaml" || !ID(stem).Valid():
		f.Problem = refusal.New(refusal.CodeTaskFile, "rename it, or take it out of the queue folder",
			"%s is not named like a task (0007-add-login.yaml)", f.File)
	case info.Mode().IsRegular():
		t.reread(&f, full, stampOf(info))
	default:
		t.load(&f, full)
	}
	return f, true
}

// reread fills f with what the file holds, from memory where it bears the stamp it bore then.
// Whoever gets a task does not write to it, so that it can be given out again.
func (t *Tree) reread(f *Found, full string, now fileStamp) {
	t.mu.Lock()
	known, ok := t.read.get(f.File, now)
	t.mu.Unlock()
	if ok {
		*f = known
		return
	}
	begun := time.Now()
	t.load(f, full)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read.put(*f, now, begun)
}

// stemOf takes the suffix of a task-like name off; "" where the name is none.
func stemOf(name string) (stem, suffix string) {
	for _, suffix := range []string{".yaml", ".yml", ".md"} {
		if stem, ok := strings.CutSuffix(name, suffix); ok && stem != "" {
			return stem, suffix
		}
	}
	return name, ""
}

func legacy(file string) *refusal.Refusal {
	return refusal.New(refusal.CodeTaskLegacy, "convert it to a .yaml task file", "%s is in the old Markdown format", file)
}

// load reads a task file into f.
func (t *Tree) load(f *Found, full string) {
	data, err := readRegular(full, f.File)
	if err != nil {
		f.Problem = err
		return
	}
	f.Revision = RevisionOf(f.File, data)
	task, faults := decode(f.Queue, f.File, data)
	if task != nil {
		f.Task = task
		faults = headerFaults(t.schema, task)
		f.Faults = blockFaults(t.schema, task)
	}
	if len(faults) > 0 {
		f.Problem = refuse("mend it, then `greatminds task validate "+string(f.ID)+"`", faults, "%s is no valid task", f.File)
	}
}

// readRegular reads a regular file of at most MaxTaskBytes and nothing else. A link is not
// followed and a pipe not waited for.
func readRegular(full, file string) ([]byte, error) {
	fd, err := unix.Open(full, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, odd(file, "a symbolic link")
	case errors.Is(err, unix.ENXIO):
		return nil, odd(file, "a socket or device")
	case errors.Is(err, fs.ErrNotExist):
		return nil, notFound(file, err)
	case err != nil:
		return nil, storage(err, "%s cannot be opened", file)
	}
	f := os.NewFile(uintptr(fd), full)
	defer f.Close() // read only: closing loses nothing
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, storage(err, "%s cannot be looked at", file)
	case !info.Mode().IsRegular():
		return nil, odd(file, "no regular file ("+info.Mode().Type().String()+")")
	case info.Size() > MaxTaskBytes:
		return nil, odd(file, fmt.Sprintf("larger than %d bytes", MaxTaskBytes))
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxTaskBytes+1))
	if err != nil {
		return nil, storage(err, "%s cannot be read", file)
	}
	return data, nil
}

func odd(file, what string) *refusal.Refusal {
	return refusal.New(refusal.CodeTaskFile, "take it out of the queue folder", "%s is %s, no task file", file, what)
}

func notFound(file string, err error) *refusal.Refusal {
	r := refusal.New(refusal.CodeTaskNotFound, "see `greatminds task list QUEUE`", "there is no task file %s", file)
	r.Err = err
	return r
}

// storage is a refusal about files that could not be read or written.
func storage(err error, format string, args ...any) *refusal.Refusal {
	r := refusal.New(refusal.CodeTaskStorage, "mend the cause, then try again", format+": %v", append(args, err)...)
	r.Err = err
	return r
}

// markDuplicates gives every entry of an id that stands in several queues a Problem.
func markDuplicates(found []Found) {
	places := map[ID][]int{}
	for i, f := range found {
		if f.ID.Valid() {
			places[f.ID] = append(places[f.ID], i)
		}
	}
	for id, at := range places {
		if len(at) < 2 {
			continue
		}
		var files []string
		for _, i := range at {
			files = append(files, found[i].File)
		}
		for _, i := range at {
			found[i].Problem = duplicate(id, files)
		}
	}
}

// Remedy is what helps against the entry's Problem. Not every one is mended in the file: a task may
// stand in two queues, or a file bear a name that is no task's.
func (f Found) Remedy() string {
	r, ok := refusal.Find(f.Problem)
	if ok && r.Remedy != "" && (f.Revision == "" || r.Code == refusal.CodeTaskDuplicate) {
		return r.Remedy
	}
	return fmt.Sprintf("mend %s, then greatminds task validate %s", f.File, f.ID)
}

func duplicate(id ID, files []string) *refusal.Refusal {
	return refusal.New(refusal.CodeTaskDuplicate, "keep one of the files", "task %s stands in more than one place: %s",
		id, strings.Join(files, ", "))
}
