package activity

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"greatminds/internal/durable"
	"greatminds/internal/pace"
)

const (
	// writeEvery is the shortest time between two writes of a feed.
	writeEvery = time.Second
	// kept is how many files stay beside those of runs that go on.
	kept = 100
	// maxFile is the largest file that is read, in bytes; ours are a little over 256 KiB at most.
	maxFile = 1 << 20
)

// Dir is the folder of the feeds below a store's folder.
func Dir(store string) string { return filepath.Join(store, "activity") }

func file(store, runID string) string { return filepath.Join(Dir(store), runID+".json") }

// Prepare makes the folder of the feeds, and takes away what an earlier process left half written.
func Prepare(disk *durable.Disk, store string) error {
	if err := disk.MkdirAll(Dir(store), 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(Dir(store))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && strings.HasSuffix(e.Name(), ".tmp") {
			disk.Discard(filepath.Join(Dir(store), e.Name()))
		}
	}
	return err
}

// Keep writes the feed to its file while it changes, at most once a second, until ctx ends. A write that
// fails is tried again with the next change; [Feed.Write] says at the end whether it is there.
func (f *Feed) Keep(ctx context.Context, disk *durable.Disk, store string) {
	pace.Keep(ctx, f.notice, writeEvery, func() { _ = f.Write(disk, store) }) // what failed stays unwritten
}

// Write puts the feed into its file where that is behind.
func (f *Feed) Write(disk *durable.Disk, store string) error {
	f.mu.Lock()
	behind := f.unwritten
	f.unwritten = false
	d := f.document()
	f.mu.Unlock()
	if !behind {
		return nil
	}
	data, err := d.encode()
	if err == nil {
		err = disk.Publish(file(store, f.runID), data, 0o600)
	}
	if err != nil {
		f.mu.Lock()
		f.unwritten = true
		f.mu.Unlock()
	}
	return err
}

// Read reads the stored feed of a run; nil where there is none, and where it is the original's.
func Read(store, runID string) (*Document, error) {
	if !validID(runID) {
		return nil, nil
	}
	f, err := os.Open(file(store, runID))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	var d Document
	if len(data) > maxFile || json.Unmarshal(data, &d) != nil || d.RunID != runID || d.Items == nil {
		return nil, nil // not one of ours
	}
	if d.Version > Version {
		return nil, fmt.Errorf("the activity of run %s has version %d, this program reads %d", runID, d.Version, Version)
	}
	return &d, nil
}

// validID keeps a run's id a plain file name.
func validID(id string) bool {
	return id != "" && len(id) <= 200 && strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-") == ""
}

// Prune removes the files of all but the newest runs. live says which runs go on; theirs stay.
func Prune(disk *durable.Disk, store string, live func(runID string) bool) error {
	entries, err := os.ReadDir(Dir(store))
	if os.IsNotExist(err) || len(entries) <= kept {
		return nil
	}
	if err != nil {
		return err
	}
	type aged struct {
		name string
		at   time.Time
	}
	var files []aged
	for _, e := range entries {
		id, is := strings.CutSuffix(e.Name(), ".json")
		info, err := e.Info()
		if is && err == nil && e.Type()&fs.ModeType == 0 && validID(id) && !live(id) {
			files = append(files, aged{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b aged) int { return cmp.Or(b.at.Compare(a.at), strings.Compare(a.name, b.name)) })
	for _, f := range files[min(kept, len(files)):] {
		path := filepath.Join(Dir(store), f.name)
		disk.Discard(path)
		if lock := strings.TrimSuffix(path, ".json") + ".lock"; exists(lock) { // the original's
			disk.Discard(lock)
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
