package runstore

import (
	"context"
	"os"
	"testing"
)

// A snapshot and a journal that do not belong together are never read as one state.
func TestReadNoticesANewSnapshotBetweenTheFiles(t *testing.T) {
	for name, between := range map[string]func(s *Store, dir string){
		"folded": func(s *Store, _ string) {
			update(t, s, put("c"))
			update(t, s, put("d")) // waits until the journal of the one before is folded
		},
		"closed": func(s *Store, _ string) { closeStore(t, s) },
		"closed and opened": func(s *Store, dir string) {
			closeStore(t, s)
			other := openStore(t, options(dir, nil))
			update(t, other, put("c"))
			closeStore(t, other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := storeDir(t)
			o := options(dir, nil)
			o.foldAlways = name == "folded"
			s := openStore(t, o)
			update(t, s, put("a"))
			update(t, s, put("b"))
			r, err := readOnce(dir, func() { between(s, dir) })
			if err != nil || r != nil {
				t.Errorf("got %v, %v, want to try again", r, err)
			}
			v, err := Read(dir)
			if err != nil || v.Request("b") == nil {
				t.Errorf("reading again: %v", err)
			}
			if name == "folded" {
				closeStore(t, s)
			}
		})
	}
}

func TestReadNoticesTheFirstSnapshot(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, options(dir, nil))
	r, err := readOnce(dir, func() { update(t, s, put("a")) })
	if err != nil || r != nil {
		t.Errorf("got %v, %v, want to try again", r, err)
	}
	closeStore(t, s)
	r, err = readOnce(dir, func() {
		if err := os.Remove(dir + "/state.json"); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil || r != nil {
		t.Errorf("got %v, %v, want to try again", r, err)
	}
}

// A line that is being written is no damage to a reader.
func TestReadLeavesAnUnfinishedLineAlone(t *testing.T) {
	dir := storeDir(t)
	killed(t, dir, func(s *Store) { update(t, s, put("a")) })
	text := readText(t, dir+"/journal.jsonl")
	writeText(t, dir+"/journal.jsonl", text+text[:100])
	v, err := Read(dir)
	if err != nil || v.Request("a") == nil {
		t.Errorf("got %v", err)
	}
	if got := readText(t, dir+"/journal.jsonl"); got != text+text[:100] {
		t.Error("reading changed the journal")
	}
	s, err := Open(context.Background(), options(dir, nil))
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
}
