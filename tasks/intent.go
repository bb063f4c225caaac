package tasks

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// change is one change of one task by an operator: new bytes, another queue, or both.
type change struct {
	// before is the task as it stands; its revision is checked by the writes. A new task has
	// none, and an empty queue.
	before Ref
	// after is the new file, nil where the bytes stay.
	after []byte
	to    contract.Queue
	role  contract.Role
	// reason goes into the journal.
	reason string
}

// intent is the record of a change that has begun. It stands in the intent folder from before
// the first write until the journal line is on disk, so that a change cut short is finished or
// forgotten as a whole. The first six keys are the reference's.
type intent struct {
	TaskID   ID     `json:"task_id"`
	From     string `json:"from"`
	To       string `json:"to"`
	Role     string `json:"role"`
	IntentID string `json:"intent_id"`
	IntentAt string `json:"intent_at"`
	Reason   string `json:"reason"`
	// BeforeSHA256 and AfterSHA256 are plain hashes of the file's bytes; the first is empty for
	// a new task. Intents of other tools lack them and are left alone.
	BeforeSHA256 string `json:"before_sha256"`
	AfterSHA256  string `json:"after_sha256"`
}

const (
	intentPlace = "coordination/" // what the reference writes in front of the queue
	fromNew     = "_new"
)

func (i intent) from() contract.Queue { return queueIn(i.From) }
func (i intent) to() contract.Queue   { return queueIn(i.To) }

func queueIn(s string) contract.Queue {
	return contract.Queue(strings.TrimSuffix(strings.TrimPrefix(s, intentPlace), "/"))
}

func (t *Tree) intentDir() string {
	name := t.schema.Layout.IntentDir
	if name == "" {
		name = "intent"
	}
	return filepath.Join(t.project.Runtime, filepath.Clean(name))
}

// commit performs one change of a locked task: intent, bytes, move, journal line, intent away.
// After an error that is not uncertain the task is as before and the intent is gone; after an
// uncertain one the intent stays, and the next command on the task finishes the change.
func (t *Tree) commit(h *Held, c change) (Ref, error) {
	h.need(c.before.ID)
	// A journal that takes no line stops the change before it begins.
	if _, err := t.hasIntent(""); err != nil {
		return c.before, err
	}
	i, err := t.intend(c)
	if err != nil {
		return c.before, err
	}
	path := t.intentPath(i)
	data, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return c.before, fmt.Errorf("tasks: an intent cannot be spelled: %w", err)
	}
	if err := t.disk.MkdirAll(t.intentDir(), queuePerm); err != nil {
		return c.before, storage(err, "the intent folder cannot be made")
	}
	if err := t.disk.Create(path, append(data, '\n'), taskPerm); err != nil {
		return c.before, errors.Join(storage(err, "the intent of the change cannot be written"), t.forget(i))
	}
	ref, err := t.perform(h, c)
	if err != nil {
		return c.before, t.undone(i, err)
	}
	return ref, t.conclude(i)
}

// intend makes the intent of a change.
func (t *Tree) intend(c change) (intent, error) {
	var id [16]byte
	rand.Read(id[:]) // never fails: the runtime ends the process instead
	i := intent{TaskID: c.before.ID, From: fromNew, To: intentPlace + string(c.to) + "/", Role: string(c.role),
		IntentID: hex.EncodeToString(id[:]), IntentAt: stamp(t.now()), Reason: c.reason}
	if c.before.Queue != "" {
		data, err := readRegular(t.fullPath(c.before.File), c.before.File)
		if err != nil {
			return i, err
		}
		i.From = intentPlace + string(c.before.Queue) + "/"
		i.BeforeSHA256, i.AfterSHA256 = contentSum(data), contentSum(data)
	}
	if c.after != nil {
		i.AfterSHA256 = contentSum(c.after)
	}
	return i, nil
}

func (t *Tree) intentPath(i intent) string {
	return filepath.Join(t.intentDir(), fmt.Sprintf("%s-%s-%s.json", i.TaskID, i.Role, i.IntentID))
}

// perform makes the file changes of a change.
func (t *Tree) perform(h *Held, c change) (Ref, error) {
	ref := c.before
	var err error
	switch {
	case ref.Queue == "":
		return t.create(ref.ID, c.to, c.after)
	case c.after != nil:
		if ref, err = t.Write(h, ref, c.after); err != nil {
			return ref, err
		}
	}
	if c.to == ref.Queue {
		return ref, nil
	}
	return t.Move(h, ref, c.to)
}

// create puts a new task's file into a queue.
func (t *Tree) create(id ID, queue contract.Queue, data []byte) (Ref, error) {
	ref := Ref{ID: id, Queue: queue, File: FileOf(queue, id)}
	ref.Revision = RevisionOf(ref.File, data)
	if err := t.disk.MkdirAll(t.project.QueueDir(queue), queuePerm); err != nil {
		return ref, storage(err, "the queue folder of %s cannot be made", queue)
	}
	err := t.disk.Create(t.fullPath(ref.File), data, taskPerm)
	switch {
	case errors.Is(err, fs.ErrExist):
		return ref, refusal.New(refusal.CodeTaskExists, "take another title or number", "%s exists already", ref.File)
	case err != nil:
		return ref, storage(err, "%s cannot be written", ref.File)
	}
	return ref, nil
}

// undone drops the intent of a change that failed where the task stands as before. Where it
// does not, or cannot be looked at, the intent stays for the next command to finish.
func (t *Tree) undone(i intent, cause error) error {
	if r, ok := refusal.Find(cause); ok && r.Code == refusal.CodeTaskExists {
		return errors.Join(cause, t.forget(i))
	}
	place, sum, err := t.standing(i.TaskID)
	if err == nil && i.notBegun(place, sum) {
		return errors.Join(cause, t.forget(i))
	}
	return cause
}

// conclude writes the journal line of a finished change and drops its intent.
func (t *Tree) conclude(i intent) error {
	from := string(i.from())
	err := t.appendJournal(JournalLine{T: i.IntentAt, Actor: i.Role, Task: string(i.TaskID), From: from, To: string(i.to()),
		Reason: cut(i.Reason, MaxReason), IntentID: i.IntentID},
		func(x *journalIndex) bool { return x.intents[i.IntentID] })
	if err != nil {
		return err
	}
	return t.forget(i)
}

func (t *Tree) forget(i intent) error {
	if err := t.disk.Remove(t.intentPath(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return storage(err, "the intent of a finished change cannot be removed")
	}
	return nil
}

// cut shortens a text to n characters.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}
