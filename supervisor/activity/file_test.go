package activity_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/redact"
	"greatminds/supervisor/activity"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// prepared is a store's folder with one for feeds.
func prepared(t *testing.T, disk *durable.Disk) string {
	t.Helper()
	store := filepath.Join(t.TempDir(), ".runtime")
	must(t, activity.Prepare(disk, store))
	return store
}

func TestAFeedIsReadAsItWasWritten(t *testing.T) {
	disk := durable.NewDisk(nil)
	store := prepared(t, disk)
	f := newFeed()
	f.Update(chunk("hello " + secret))
	f.Stop("end_turn")
	must(t, f.Write(disk, store))
	got, err := activity.Read(store, "run1")
	must(t, err)
	if want := f.Document(); got == nil || told(got) != told(want) || got.Dropped != want.Dropped {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	path := filepath.Join(store, "activity", "run1.json")
	info, err := os.Stat(path)
	must(t, err)
	folder, err := os.Stat(filepath.Dir(path))
	must(t, err)
	if info.Mode().Perm() != 0o600 || folder.Mode().Perm() != 0o700 {
		t.Errorf("modes %v and %v", info.Mode(), folder.Mode())
	}
	must(t, os.Remove(path))
	must(t, f.Write(disk, store)) // nothing is new, so nothing is written
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("an unchanged feed is written again")
	}
}

func TestWhatIsNoFeedOfOursIsNone(t *testing.T) {
	store := prepared(t, durable.NewDisk(nil))
	for name, text := range map[string]string{"empty": "", "cut": `{"version":1,"run_id":"cut","items":[`, "theirs": `{"events":[],"sequence":4}`,
		"anothers": `{"version":1,"run_id":"x","items":[]}`, "huge": strings.Repeat(" ", 2<<20)} {
		must(t, os.WriteFile(filepath.Join(store, "activity", name+".json"), []byte(text), 0o600))
		if d, err := activity.Read(store, name); d != nil || err != nil {
			t.Errorf("%s: got %+v, %v", name, d, err)
		}
	}
	for _, id := range []string{"", "none", "../activity/empty", "a/b", ".", "x\x00y"} {
		if d, err := activity.Read(store, id); d != nil || err != nil {
			t.Errorf("%q: got %+v, %v", id, d, err)
		}
	}
	must(t, os.WriteFile(filepath.Join(store, "activity", "later.json"), []byte(`{"version":2,"run_id":"later","items":[]}`), 0o600))
	if _, err := activity.Read(store, "later"); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("a later version: %v", err)
	}
}

// A feed is written at most once a second, however much happens, and not at all while nothing does.
func TestAFeedIsWrittenAtABoundedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fd := faultdisk.New()
		store := prepared(t, fd.Disk())
		writes := func() (n int) {
			for _, s := range fd.Steps() {
				if s.Op == durable.OpRename {
					n++
				}
				if s.Op == durable.OpSync {
					t.Error("it is synced")
				}
			}
			return n
		}
		f := newFeed()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); f.Keep(ctx, fd.Disk(), store) }()
		tick := time.NewTicker(10 * time.Millisecond)
		for range 1000 { // ten seconds
			<-tick.C
			f.Update(chunk("word "))
		}
		tick.Stop()
		if n := writes(); n < 9 || n > 10 {
			t.Errorf("%d writes in ten seconds", n)
		}
		<-time.NewTimer(time.Minute).C
		if n := writes(); n > 11 {
			t.Errorf("%d writes after a quiet minute", n)
		}
		cancel()
		<-ended
	})
}

// A disk that does not take the feed is told of, and the feed is written once it does.
func TestAFeedThatCannotBeWritten(t *testing.T) {
	fd := faultdisk.New()
	store := prepared(t, fd.Disk())
	f := newFeed()
	f.Update(chunk("hello "))
	fd.Plan(faultdisk.FailAt(len(fd.Steps())+1, syscall.ENOSPC))
	if err := f.Write(fd.Disk(), store); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v", err)
	}
	fd.Heal()
	must(t, f.Write(fd.Disk(), store))
	if d, err := activity.Read(store, "run1"); err != nil || told(d) != "message hello" {
		t.Errorf("got %+v, %v", d, err)
	}
}

func TestOldFeedsMakeRoom(t *testing.T) {
	disk := durable.NewDisk(nil)
	store := prepared(t, disk)
	dir := filepath.Join(store, "activity")
	const runs = 130
	for i := range runs {
		name := fmt.Sprintf("run%03d", i)
		d, err := json.Marshal(activity.Document{Version: 1, RunID: name, Items: []activity.Item{}})
		must(t, err)
		for _, ext := range []string{".json", ".lock"} {
			path := filepath.Join(dir, name+ext)
			must(t, os.WriteFile(path, d, 0o600))
			at := time.Unix(1_700_000_000+int64(i), 0)
			must(t, os.Chtimes(path, at, at))
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, ".run000.json.0123456789abcdef.tmp"), nil, 0o600))
	live := func(id string) bool { return id == "run003" }
	must(t, activity.Prune(disk, store, live))
	for i := range runs {
		d, err := activity.Read(store, fmt.Sprintf("run%03d", i))
		must(t, err)
		if want := i >= runs-100 || i == 3; (d != nil) != want {
			t.Errorf("run%03d is kept: %v, want %v", i, d != nil, want)
		}
		if _, err := os.Stat(filepath.Join(dir, fmt.Sprintf("run%03d.lock", i))); (err == nil) != (d != nil) {
			t.Errorf("the lock of run%03d: %v", i, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Error("a file of somebody else's is gone")
	}
	must(t, activity.Prepare(disk, store))
	if _, err := os.Stat(filepath.Join(dir, ".run000.json.0123456789abcdef.tmp")); err == nil {
		t.Error("a half-written file is left")
	}
	must(t, activity.Prune(disk, filepath.Join(t.TempDir(), "none"), live))
}

// A run without secrets has a feed too.
func TestAFeedWithoutSecrets(t *testing.T) {
	f := activity.New("r", nil, time.Now)
	f.Update(chunk("hello"))
	f.Update(toolUpdate("a", strings.Repeat("t", 2000), "read", "pending"))
	f = activity.New("r", redact.New(), time.Now)
	f.Update(chunk(strings.Repeat("a", 200_000)))
	if d := f.Document(); len(d.Items) == 0 {
		t.Error("it is empty")
	}
}
