package tasks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// Validate checks one task of the tree, header and blocks, and returns its ref.
func (t *Tree) Validate(id string) (Ref, error) {
	ref, err := t.Find(id)
	if err != nil {
		return ref, err
	}
	data, err := readRegular(t.fullPath(ref.File), ref.File)
	if err != nil {
		return ref, err
	}
	_, err = Parse(t.schema, ref.Queue, t.fullPath(ref.File), data)
	return ref, err
}

// ValidateFile checks a task file wherever it lies. A file in one of the project's queues is
// judged as standing there.
func (t *Tree) ValidateFile(path string) error {
	data, err := readRegular(path, path)
	if err != nil {
		return err
	}
	queue := contract.Queue(filepath.Base(filepath.Dir(path)))
	if !isTaskQueue(t.schema, queue) {
		queue = ""
	}
	_, err = Parse(t.schema, queue, path, data)
	return err
}

// Listed is one line of `task list`.
type Listed struct {
	ID    string         `json:"id"`
	Title string         `json:"title"`
	Queue contract.Queue `json:"queue"`
	// File is the name in the queue folder.
	File string `json:"file"`
}

// List lists the task files of a queue by name. A file that cannot be read as a task has an
// empty title. It fails where the queue is unknown or its folder missing.
func (t *Tree) List(queue contract.Queue) ([]Listed, error) {
	info, err := os.Lstat(t.project.QueueDir(queue))
	if !isTaskQueue(t.schema, queue) || errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, refusal.New(refusal.CodeQueueUnknown, "name one of "+queueNames(t.schema), "there is no queue %s", shown(string(queue)))
	}
	names, err := t.names(queue)
	if err != nil {
		return nil, err
	}
	list := []Listed{}
	for _, name := range names {
		f, ok := t.Look(queue, name)
		if !ok || !f.ID.Valid() {
			continue
		}
		line := Listed{ID: string(f.ID), Queue: queue, File: name}
		if f.Task != nil {
			line.Title = f.Task.Title
		}
		list = append(list, line)
	}
	return list, nil
}

// Show returns a task's place and its file as it is, valid or not.
func (t *Tree) Show(id string) (Ref, []byte, error) {
	ref, err := t.Find(id)
	if err != nil {
		return ref, nil, err
	}
	data, err := readRegular(t.fullPath(ref.File), ref.File)
	return ref, data, err
}

// Paths are the places that `task paths` prints; absolute.
type Paths struct{ Coord, Canon, IntentDir, Journal string }

// Paths returns the places of the tree. Canon is the file that the schema was read from.
func (t *Tree) Paths() Paths {
	return Paths{Coord: t.project.Runtime, Canon: t.schema.Source, IntentDir: t.intentDir(), Journal: t.journalPath()}
}

// PathOf is where a task's file is; absolute.
func (t *Tree) PathOf(r Ref) string { return t.fullPath(r.File) }
