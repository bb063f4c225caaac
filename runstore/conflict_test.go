package runstore

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/refusal"
)

// rewritten is what the original makes of a state.json: it changes what it changes, keeps what it
// does not know, and writes the whole with sorted keys and two blanks a level.
func rewritten(t *testing.T, text string, change func(doc map[string]any)) string {
	t.Helper()
	doc := documentOf(t, text)
	change(doc)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(doc); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func paused(doc map[string]any) { doc["paused"] = true }

// crashed is a store whose process was killed with a journal, in a folder whose name a shell must
// not read as it stands.
func crashed(t *testing.T) (dir string) {
	t.Helper()
	dir = strings.TrimSuffix(storeDir(t), "store") + "it's a store"
	s := openStore(t, options(dir, nil))
	claim(t, s, "0001-first")
	closeStore(t, s)
	killed(t, dir, func(s *Store) { claim(t, s, "0002-second") })
	return dir
}

// commands are those that a remedy names, in their order.
func commands(r *refusal.Refusal) []string {
	var all []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(r.Remedy, -1) {
		all = append(all, m[1])
	}
	return all
}

// The original ran between our crash and our start.
func TestTwoHistoriesAreNamedAndNeitherIsLost(t *testing.T) {
	for name, change := range map[string]func(doc map[string]any){
		"as the original writes": paused,
		"without our member":     func(doc map[string]any) { paused(doc); delete(doc, "store") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashed(t)
			writeText(t, dir+"/theirs", rewritten(t, readText(t, dir+"/state.json"), change))
			if out, err := exec.Command("mv", dir+"/theirs", dir+"/state.json").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			before := tree(t, dir)
			for range 2 {
				_, err := Open(context.Background(), options(dir, nil))
				refused(t, err, refusal.CodeStoreConflict)
				r, _ := refusal.Find(err)
				for _, want := range []string{dir + "/state.json", dir + "/journal.jsonl", "original", "1 changes"} {
					if !strings.Contains(r.What, want) {
						t.Errorf("%q does not name %s", r.What, want)
					}
				}
				_, err = Read(dir)
				refused(t, err, refusal.CodeStoreConflict)
			}
			if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
				t.Errorf("something was changed:\n%s", diff)
			}
			for choice := range 2 {
				goOn(t, dir, choice, before)
			}
		})
	}
}

// goOn follows one of the two ways out in a copy of dir.
func goOn(t *testing.T, dir string, choice int, before map[string]string) {
	t.Helper()
	copied := strings.TrimSuffix(storeDir(t), "store") + "copy"
	if out, err := exec.Command("cp", "-a", dir, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, err := Open(context.Background(), options(copied, nil))
	r, _ := refusal.Find(err)
	if got := commands(r); len(got) != 2 {
		t.Fatalf("got the commands %q", got)
	}
	if out, err := exec.Command("sh", "-c", commands(r)[choice]).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", commands(r)[choice], err, out)
	}
	s := openStore(t, options(copied, nil))
	theirs := len(s.View().RunsOfTask("0002-second")) == 0 && s.View().Paused()
	ours := len(s.View().RunsOfTask("0002-second")) == 1 && !s.View().Paused()
	if choice == 0 && !theirs || choice == 1 && !ours {
		t.Errorf("way %d: paused %v, %d runs", choice, s.View().Paused(), len(s.View().Runs()))
	}
	if len(s.View().RunsOfTask("0001-first")) != 1 {
		t.Error("what both had is gone")
	}
	closeStore(t, s)
	aside := map[int]string{0: "journal.jsonl", 1: "state.json"}[choice]
	found := false
	for name, text := range tree(t, copied) {
		found = found || strings.Contains(name, "-aside-") && text == before[aside]
	}
	if !found {
		t.Errorf("way %d: the other side's %s is not kept: %v", choice, aside, sortedKeys(tree(t, copied)))
	}
}

// A journal that holds nothing is no history: a daemon that was killed before its first change.
func TestAnEmptyJournalBesideAForeignSnapshotIsNoConflict(t *testing.T) {
	dir := crashed(t)
	killed(t, dir, func(*Store) {})
	if got := strings.Count(readText(t, dir+"/journal.jsonl"), "\n"); got != 1 {
		t.Fatalf("the journal has %d lines, want its header alone", got)
	}
	writeText(t, dir+"/state.json", rewritten(t, readText(t, dir+"/state.json"), paused))
	s := openStore(t, options(dir, nil))
	if !s.View().Paused() || len(s.View().Runs()) != 2 {
		t.Errorf("paused %v, %d runs", s.View().Paused(), len(s.View().Runs()))
	}
	update(t, s, func(tx *Tx) error { tx.SetPaused(false); return nil })
	closeStore(t, s)
}

// What the original did while we were at rest is taken as it stands, its records too.
func TestWhatTheOriginalDidAtRestIsTaken(t *testing.T) {
	dir := leftByOriginal(t, "intent")
	s := openStore(t, options(dir, nil))
	id := s.View().OpenResults()[0].ID()
	closeStore(t, s)
	writeText(t, dir+"/state.json", rewritten(t, readText(t, dir+"/state.json"), func(doc map[string]any) {
		doc["results"].(map[string]any)[string(id)].(map[string]any)["status"] = "applying"
	}))
	s = openStore(t, options(dir, nil))
	defer closeStore(t, s)
	if o := s.View().Operation(OperationID(id)); o == nil || o.Phase != "prepared" || s.View().TakenOver() == nil {
		t.Errorf("got %+v", o)
	}
}

// The second name costs no copy, is there as long as the journal, and a file system without it
// only misses the way back.
func TestASnapshotHasASecondNameBesideAJournal(t *testing.T) {
	dir := storeDir(t)
	fd := faultdisk.New(faultdisk.On(func(s durable.Step) bool { return s.Op == durable.OpLink }, faultdisk.FailAt(1, errNoLinks)))
	o := options(dir, fd)
	var log bytes.Buffer
	o.Log = textLog(&log)
	s := openStore(t, o)
	claim(t, s, "0001-first")
	if got := readText(t, dir+"/"+baseName); got != "(none)" || !strings.Contains(log.String(), "second name") {
		t.Errorf("got %.40s; %s", got, log.String())
	}
	fd.Crash()
	if err := s.Close(context.Background()); err == nil {
		t.Fatal("a killed store closed cleanly")
	}
	good := readText(t, dir+"/state.json")
	writeText(t, dir+"/state.json", rewritten(t, good, paused))
	_, err := Open(context.Background(), options(dir, nil))
	refused(t, err, refusal.CodeStoreConflict)
	if r, _ := refusal.Find(err); len(commands(r)) != 1 || !strings.Contains(r.Remedy, "put back") {
		t.Errorf("got remedy %q", r.Remedy)
	}
	writeText(t, dir+"/state.json", good)
	s = openStore(t, options(dir, nil))
	claim(t, s, "0002-second")
	if got := readText(t, dir+"/"+baseName); got != readText(t, dir+"/state.json") {
		t.Error("the second name is of another snapshot")
	}
	closeStore(t, s)
	if names := sortedKeys(tree(t, dir)); len(names) != 1 {
		t.Errorf("at rest there are %v", names)
	}
}

var errNoLinks = &refusal.Refusal{Code: refusal.CodeFailed, What: "no links here"}
