package runstore

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"greatminds/internal/durable/faultdisk"
)

// asides lists the segments that were set aside.
func asides(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(dir + "/history-aside-*")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A snapshot of before, put back alone, must not destroy the work that was finished since: the newer
// snapshot can still come back.
func TestAnOlderSnapshotDestroysNoHistory(t *testing.T) {
	for _, before := range []int{0, 3, 6} {
		dir, about := storeDir(t), &subjects{}
		s := openStore(t, rolling(dir, nil))
		claim(t, s, "first")
		for i := range before {
			about.lived(t, s, i)
		}
		closeStore(t, s)
		older := readText(t, dir+"/state.json")
		s = openStore(t, rolling(dir, nil))
		for i := range 9 {
			about.lived(t, s, before+i)
		}
		want := about.answers(s.View())
		closeStore(t, s)
		newer := readText(t, dir+"/state.json")

		writeText(t, dir+"/state.json", older)
		var log bytes.Buffer
		o := options(dir, nil)
		o.Log = textLog(&log)
		s = openStore(t, o)
		closeStore(t, s)
		kept := asides(t, dir)
		if len(kept) == 0 || !strings.Contains(log.String(), kept[0]) {
			t.Fatalf("after %d: set aside %v, told %q", before, kept, log.String())
		}
		writeText(t, dir+"/state.json", newer)
		for _, path := range kept {
			name := path[strings.Index(path, "runs-"):]
			writeText(t, filepath.Join(dir, historyName, name), readText(t, path))
		}
		if _, err := RebuildIndex(options(dir, nil)); err != nil {
			t.Fatal(err)
		}
		v, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := about.answers(v); got != want || v.HistoryFault() != nil {
			t.Errorf("after %d: %v: %s", before, v.HistoryFault(), firstDifference(got, want))
		}
	}
}

// What a crash leaves of a roll-over is in the state too, and is not kept a second time.
func TestWhatACrashLeavesIsNotSetAside(t *testing.T) {
	for n := 1; ; n++ {
		dir := storeDir(t)
		s := openStore(t, rolling(dir, nil))
		about := &subjects{}
		for i := range 3 {
			about.lived(t, s, i)
		}
		closeStore(t, s)
		fd := faultdisk.New(faultdisk.CrashAt(n))
		if s, err := Open(t.Context(), rolling(dir, fd)); err == nil {
			_ = s.Update(t.Context(), func(tx *Tx) error { // told by the crash
				_, err := endedRun(tx, "more")
				return err
			})
			_ = s.Close(t.Context())
		}
		closeStore(t, openStore(t, options(dir, nil)))
		if kept := asides(t, dir); len(kept) > 0 {
			t.Fatalf("a crash before step %d: %v", n, kept)
		}
		if !fd.Reached() {
			break
		}
	}
}

// endedRun makes a run that has ended.
func endedRun(tx *Tx, task string) (*ClaimedRun, error) {
	c, _, err := tx.Claim(claimOf(task), nil)
	if err != nil {
		return nil, err
	}
	return c, tx.Transition(c.ID, "end", Interrupted, "", nil)
}
