package runstore

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"greatminds/internal/refusal"
)

// past makes a closed store most of which is history, and returns what it answers.
func past(t *testing.T, runs int) (dir string, about *subjects, want string) {
	t.Helper()
	dir, about = storeDir(t), &subjects{}
	s := openStore(t, rolling(dir, nil))
	for i := range runs {
		about.lived(t, s, i)
	}
	want = about.answers(s.View())
	closeStore(t, s)
	return dir, about, want
}

// bytesOf reads every file of the history.
func bytesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	segments, indexes := historyFiles(t, dir)
	for _, name := range append(segments, indexes...) {
		path := filepath.Join(dir, historyName, name)
		all[path] = readText(t, path)
	}
	return all
}

// honest checks that a view with a damaged history answers rightly or not at all, and that a
// transaction is refused where it got no answer. It tells whether anything was missed.
func honest(t *testing.T, dir string, about *subjects, want string) (missed bool) {
	t.Helper()
	s, err := Open(context.Background(), options(dir, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	wanted := strings.Split(want, "\n")
	for _, one := range about.each() {
		v := newView(&s.View().h)
		got, fault := one.answers(v), v.HistoryFault()
		if fault != nil {
			missed = true
			refused(t, fault, refusal.CodeHistoryUnreadable)
			if r, _ := refusal.Find(fault); r.Status() != refusal.Storage || !strings.Contains(r.What, filepath.Join(dir, historyName)) || !strings.Contains(r.What, "byte ") {
				t.Errorf("got %q, want the file and the byte", r.What)
			}
			err := s.Update(t.Context(), func(tx *Tx) error {
				_ = one.answers(tx.View)
				tx.Emit("never", "", nil)
				return nil
			})
			refused(t, err, refusal.CodeHistoryUnreadable)
			continue
		}
		for _, line := range strings.Split(got, "\n") {
			if !slices.Contains(wanted, line) {
				t.Errorf("a wrong answer: %s", line)
			}
		}
	}
	v := newView(&s.View().h)
	switch runs, _, err := v.History("", 1000); {
	case err != nil:
		missed = true
		refused(t, err, refusal.CodeHistoryUnreadable)
	case len(runs) != len(about.runs):
		t.Errorf("%d runs are listed, want %d", len(runs), len(about.runs))
	}
	if kinds := kinds(s.View().Events(0, 100_000)); strings.Contains(kinds, "never") {
		t.Error("a refused transaction is there")
	}
	return missed
}

// each returns a question about every single id.
func (s *subjects) each() []*subjects {
	var all []*subjects
	for i := range s.runs {
		all = append(all, &subjects{runs: s.runs[i : i+1]}, &subjects{results: s.results[i : i+1]}, &subjects{commands: s.commands[i : i+1]},
			&subjects{permissions: s.permissions[i : i+1]}, &subjects{operations: s.operations[2*i : 2*i+2]}, &subjects{requests: s.requests[i : i+1]})
	}
	for i := range s.tasks {
		all = append(all, &subjects{tasks: s.tasks[i : i+1]})
	}
	return all
}

func TestADamagedHistoryIsNeverTakenForNeverSeen(t *testing.T) {
	dir, about, want := past(t, 8)
	files := bytesOf(t, dir)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		good := files[path]
		at := func(i int, with string) string { return good[:i] + with + good[i+len(with):] }
		cases := map[string]string{"empty": "", "cut": good[:len(good)/2], "zeros": strings.Repeat("\x00", len(good))}
		for i := 0; i < len(good); i += 1 + len(good)/5 {
			cases[fmt.Sprintf("byte %d", i)] = at(i, string([]byte{good[i] ^ 1}))
		}
		for name, text := range cases {
			writeText(t, path, text)
			if missed := honest(t, dir, about, want); !missed && name != "byte 0" && strings.HasSuffix(path, ".idx") {
				t.Errorf("%s of %s: nothing was missed", name, path)
			}
			if t.Failed() {
				t.Fatalf("%s of %s", name, path)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if !honest(t, dir, about, want) {
			t.Errorf("%s removed: nothing was missed", path)
		}
		writeText(t, path, good)
	}
	if honest(t, dir, about, want) {
		t.Error("mended: something is missed")
	}
}

// A new id is looked for in every index; where one cannot be read it is not called new.
func TestADamagedIndexLetsNothingInAsNew(t *testing.T) {
	dir, _, _ := past(t, 8)
	_, indexes := historyFiles(t, dir)
	for _, name := range indexes {
		if err := os.Truncate(filepath.Join(dir, historyName, name), 10); err != nil {
			t.Fatal(err)
		}
	}
	s := openStore(t, options(dir, nil))
	defer closeStore(t, s)
	for what, f := range map[string]func(tx *Tx) error{
		"run": func(tx *Tx) error {
			c := claimOf("new")
			c.ID = "run-new"
			_, _, err := tx.Claim(c, nil)
			return err
		},
		"request": func(tx *Tx) error { return tx.PutRequest("never-seen", []byte(`1`)) },
	} {
		err := s.Update(t.Context(), f)
		refused(t, err, refusal.CodeHistoryUnreadable)
		if r, _ := refusal.Find(err); !strings.Contains(r.Remedy, "--rebuild-index") {
			t.Errorf("%s: remedy %q", what, r.Remedy)
		}
	}
	// What needs no answer from the history goes on.
	update(t, s, func(tx *Tx) error { tx.SetPaused(true); return nil })
}

func TestTheIndexIsMadeAgainFromTheSegments(t *testing.T) {
	dir, about, want := past(t, 20)
	_, indexes := historyFiles(t, dir)
	for _, name := range indexes {
		if err := os.Remove(filepath.Join(dir, historyName, name)); err != nil {
			t.Fatal(err)
		}
	}
	n, err := RebuildIndex(options(dir, nil))
	if err != nil || n < 20 {
		t.Fatalf("%d lines, %v", n, err)
	}
	v, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := about.answers(v); got != want || v.HistoryFault() != nil {
		t.Fatalf("%v: %s", v.HistoryFault(), firstDifference(got, want))
	}
	if err := v.CheckHistory(); err != nil {
		t.Error(err)
	}
	if got := listed(t, v, 3); len(got) != 20 || got[0] != about.runs[19] || got[19] != about.runs[0] {
		t.Errorf("listed %v", got)
	}
	// A damaged line is named, and nothing is changed.
	segments, _ := historyFiles(t, dir)
	path := filepath.Join(dir, historyName, segments[0])
	good, snapshot := readText(t, path), readText(t, dir+"/state.json")
	writeText(t, path, strings.Replace(good, "run-000", "run-xxx", 1))
	_, err = RebuildIndex(options(dir, nil))
	refused(t, err, refusal.CodeHistoryUnreadable)
	if !strings.Contains(err.Error(), segments[0]) || readText(t, dir+"/state.json") != snapshot {
		t.Errorf("got %v", err)
	}
	if err := v.CheckHistory(); err == nil {
		t.Error("the check finds nothing")
	}
}

func TestBytesBeyondTheSnapshotAreCutAtTheStart(t *testing.T) {
	dir, about, want := past(t, 6)
	segments, _ := historyFiles(t, dir)
	last := filepath.Join(dir, historyName, segments[len(segments)-1])
	good := readText(t, last)
	writeText(t, last, good+good)
	for _, stray := range []string{"runs-000999.jsonl", "index-000999.idx", ".index-000001.idx.00.tmp"} {
		writeText(t, filepath.Join(dir, historyName, stray), "garbage")
	}
	if v, err := Read(dir); err != nil || about.answers(v) != want {
		t.Errorf("reading with strays: %v", err)
	}
	s := openStore(t, rolling(dir, nil))
	if got := readText(t, last); got != good {
		t.Errorf("%d bytes, want %d", len(got), len(good))
	}
	a, b := historyFiles(t, dir)
	if names := strings.Join(append(a, b...), " "); strings.Contains(names, "999") || strings.Contains(names, "tmp") {
		t.Errorf("strays stay: %s", names)
	}
	about.lived(t, s, 6)
	about.lived(t, s, 7)
	if got := about.answers(s.View()); s.View().HistoryFault() != nil || !strings.Contains(got, "run-006") {
		t.Error(s.View().HistoryFault())
	}
	closeStore(t, s)
}

// A snapshot that is gone must not make an empty store of a long history.
func TestAHistoryWithoutItsSnapshotIsRefused(t *testing.T) {
	dir, _, _ := past(t, 4)
	if err := os.Remove(dir + "/state.json"); err != nil {
		t.Fatal(err)
	}
	_, err := Open(context.Background(), options(dir, nil))
	refused(t, err, refusal.CodeStoreMalformed)
	if _, err = Read(dir); err == nil {
		t.Error("it was read")
	}
	if segments, _ := historyFiles(t, dir); len(segments) == 0 {
		t.Error("the history was removed")
	}
}

func TestAMalformedListOfTheHistoryFailsClosed(t *testing.T) {
	dir, _, _ := past(t, 4)
	good := readText(t, dir+"/state.json")
	for _, c := range [][2]string{{`"runs-000001.jsonl"`, `"../state.json"`}, {`"index-0`, `"x/index-0`}, {`"length": `, `"length": -`}, {`"keys": `, `"keys": 99999999999`}} {
		if !strings.Contains(good, c[0]) {
			t.Fatalf("no %s", c[0])
		}
		writeText(t, dir+"/state.json", strings.Replace(good, c[0], c[1], 1))
		_, err := Open(context.Background(), options(dir, nil))
		refused(t, err, refusal.CodeStoreMalformed)
		if !strings.Contains(err.Error(), "store.history") {
			t.Errorf("%s: %v", c[1], err)
		}
	}
}
