package runstore

import (
	"strings"
	"testing"
)

// A snapshot that somebody else has written decides about no file of the history, whatever it lists.
func TestAForeignSnapshotRemovesNothing(t *testing.T) {
	dir, about, want := past(t, 8)
	good := readText(t, dir+"/state.json")
	at := strings.Index(good, `"indexes": [`)
	end := strings.Index(good, `"segments": [`)
	writeText(t, dir+"/state.json", good[:at]+"\"indexes\": [],\n"+good[end:])
	segments, indexes := historyFiles(t, dir)
	s := openStore(t, rolling(dir, nil))
	about.lived(t, s, 8)
	closeStore(t, s)
	still, these := historyFiles(t, dir)
	if len(still) < len(segments) || len(these) < len(indexes) {
		t.Errorf("got %v and %v, want all of %v and %v", still, these, segments, indexes)
	}
	// The good snapshot comes back, and everything is there again.
	writeText(t, dir+"/state.json", good)
	v, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	about = &subjects{runs: about.runs[:8], tasks: about.tasks, results: about.results[:8], commands: about.commands[:8],
		permissions: about.permissions[:8], operations: about.operations[:16], requests: about.requests[:8]}
	if got := about.answers(v); got != want || v.HistoryFault() != nil {
		t.Errorf("%v: %s", v.HistoryFault(), firstDifference(got, want))
	}
}
