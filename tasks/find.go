package tasks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// entry is a task file by its name alone.
type entry struct {
	id     ID
	queue  contract.Queue
	legacy bool
}

func (e entry) file() string {
	if e.legacy {
		return string(e.queue) + "/" + string(e.id) + ".md"
	}
	return FileOf(e.queue, e.id)
}

// entries lists the names of all task files that take matches; it opens none.
func (t *Tree) entries(takes func(stem string) bool) ([]entry, error) {
	var out []entry
	for _, queue := range t.schema.TaskQueues() {
		names, err := t.names(queue)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			stem, suffix := stemOf(name)
			if (suffix == ".yaml" || suffix == ".md") && ID(stem).Valid() && takes(stem) {
				out = append(out, entry{ID(stem), queue, suffix == ".md"})
			}
		}
	}
	return out, nil
}

// places lists where a task of an id stands, by name alone, without reading any folder.
func (t *Tree) places(id ID) ([]entry, error) {
	var out []entry
	if !id.Valid() {
		return nil, nil
	}
	for _, queue := range t.schema.TaskQueues() {
		for _, e := range []entry{{id, queue, false}, {id, queue, true}} {
			_, err := os.Lstat(t.fullPath(e.file()))
			switch {
			case err == nil:
				out = append(out, e)
			case !errors.Is(err, fs.ErrNotExist):
				return nil, storage(err, "%s cannot be looked at", e.file())
			}
		}
	}
	return out, nil
}

var shortNumber = regexp.MustCompile(`^[0-9]{1,4}$`)

// Find resolves what a person calls a task to its file: the full id, the id with .yaml, a
// number of one to four digits, the beginning of an id up to a hyphen, or a path (absolute, or
// below the runtime or the project folder). A path names its queue; the others are looked up
// in all queues.
//
// Several tasks that answer to a short name are refused with their ids, and so is one task
// that stands in two queues, and one in the old format.
func (t *Tree) Find(name string) (Ref, error) {
	e, err := t.find(name)
	if err != nil {
		return Ref{}, err
	}
	r := Ref{ID: e.id, Queue: e.queue, File: e.file()}
	if e.legacy {
		return r, legacy(e.file())
	}
	data, err := readRegular(t.fullPath(e.file()), e.file())
	if err != nil {
		return r, err
	}
	r.Revision = RevisionOf(r.File, data)
	return r, nil
}

func (t *Tree) fullPath(file string) string {
	return filepath.Join(t.project.Runtime, filepath.FromSlash(file))
}

func (t *Tree) find(name string) (entry, error) {
	queue, stem := t.split(name)
	found, err := t.places(ID(stem))
	if err == nil && len(found) == 0 && queue == "" {
		prefix := stem
		if shortNumber.MatchString(stem) {
			prefix = strings.Repeat("0", 4-len(stem)) + stem
		}
		found, err = t.entries(func(s string) bool { return prefix != "" && strings.HasPrefix(s, prefix+"-") })
	}
	if err != nil {
		return entry{}, err
	}
	if queue != "" {
		found = slices.DeleteFunc(found, func(e entry) bool { return e.queue != queue })
	}
	return only(name, found)
}

// split takes a path apart into queue and stem; a name that is no path has no queue.
func (t *Tree) split(name string) (contract.Queue, string) {
	stem := strings.TrimSpace(name)
	queue := contract.Queue("")
	if strings.ContainsRune(stem, '/') {
		dir, base := filepath.Split(filepath.Clean(stem))
		queue, stem = contract.Queue(filepath.Base(dir)), base
		if filepath.IsAbs(dir) && filepath.Clean(dir) != t.project.QueueDir(queue) {
			queue = "-" // outside the runtime folder: no queue has this name
		}
	}
	for _, suffix := range []string{".yaml", ".md"} {
		if s, ok := strings.CutSuffix(stem, suffix); ok {
			return queue, s
		}
	}
	return queue, stem
}

// only returns the one entry found, or says why there is not one.
func only(name string, found []entry) (entry, error) {
	switch len(found) {
	case 0:
		return entry{}, refusal.New(refusal.CodeTaskNotFound, "see `greatminds task list QUEUE`",
			"no task answers to %s in any queue", shown(name))
	case 1:
		return found[0], nil
	}
	var files, ids []string
	for _, e := range found {
		files = append(files, e.file())
		if !slices.Contains(ids, string(e.id)) {
			ids = append(ids, string(e.id))
		}
	}
	if len(ids) == 1 {
		return entry{}, duplicate(found[0].id, files)
	}
	return entry{}, refusal.New(refusal.CodeTaskAmbiguous, "give the full id", "%s could be %s",
		shown(name), strings.Join(ids, " or "))
}

// Read reads and validates the task at a ref. A ref with a revision is refused with
// [refusal.CodeRevisionStale] where the file has changed since, with
// [refusal.CodeTaskNotFound] where it has gone, and with [refusal.CodeTaskDuplicate] where a
// task of its id stands in another queue too.
// Spec: "Persistence and ownership" (a move or an edit invalidates an outstanding decision).
func (t *Tree) Read(r Ref) (*Task, error) {
	data, err := readRegular(t.fullPath(r.File), r.File)
	if err != nil {
		return nil, err
	}
	if found := RevisionOf(r.File, data); r.Revision != "" && found != r.Revision {
		return nil, stale(r, found)
	}
	if _, err := t.place(r.ID); err != nil {
		return nil, err
	}
	return t.parse(r, data)
}

// parse accepts a task whose header is valid; its blocks are judged with the decision.
func (t *Tree) parse(r Ref, data []byte) (*Task, error) {
	task, faults := decode(r.Queue, r.File, data)
	if task != nil {
		faults = headerFaults(t.schema, task)
	}
	if len(faults) > 0 {
		return nil, refuse("mend it, then `greatminds task validate "+string(r.ID)+"`", faults, "%s is no valid task", r.File)
	}
	return task, nil
}

func stale(r Ref, found Revision) *refusal.Refusal {
	return refusal.New(refusal.CodeRevisionStale, "look at the task again: `greatminds task show "+string(r.ID)+"`",
		"task %s is at revision %.12s, not at %.12s", r.ID, found, r.Revision)
}

// ReadCurrent reads and validates a task wherever it stands. It must stand in one queue.
func (t *Tree) ReadCurrent(id ID) (*Task, error) {
	if !id.Valid() {
		return nil, refusal.New(refusal.CodeTaskNotFound, "give a full id", "%s is no task id", shown(string(id)))
	}
	e, err := t.place(id)
	if err != nil {
		return nil, err
	}
	if e.legacy {
		return nil, legacy(e.file())
	}
	return t.Read(Ref{ID: e.id, Queue: e.queue, File: e.file()})
}

// place is the one place where a task stands.
func (t *Tree) place(id ID) (entry, error) {
	found, err := t.places(id)
	if err != nil {
		return entry{}, err
	}
	return only(string(id), found)
}
