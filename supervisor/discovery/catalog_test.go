package discovery

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"greatminds/contract"
	"greatminds/tasks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// folder is a task tree reduced to its file names.
type folder struct{ root string }

func (f folder) Look(q contract.Queue, name string) (tasks.Found, bool) {
	file := filepath.Join(string(q), name)
	data, err := os.ReadFile(filepath.Join(f.root, file))
	if err != nil {
		return tasks.Found{}, false
	}
	return tasks.Found{Ref: tasks.Ref{Queue: q, File: file, Revision: tasks.RevisionOf(file, data)}}, true
}

func (f folder) Discover() ([]tasks.Found, error) {
	var out []tasks.Found
	for _, q := range queues {
		entries, err := os.ReadDir(filepath.Join(f.root, string(q)))
		if err != nil && !os.IsNotExist(err) && !errors.Is(err, syscall.ENOTDIR) {
			return nil, err
		}
		for _, e := range entries {
			if found, ok := f.Look(q, e.Name()); ok {
				out = append(out, found)
			}
		}
	}
	return out, nil
}

var queues = []contract.Queue{"feature_dev", "feature_test"}

func open(t *testing.T) (*Catalog, string) {
	t.Helper()
	root := t.TempDir()
	for _, q := range queues {
		must(t, os.Mkdir(filepath.Join(root, string(q)), 0o755))
	}
	c := Open(folder{root}, root, queues, time.Now, slog.New(slog.DiscardHandler))
	t.Cleanup(c.Close)
	if !c.Watching() {
		t.Fatal("no inotify instance: this test needs one")
	}
	return c, root
}

func files(t *testing.T, c *Catalog) []string {
	t.Helper()
	found, err := c.Tasks()
	must(t, err)
	names := []string{}
	for _, f := range found {
		names = append(names, f.File)
	}
	return names
}

// wait takes reports until the catalog lists exactly want.
func wait(t *testing.T, c *Catalog, want ...string) {
	t.Helper()
	for {
		if got := files(t, c); equal(got, want) {
			return
		}
		select {
		case <-c.Changed():
		case <-t.Context().Done():
			t.Fatalf("got %v, want %v", files(t, c), want)
		}
	}
}

func TestAFileCountsOnceItIsClosedOrRenamedIn(t *testing.T) {
	c, root := open(t)
	wait(t, c)
	path := filepath.Join(root, "feature_dev", "a.yaml")
	f, err := os.Create(path)
	must(t, err)
	_, err = f.WriteString("half")
	must(t, err)
	c.mu.Lock()
	c.all = true // a sweep that meets the file while it is open for writing
	c.mu.Unlock()
	if got := files(t, c); len(got) != 0 {
		t.Fatalf("listed while being written: %v", got)
	}
	if !c.Waiting() {
		t.Fatal("nothing says that the file will be looked at again")
	}
	must(t, f.Close())
	wait(t, c, "feature_dev/a.yaml")
	must(t, os.Rename(path, filepath.Join(root, "feature_test", "a.yaml")))
	wait(t, c, "feature_test/a.yaml")
	must(t, os.Remove(filepath.Join(root, "feature_test", "a.yaml")))
	wait(t, c)
}

// What had happened before the question is in the answer, reported already or not: who has just
// moved a file and looks again must not be told of the past.
func TestTheListIsNeverOlderThanTheQuestion(t *testing.T) {
	c, root := open(t)
	wait(t, c)
	must(t, os.WriteFile(filepath.Join(root, "feature_dev", "a.yaml"), []byte("x"), 0o644))
	from, to := "feature_dev/a.yaml", "feature_test/a.yaml"
	for n := range 500 {
		must(t, os.Rename(filepath.Join(root, from), filepath.Join(root, to)))
		if got := files(t, c); !equal(got, []string{to}) {
			t.Fatalf("move %d: got %v, want %s", n, got, to)
		}
		from, to = to, from
	}
}

func TestAReplacedQueueFolderIsWatchedAnew(t *testing.T) {
	c, root := open(t)
	wait(t, c)
	queue := filepath.Join(root, "feature_dev")
	must(t, os.Rename(queue, queue+".old"))
	must(t, os.Mkdir(queue, 0o755))
	must(t, os.WriteFile(filepath.Join(queue, "b.yaml"), []byte("x"), 0o644))
	wait(t, c, "feature_dev/b.yaml")
	must(t, os.WriteFile(filepath.Join(queue, "c.yaml"), []byte("x"), 0o644))
	wait(t, c, "feature_dev/b.yaml", "feature_dev/c.yaml")
}

func TestAnOverflowLooksAtEverything(t *testing.T) {
	w := &watcher{byWatch: map[int32]string{}}
	got := w.translate(-1, 0x4000, "")
	if len(got) != 1 || got[0].File != "" {
		t.Fatalf("got %v, want one event that names no file", got)
	}
}

func TestAnEditIsReadAgain(t *testing.T) {
	c, root := open(t)
	path := filepath.Join(root, "feature_dev", "a.yaml")
	must(t, os.WriteFile(path, []byte("one"), 0o644))
	wait(t, c, "feature_dev/a.yaml")
	before, err := c.Tasks()
	must(t, err)
	must(t, os.WriteFile(path, []byte("two"), 0o644))
	for {
		<-c.Changed()
		after, err := c.Tasks()
		must(t, err)
		if len(after) == 1 && after[0].Revision == tasks.RevisionOf("feature_dev/a.yaml", []byte("two")) {
			break
		}
	}
	if before[0].Revision == tasks.RevisionOf("feature_dev/a.yaml", []byte("two")) {
		t.Fatal("the first list was changed after it was given out")
	}
}

// A daemon that looks late must still see that a file is being written, and wait for it.
func TestAFileBeingWrittenIsWaitedForHoweverLongAPassTakes(t *testing.T) {
	root := t.TempDir()
	for _, q := range queues {
		must(t, os.Mkdir(filepath.Join(root, string(q)), 0o755))
	}
	now := time.Now()
	c := Open(folder{root}, root, queues, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	t.Cleanup(c.Close)
	f, err := os.Create(filepath.Join(root, "feature_dev", "a.yaml"))
	must(t, err)
	if got := files(t, c); len(got) != 0 || !c.Waiting() {
		t.Fatalf("got %v, waiting %v", got, c.Waiting())
	}
	now = now.Add(time.Minute) // the pass took its time
	if !c.Waiting() {
		t.Fatal("the file is forgotten")
	}
	must(t, f.Close())
	if got := files(t, c); len(got) != 1 || c.Waiting() {
		t.Fatalf("got %v, waiting %v", got, c.Waiting())
	}
	now = now.Add(slowSweep - time.Millisecond)
	if c.Waiting() {
		t.Fatal("the end of a rest is taken for a file being written")
	}
}

// A queue that the kernel does not watch is swept, and the daemon starts all the same.
func TestAFolderThatCannotBeWatchedIsSwept(t *testing.T) {
	root := t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, "feature_test"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "feature_dev"), nil, 0o644)) // no folder
	now := time.Now()
	c := Open(folder{root}, root, queues[1:], func() time.Time { return now }, slog.New(slog.DiscardHandler))
	t.Cleanup(c.Close)
	if !c.Watching() {
		t.Fatal("one good folder is not watched")
	}
	c.watch.addQueue("feature_dev")
	if got := files(t, c); len(got) != 0 || c.Watching() || c.SweepAt().Sub(now) != fastSweep {
		t.Fatalf("got %v, watching %v, next sweep in %v", got, c.Watching(), c.SweepAt().Sub(now))
	}
}

func TestWithoutInotifyEverythingIsSwept(t *testing.T) {
	c := Open(folder{t.TempDir()}, "/nowhere", queues, time.Now, slog.New(slog.DiscardHandler))
	t.Cleanup(c.Close)
	if got := files(t, c); len(got) != 0 || c.Watching() {
		t.Fatalf("got %v, watching %v", got, c.Watching())
	}
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
