package tasks_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/refusal"
	"greatminds/tasks"
)

func at(id string, text string) string { return strings.Replace(text, "0001-sample", id, 1) }

// The oddities of a queue folder: one good task among them is found, everything else is a
// problem or no entry, and nothing outside the folder is read.
func TestDiscoverReportsOddEntriesAndReadsNoneOfThem(t *testing.T) {
	l := newDesk(t)
	far := filepath.Join(t.TempDir(), "far.yaml")
	if err := os.WriteFile(far, []byte(at("0009-link", sampleTask)), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := l.project.QueueDir("feature_dev")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	l.put("feature_dev", "0001-sample.yaml", sampleTask)
	must(os.Symlink(far, filepath.Join(dir, "0009-link.yaml")))
	must(os.Symlink(far, filepath.Join(dir, "0019-dangling.yaml")))
	must(os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "sub", "0002-x.yaml"), []byte(sampleTask), 0o644))
	must(os.Mkdir(filepath.Join(dir, "0008-d.yaml"), 0o755))
	l.put("feature_dev", ".0003-y.yaml.swp", sampleTask)
	l.put("feature_dev", ".0003-y.yaml", sampleTask)
	l.put("feature_dev", "0004-z.yaml~", sampleTask)
	l.put("feature_dev", "0005 bad.yaml", sampleTask)
	l.put("feature_dev", "0006-a.yml", sampleTask)
	l.put("feature_dev", "0007-e.yaml", "")
	l.put("feature_dev", "0010-huge.yaml", strings.Repeat("# padding\n", tasks.MaxTaskBytes/10+1))
	l.put("feature_dev", "0011-old.md", "# old")
	l.put("feature_dev", "0012-blocks.yaml", strings.Replace(at("0012-blocks", sampleTask), "blocks: []",
		"blocks:\n- kind: plan\n  by: ARCHITECT-PLANNER\n  at: '2026-01-05T09:00:00Z'\n  stand_required: 'no'", 1))
	must(syscall.Mkfifo(filepath.Join(dir, "0013-pipe.yaml"), 0o644))
	must(os.WriteFile(filepath.Join(dir, "0014-secret.yaml"), []byte(sampleTask), 0o000))
	l.put("feature_dev", "_TEMPLATE.md", "x")
	l.put("feature_dev", "notes.txt", "x")
	must(os.RemoveAll(l.project.QueueDir("feature_live")))
	must(os.RemoveAll(l.project.QueueDir("archive")))
	must(os.Symlink(t.TempDir(), l.project.QueueDir("archive")))

	found, err := l.tree.Discover()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]refusal.Code{
		"feature_dev/0001-sample.yaml": "", "feature_dev/0005 bad.yaml": refusal.CodeTaskFile, "feature_dev/0006-a.yml": refusal.CodeTaskFile,
		"feature_dev/0007-e.yaml": refusal.CodeTaskYAML, "feature_dev/0008-d.yaml": refusal.CodeTaskFile,
		"feature_dev/0009-link.yaml": refusal.CodeTaskFile, "feature_dev/0019-dangling.yaml": refusal.CodeTaskFile,
		"feature_dev/0010-huge.yaml": refusal.CodeTaskFile, "feature_dev/0011-old.md": refusal.CodeTaskLegacy,
		"feature_dev/0012-blocks.yaml": "", "feature_dev/0013-pipe.yaml": refusal.CodeTaskFile,
		"feature_dev/0014-secret.yaml": refusal.CodeTaskStorage, "archive": refusal.CodeTaskStorage,
	}
	if os.Geteuid() == 0 {
		want["feature_dev/0014-secret.yaml"] = refusal.CodeTaskInvalid // root reads it all the same: another id inside
	}
	for _, f := range found {
		code, expected := want[f.File]
		delete(want, f.File)
		if !expected {
			t.Errorf("unexpected entry %s (%v)", f.File, f.Problem)
			continue
		}
		if code == "" {
			if f.Problem != nil || f.Task == nil || f.Revision == "" {
				t.Errorf("%s: got problem %v", f.File, f.Problem)
			}
			continue
		}
		if r, ok := refusal.Find(f.Problem); !ok || r.Code != code || r.Remedy == "" {
			t.Errorf("%s: got problem %v, want code %s", f.File, f.Problem, code)
		}
		if f.File == "feature_dev/0009-link.yaml" && f.Task != nil {
			t.Error("the target of a link was read as a task")
		}
	}
	for file := range want {
		t.Errorf("%s was not reported", file)
	}
	for _, f := range found {
		if f.File == "feature_dev/0012-blocks.yaml" && len(f.Faults) == 0 {
			t.Error("the faults of a broken block are not reported")
		}
	}
}

// A task that moves while the folders are looked at, in whichever order, stands in one queue all the time.
func TestDiscoverFindsAMovingTaskOnce(t *testing.T) {
	l := newDesk(t)
	ref := l.planned("feature", "backend", "DEVELOPER")
	name := filepath.Base(ref.File)
	places := []string{l.project.QueueDir(ref.Queue), l.project.QueueDir("verified")}
	for try := range 600 {
		from, to := places[try%2], places[(try+1)%2]
		moved := make(chan error, 1)
		go func() {
			for range try % 60 * 100 {
				runtime.Gosched() // some time into the look
			}
			moved <- os.Rename(filepath.Join(from, name), filepath.Join(to, name))
		}()
		found, err := l.tree.Discover()
		if err := errors.Join(err, <-moved); err != nil {
			t.Fatal(err)
		}
		if len(found) != 1 || found[0].Problem != nil {
			t.Fatalf("try %d: got %+v, want the task once", try, found)
		}
	}
}

func TestDiscoverFindsATaskThatStandsTwice(t *testing.T) {
	l := newDesk(t)
	l.put("feature_dev", "0001-sample.yaml", sampleTask)
	l.put("feature_test", "0001-sample.yaml", sampleTask)
	found, err := l.tree.Discover()
	if err != nil || len(found) != 2 {
		t.Fatalf("got %v, %v", found, err)
	}
	for _, f := range found {
		refused(t, f.Problem, refusal.CodeTaskDuplicate)
	}
	_, err = l.tree.ReadCurrent("0001-sample")
	refused(t, err, refusal.CodeTaskDuplicate)
	_, err = l.tree.Find("0001-sample")
	refused(t, err, refusal.CodeTaskDuplicate)
	_, err = l.tree.Read(found[0].Ref)
	refused(t, err, refusal.CodeTaskDuplicate)
	if ref, err := l.tree.Find("feature_test/0001-sample.yaml"); err != nil || ref.Queue != "feature_test" {
		t.Errorf("a path names its queue: got %v, %v", ref, err)
	}
}

func TestFindResolvesWhatPeopleType(t *testing.T) {
	l := newDesk(t)
	l.put("feature_dev", "0001-sample.yaml", sampleTask)
	l.put("feature_dev", "0012-other-thing.yaml", at("0012-other-thing", sampleTask))
	l.put("feature_test", "0012-other.yaml", at("0012-other", sampleTask))
	l.put("verified", "0020-old.md", "# old")
	good := map[string]tasks.ID{"0001-sample": "0001-sample", "0001-sample.yaml": "0001-sample", "1": "0001-sample", "01": "0001-sample",
		"0001": "0001-sample", "0012-other": "0012-other", "0012-other-thing": "0012-other-thing",
		"feature_dev/0012-other-thing.yaml":                                 "0012-other-thing",
		".greatminds/feature_dev/0012-other-thing.yaml":                     "0012-other-thing",
		filepath.Join(l.project.Runtime, "feature_test", "0012-other.yaml"): "0012-other"}
	for name, want := range good {
		ref, err := l.tree.Find(name)
		if err != nil || ref.ID != want || ref.Revision == "" {
			t.Errorf("%s: got %v, %v, want %s", name, ref, err, want)
		}
	}
	for name, want := range map[string]refusal.Code{"": refusal.CodeTaskNotFound, "2": refusal.CodeTaskNotFound, "sample": refusal.CodeTaskNotFound,
		"0012": refusal.CodeTaskAmbiguous, "12": refusal.CodeTaskAmbiguous, "20": refusal.CodeTaskLegacy, "..": refusal.CodeTaskNotFound,
		"feature_test/0001-sample.yaml": refusal.CodeTaskNotFound, "/etc/feature_dev/0001-sample.yaml": refusal.CodeTaskNotFound,
		"0001-samp": refusal.CodeTaskNotFound, "00001": refusal.CodeTaskNotFound} {
		_, err := l.tree.Find(name)
		if r, ok := refusal.Find(err); !ok || r.Code != want {
			t.Errorf("%q: got %v, want %s", name, err, want)
		}
	}
}

func TestReadRefusesAnotherRevision(t *testing.T) {
	l := newDesk(t)
	l.put("feature_dev", "0001-sample.yaml", sampleTask)
	ref := l.must(l.tree.Find("1"))
	if task, err := l.tree.Read(ref); err != nil || task.Revision != ref.Revision {
		t.Fatalf("got %v, %v", task, err)
	}
	l.put("feature_dev", "0001-sample.yaml", sampleTask+"# human note\n")
	_, err := l.tree.Read(ref)
	refused(t, err, refusal.CodeRevisionStale)
	if err := os.Rename(l.tree.PathOf(ref), filepath.Join(l.project.Runtime, "archive", "0001-sample.yaml")); err != nil {
		t.Fatal(err)
	}
	_, err = l.tree.Read(ref)
	refused(t, err, refusal.CodeTaskNotFound)
}

// E-163
func TestTheFileIsReadAsItStandsNow(t *testing.T) {
	l := newDesk(t)
	l.put("feature_dev", "0001-sample.yaml", sampleTask)
	if _, err := l.tree.ReadCurrent("0001-sample"); err != nil {
		t.Fatal(err)
	}
	l.put("feature_dev", "0001-sample.yaml", strings.Replace(sampleTask, "Sample task", "Edited by hand", 1))
	task, err := l.tree.ReadCurrent("0001-sample")
	if err != nil || task.Title != "Edited by hand" {
		t.Errorf("got %v, %v, want the edited title", task, err)
	}
}

// E-169
func TestALockExcludesAndKeepsItsInode(t *testing.T) {
	l := newDesk(t)
	ctx, cancel := context.WithCancel(context.Background())
	held, err := l.tree.Lock(ctx, "0002-b", "0001-a", "0002-b")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(l.project.Runtime, ".locks", "0001-a.lock")
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	cancel() // the wait ends at once
	other := tasks.Open(l.project, l.schema, durable.NewDisk(nil), time.Now)
	_, err = other.Lock(ctx, "0001-a")
	r := refused(t, err, refusal.CodeTaskLocked)
	if r.Status() != refusal.Storage {
		t.Errorf("got status %d, want 4", r.Status())
	}
	held.Release()
	held.Release() // a second call does nothing
	again, err := other.Lock(context.Background(), "0001-a")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Release()
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the lock file was replaced: %v", err)
	}
	_, err = l.tree.Lock(context.Background(), "../evil")
	refused(t, err, refusal.CodeTaskNotFound)
}

func TestWriteAndMoveCheckRevisionAndPlace(t *testing.T) {
	l := newDesk(t)
	l.put("feature_dev", "0001-sample.yaml", sampleTask)
	ref := l.must(l.tree.Find("1"))
	h, err := l.tree.Lock(context.Background(), ref.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release()
	old := ref
	ref = l.must(l.tree.Write(h, ref, []byte(sampleTask+"# more\n")))
	if got := l.must(l.tree.Find("1")); got != ref {
		t.Errorf("Write returns %v, Find says %v", ref, got)
	}
	_, err = l.tree.Write(h, old, []byte("x"))
	refused(t, err, refusal.CodeRevisionStale)
	_, err = l.tree.Move(h, old, "feature_test")
	refused(t, err, refusal.CodeRevisionStale)
	_, err = l.tree.Move(h, ref, "nowhere")
	refused(t, err, refusal.CodeQueueUnknown)
	_, err = l.tree.Move(h, ref, ".stand")
	refused(t, err, refusal.CodeQueueUnknown)
	l.put("feature_test", "0001-sample.yaml", "in the way\n")
	_, err = l.tree.Move(h, ref, "feature_test")
	refused(t, err, refusal.CodeTaskDuplicate)
	if got := l.read("feature_test", "0001-sample.yaml"); got != "in the way\n" {
		t.Errorf("the file in the way became %q", got)
	}
	if err := os.RemoveAll(l.project.QueueDir("feature_review")); err != nil {
		t.Fatal(err)
	}
	ref = l.must(l.tree.Move(h, ref, "feature_review"))
	if ref.Queue != "feature_review" || ref.Revision != tasks.RevisionOf("feature_review/0001-sample.yaml", []byte(sampleTask+"# more\n")) {
		t.Errorf("Move returns %v", ref)
	}
	if l.read("feature_dev", "0001-sample.yaml") != "" {
		t.Error("the task stands in two queues")
	}
}

func TestAChangeWithoutTheLockIsABug(t *testing.T) {
	l := newDesk(t)
	defer func() {
		if recover() == nil {
			t.Error("a write without the lock went through")
		}
	}()
	_, _ = l.tree.Write(nil, tasks.Ref{ID: "0001-sample"}, nil) // panics
}

func TestListShowAndPaths(t *testing.T) {
	l := newDesk(t)
	l.put("feature_dev", "0002-b.yaml", at("0002-b", sampleTask))
	l.put("feature_dev", "0001-sample.yaml", sampleTask)
	l.put("feature_dev", "0003-c.yaml", "- broken")
	got, err := l.tree.List("feature_dev")
	if err != nil || len(got) != 3 || got[0] != (tasks.Listed{ID: "0001-sample", Title: "Sample task", Queue: "feature_dev", File: "0001-sample.yaml"}) ||
		got[2].Title != "" {
		t.Errorf("got %v, %v", got, err)
	}
	if empty, err := l.tree.List("feature_test"); err != nil || empty == nil || len(empty) != 0 {
		t.Errorf("an empty queue gives %v, %v, want an empty list", empty, err)
	}
	for _, q := range []contract.Queue{"nowhere", ".stand", "../x"} {
		_, err = l.tree.List(q)
		refused(t, err, refusal.CodeQueueUnknown)
	}
	if ref, data, err := l.tree.Show("3"); err != nil || string(data) != "- broken" || ref.Queue != "feature_dev" {
		t.Errorf("Show gives %v, %q, %v", ref, data, err)
	}
	if _, err := l.tree.Validate("1"); err != nil {
		t.Error(err)
	}
	_, err = l.tree.Validate("3")
	refused(t, err, refusal.CodeTaskYAML)
	if err := l.tree.ValidateFile(filepath.Join(l.project.Runtime, "feature_dev", "0002-b.yaml")); err != nil {
		t.Error(err)
	}
	refused(t, l.tree.ValidateFile(filepath.Join(l.project.Runtime, "missing.yaml")), refusal.CodeTaskNotFound)
	paths := l.tree.Paths()
	if paths.Coord != l.project.Runtime || paths.Journal != filepath.Join(l.project.Runtime, "journal.ndjson") ||
		paths.IntentDir != filepath.Join(l.project.Runtime, "intent") || paths.Canon == "" {
		t.Errorf("got %+v", paths)
	}
}

// An empty queue folder that somebody removed keeps nothing from being settled: what a task has
// left is no less left.
func TestSettleOutlivesTheFolderThatATaskLeft(t *testing.T) {
	l := newDesk(t)
	l.put("feature_test", "0001-sample.yaml", sampleTask)
	if err := os.Remove(l.project.QueueDir("feature_dev")); err != nil {
		t.Fatal(err)
	}
	place := tasks.Ref{ID: "0001-sample", Queue: "feature_test", File: "feature_test/0001-sample.yaml"}
	if err := l.tree.Settle(place, "feature_dev"); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(l.project.Runtime, "feature_test", "0001-sample.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := l.tree.Settle(place, "feature_dev"); err == nil {
		t.Error("a task file that is not there was settled")
	}
}
