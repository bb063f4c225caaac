package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// standing is where a task's file is, with its content hash; an empty ref where it is nowhere.
func (t *Tree) standing(id ID) (Ref, string, error) {
	found, err := t.places(id)
	if err != nil || len(found) == 0 {
		return Ref{}, "", err
	}
	e, err := only(string(id), found)
	if err != nil {
		return Ref{}, "", err
	}
	data, err := readRegular(t.fullPath(e.file()), e.file())
	if err != nil {
		return Ref{}, "", err
	}
	r := Ref{ID: id, Queue: e.queue, File: e.file(), Revision: RevisionOf(e.file(), data)}
	return r, contentSum(data), nil
}

// notBegun reports whether a task stands as before its intent.
func (i intent) notBegun(r Ref, sum string) bool {
	if i.From == fromNew {
		return r.Queue == ""
	}
	return r.Queue == i.from() && sum == i.BeforeSHA256
}

// finishIntents finishes the changes of a locked task that were cut short: a change that has
// not begun is forgotten, one that has is completed and journaled. An intent that fits neither,
// because the task was changed by other hands, is left where it is for a person to see.
func (t *Tree) finishIntents(h *Held, id ID) error {
	intents, err := t.intents(func(i intent) bool { return i.TaskID == id })
	if err != nil {
		return err
	}
	for _, i := range intents {
		if err := t.finish(h, i); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tree) finish(h *Held, i intent) error {
	if done, err := t.hasIntent(i.IntentID); err != nil {
		return err
	} else if done {
		return t.conclude(i)
	}
	place, sum, err := t.standing(i.TaskID)
	switch {
	case err != nil:
		return err
	case i.AfterSHA256 == sum && place.Queue == i.to():
		return t.finished(i, place)
	case i.AfterSHA256 == sum && place.Queue == i.from() && i.BeforeSHA256 != sum:
		// New bytes, not moved yet.
		if err := t.Settle(place, place.Queue); err != nil {
			return err
		}
		if _, err := t.Move(h, place, i.to()); err != nil {
			return err
		}
		return t.conclude(i)
	case i.notBegun(place, sum):
		return t.forget(i)
	}
	return nil
}

// finished journals a change whose file stands where it belongs.
func (t *Tree) finished(i intent, place Ref) error {
	from := i.from()
	if i.From == fromNew {
		from = place.Queue
	}
	if err := t.Settle(place, from); err != nil {
		return err
	}
	return t.conclude(i)
}

// intents reads our own intents that take matches, in the order of their names.
func (t *Tree) intents(takes func(intent) bool) ([]intent, error) {
	names, err := os.ReadDir(t.intentDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, storage(err, "the intent folder cannot be read")
	}
	var out []intent
	for _, entry := range names {
		if !strings.HasSuffix(entry.Name(), ".json") || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		data, err := readRegular(filepath.Join(t.intentDir(), entry.Name()), "intent/"+entry.Name())
		if err != nil {
			continue // no file of ours
		}
		var i intent
		d := json.NewDecoder(bytes.NewReader(data))
		if d.Decode(&i) != nil || i.AfterSHA256 == "" || !i.TaskID.Valid() || filepath.Base(t.intentPath(i)) != entry.Name() {
			continue // another tool's, or half a file
		}
		if takes(i) {
			out = append(out, i)
		}
	}
	return out, nil
}

// Unfinished lists the tasks that an operator's change was begun of and is on no journal line
// yet. One that stays after FinishChanges is a person's to look at: other hands changed the task
// meanwhile.
func (t *Tree) Unfinished() ([]ID, error) {
	ids := []ID{}
	all, err := t.intents(func(i intent) bool { return true })
	for _, i := range all {
		if done, hasErr := t.hasIntent(i.IntentID); hasErr == nil && !done && !slices.Contains(ids, i.TaskID) {
			ids = append(ids, i.TaskID)
		}
	}
	return ids, err
}

// FinishChanges finishes every operator's change that was cut short, task by task under its
// lock. The daemon calls it before it dispatches anything.
func (t *Tree) FinishChanges(ctx context.Context) error {
	all, err := t.intents(func(intent) bool { return true })
	if err != nil {
		return err
	}
	var ids []ID
	for _, i := range all {
		if !slices.Contains(ids, i.TaskID) {
			ids = append(ids, i.TaskID)
		}
	}
	for _, id := range ids {
		h, err := t.Lock(ctx, id)
		if err != nil {
			return err
		}
		err = t.finishIntents(h, id)
		h.Release()
		if err != nil {
			return err
		}
	}
	return nil
}
