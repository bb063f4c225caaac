package tasks_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/refusal"
	"greatminds/tasks"
)

func line(operation string) tasks.JournalLine {
	return tasks.JournalLine{T: "2026-01-05T09:00:00Z", Actor: "SYSTEM", ActorKind: "system", DecisionBy: "DEVELOPER", Task: "0001-x",
		From: "feature_dev", To: "feature_test", Reason: "apply handoff result", IntentID: operation, OperationID: operation, RunID: "r", SchemaSHA256: "s"}
}

func (l *desk) journal() string { return l.read("journal.ndjson") }

func TestJournalKeysStandInTheReferencesOrder(t *testing.T) {
	l := newDesk(t)
	resume := tasks.JournalLine{T: "t", Actor: "SYSTEM", ActorKind: "system", Task: "0001-x", From: "feature_blocked", To: "feature_dev", Reason: "r",
		IntentID: "o2", OperationID: "o2", SchemaSHA256: "s", BlockedBy: "DEVELOPER", DependencyEvidence: json.RawMessage(`[{"path":"verified/0002-y.yaml"}]`)}
	for _, e := range []tasks.JournalLine{line("o1"), {T: "t", Actor: "DEVELOPER", Task: "0001-x", From: "_new", To: "q", Reason: "<&>"}, resume} {
		if err := l.tree.AppendJournal(e); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"t":"2026-01-05T09:00:00Z","actor":"SYSTEM","actor_kind":"system","decision_by":"DEVELOPER","task":"0001-x","from":"feature_dev","to":"feature_test","reason":"apply handoff result","intent_id":"o1","operation_id":"o1","run_id":"r","schema_sha256":"s"}
{"t":"t","actor":"DEVELOPER","task":"0001-x","from":"_new","to":"q","reason":"<&>","intent_id":""}
{"t":"t","actor":"SYSTEM","actor_kind":"system","task":"0001-x","from":"feature_blocked","to":"feature_dev","reason":"r","intent_id":"o2","operation_id":"o2","schema_sha256":"s","blocked_by":"DEVELOPER","dependency_evidence":[{"path":"verified/0002-y.yaml"}]}
`
	if got := l.journal(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	back, err := l.tree.Journal()
	if err != nil || len(back) != 3 {
		t.Fatalf("got %+v, %v", back, err)
	}
	if diff := cmp.Diff(line("o1"), back[0]); diff != "" {
		t.Errorf("the line reads back otherwise:\n%s", diff)
	}
}

func TestAnOperationIsJournaledOnce(t *testing.T) {
	l := newDesk(t)
	other := deskOn(t, l.project.Root, durable.NewDisk(nil)).tree
	if has, err := l.tree.HasOperation("o1"); err != nil || has {
		t.Errorf("got %v, %v before the line", has, err)
	}
	for _, tree := range []*tasks.Tree{l.tree, other, l.tree, other} {
		if err := tree.AppendJournal(line("o1")); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.AppendJournal(line("o2")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"o1", "o2"} {
		if has, err := l.tree.HasOperation(id); err != nil || !has {
			t.Errorf("%s: got %v, %v", id, has, err)
		}
	}
	if n := strings.Count(l.journal(), "\n"); n != 2 {
		t.Errorf("got %d lines:\n%s", n, l.journal())
	}
}

func TestConcurrentWritersLoseNoLine(t *testing.T) {
	l := newDesk(t)
	var wg sync.WaitGroup
	for w := range 3 {
		tree := deskOn(t, l.project.Root, durable.NewDisk(nil)).tree
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 8 {
				if err := tree.AppendJournal(line(fmt.Sprintf("o%d-%d", w, i%5))); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	if lines, err := l.tree.Journal(); err != nil || len(lines) != 15 {
		t.Errorf("got %d lines, %v, want 15", len(lines), err)
	}
}

func TestTheJournalsTailAndItsCorruption(t *testing.T) {
	good := `{"t":"a","operation_id":"old"}` + "\n"
	cases := map[string]struct {
		text    string
		after   string // what stands before the new line; "" for a refusal
		lines   int    // how many lines can be read before
		corrupt string
	}{
		"missing":                    {"", "", 0, ""},
		"whole":                      {good, good, 1, ""},
		"torn":                       {good + `{"t":"b","oper`, good, 1, ""},
		"torn first":                 {`{"t`, "", 0, ""},
		"zeros":                      {good + "\x00\x00\x00\x00", good, 1, ""},
		"zeros and a tail":           {good + "\x00\x00\x00\"}\n", good, 1, ""},
		"no line end":                {good + `{"t":"b","operation_id":"x"}`, good + `{"t":"b","operation_id":"x"}` + "\n", 2, ""},
		"corrupt in the middle":      {good + "nonsense\n" + good, "", 0, "journal.ndjson:2"},
		"corrupt at the end":         {good + "nonsense\n", "", 0, "journal.ndjson:2"},
		"a list":                     {good + "[]\n" + good, "", 0, "journal.ndjson:2"},
		"an empty line":              {good + "\n" + good, "", 0, "journal.ndjson:2"},
		"zeros in the middle":        {"\x00\x00\n" + good, "", 0, "journal.ndjson:1"},
		"another tool's odd line":    {`{"t":null,"task":7,"x":[1]}` + "\n", `{"t":null,"task":7,"x":[1]}` + "\n", 1, ""},
		"the reference's own spaces": {`{"t": "a", "actor": "X", "intent_id": ""}` + "\n", `{"t": "a", "actor": "X", "intent_id": ""}` + "\n", 1, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newDesk(t)
			if name != "missing" {
				l.put("", "journal.ndjson", c.text)
			}
			read, readErr := l.tree.Journal()
			err := l.tree.AppendJournal(line("new"))
			if c.corrupt != "" {
				for _, err := range []error{readErr, err} {
					if r := refused(t, err, refusal.CodeJournalCorrupt); r.Status() != refusal.Storage || !strings.Contains(r.What, c.corrupt) {
						t.Errorf("got %v with status %d, want %s and 4", r, r.Status(), c.corrupt)
					}
				}
				if l.journal() != c.text {
					t.Error("a corrupt journal was written to")
				}
				return
			}
			if err != nil || readErr != nil || len(read) != c.lines {
				t.Fatalf("got %v, and %d lines, %v", err, len(read), readErr)
			}
			want, _ := json.Marshal(line("new")) // a line always has a spelling
			if got := l.journal(); got != c.after+string(want)+"\n" {
				t.Errorf("got\n%q\nwant\n%q", got, c.after+string(want)+"\n")
			}
		})
	}
	t.Run("a line torn after it was seen", func(t *testing.T) {
		l := newDesk(t)
		if err := l.tree.AppendJournal(line("o1")); err != nil {
			t.Fatal(err)
		}
		if has, err := l.tree.HasOperation("o1"); !has || err != nil {
			t.Fatalf("got %v, %v", has, err)
		}
		l.put("", "journal.ndjson", l.journal()[:10])
		if err := l.tree.AppendJournal(line("o1")); err != nil || strings.Count(l.journal(), "\n") != 1 {
			t.Errorf("got %v and %q", err, l.journal())
		}
	})
	t.Run("a link is not followed", func(t *testing.T) {
		l := newDesk(t)
		if err := os.Symlink("/dev/null", filepath.Join(l.project.Runtime, "journal.ndjson")); err != nil {
			t.Fatal(err)
		}
		refused(t, l.tree.AppendJournal(line("o1")), refusal.CodeTaskStorage)
	})
}

// A journal of the reference is read, and written on.
func TestTheReferencesJournalIsReadAndContinued(t *testing.T) {
	data, err := os.ReadFile("testdata/original/journal.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	l := newDesk(t)
	l.put("", "journal.ndjson", string(data))
	before, err := l.tree.Journal()
	if err != nil || len(before) < 30 || before[0].From != "_new" || before[0].Actor != "ARCHITECT-PLANNER" {
		t.Fatalf("got %d lines, %v", len(before), err)
	}
	if err := l.tree.AppendJournal(line("o1")); err != nil || !strings.HasPrefix(l.journal(), string(data)) {
		t.Errorf("got %v", err)
	}
}

// Each step of an append stopped or failed in turn, the line is there once or not at all,
// and a second try makes it once.
func TestAnAppendIsWholeAtEveryStep(t *testing.T) {
	kinds := map[string]func(n int) faultdisk.Fault{"crash": faultdisk.CrashAt,
		"tear":  func(n int) faultdisk.Fault { return faultdisk.TearAt(n, 20) },
		"full":  func(n int) faultdisk.Fault { return faultdisk.FailAt(n, syscall.ENOSPC) },
		"short": func(n int) faultdisk.Fault { return faultdisk.ShortAt(n, 20, syscall.EIO) }}
	for name, fault := range kinds {
		t.Run(name, func(t *testing.T) {
			steps := 0
			for n := 1; ; n++ {
				fd := faultdisk.New(fault(n))
				root := t.TempDir()
				l := deskOn(t, root, fd.Disk())
				l.put("", "journal.ndjson", `{"t":"a"}`+"\n"+`{"torn`)
				err := l.tree.AppendJournal(line("o1"))
				again := deskOn(t, root, durable.NewDisk(nil))
				lines, readErr := again.tree.Journal()
				if readErr != nil || len(lines) < 1 || err == nil && len(lines) != 2 {
					t.Fatalf("step %d: after %v: %d lines, %v\n%q", n, err, len(lines), readErr, again.journal())
				}
				if err := again.tree.AppendJournal(line("o1")); err != nil {
					t.Fatalf("step %d: %v", n, err)
				}
				if lines, err := again.tree.Journal(); err != nil || len(lines) != 2 {
					t.Fatalf("step %d: %d lines after the second try, %v\n%q", n, len(lines), err, again.journal())
				}
				if !fd.Reached() {
					break
				}
				steps++
			}
			if steps < 4 {
				t.Errorf("only %d steps were tried", steps)
			}
		})
	}
}

func FuzzJournal(f *testing.F) {
	data, err := os.ReadFile("testdata/original/journal.ndjson")
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{string(data), "", "{}\n", "{}", "\x00\n{}\n", `{"operation_id":"new"}`, "{\"a\":1}\n\x00\x00"} {
		f.Add([]byte(text))
	}
	root := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		l := deskOn(t, root, durable.NewDisk(nil))
		l.put("", "journal.ndjson", string(data))
		before, readErr := l.tree.Journal()
		err := l.tree.AppendJournal(line("new"))
		if (readErr == nil) != (err == nil) {
			t.Fatalf("reading says %v, writing %v", readErr, err)
		}
		if err != nil {
			refused(t, err, refusal.CodeJournalCorrupt)
			return
		}
		after, err := l.tree.Journal()
		if has, hasErr := l.tree.HasOperation("new"); err != nil || hasErr != nil || !has || len(after) < len(before) || len(after) > len(before)+1 {
			t.Fatalf("got %d lines after %d, %v, %v", len(after), len(before), err, hasErr)
		}
	})
}
