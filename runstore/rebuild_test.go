package runstore

import (
	"maps"
	"testing"

	"greatminds/internal/refusal"
)

// Rebuilding the index writes the snapshot anew, with a checksum that fits: it must not make one of
// two histories that Open would refuse.
func TestTheIndexIsNotMadeAgainOverTwoHistories(t *testing.T) {
	dir, about, _ := past(t, 6)
	killed(t, dir, func(s *Store) { about.lived(t, s, 6) })
	writeText(t, dir+"/state.json", rewritten(t, readText(t, dir+"/state.json"), paused))
	before := tree(t, dir)
	_, err := RebuildIndex(options(dir, nil))
	refused(t, err, refusal.CodeStoreConflict)
	if got := tree(t, dir); !maps.Equal(got, before) {
		t.Error("something was changed")
	}
}
