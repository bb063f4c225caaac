package runstore

import (
	"regexp"
	"slices"
	"testing"
	"time"
)

// What is recorded of a finished run later does not move its end, also where an older store has not
// recorded the end itself: neither its place in the list nor the verdict about its account changes.
func TestAnOlderRunKeepsItsEnd(t *testing.T) {
	for name, change := range map[string]func(tx *Tx, id RunID) error{
		"retry": func(tx *Tx, id RunID) error {
			c, err := tx.RequestControl(id, "retry")
			if err != nil {
				return err
			}
			return tx.SetControl(id, c.ID, "completed")
		},
		"edit":     func(tx *Tx, id RunID) error { return tx.EditRun(id, func(r *Run) { r.Workspace = "/elsewhere" }) },
		"progress": func(tx *Tx, id RunID) error { return tx.SetResult("res1", "applied", moved) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, now := storeDir(t), newClock()
			o := options(dir, nil)
			o.Now = now.now
			s := openStore(t, o)
			first := running(t, s, "0001-first")
			receive(t, s, first.Run, "res1")
			update(t, s, func(tx *Tx) error { return tx.SetResult("res1", "applying", nil) })
			move(t, s, first.ID, Failed)
			second := running(t, s, "0002-second")
			move(t, s, second.ID, Failed)
			closeStore(t, s)
			writeText(t, dir+"/state.json", regexp.MustCompile(`"ended_at": [0-9.]+,\s*`).ReplaceAllString(readText(t, dir+"/state.json"), ""))

			s = openStore(t, o)
			before := s.View().Run(first.ID)
			if before.EndedAt != nil {
				t.Fatal("the end is on record")
			}
			now.add(time.Hour)
			update(t, s, func(tx *Tx) error { return change(tx, first.ID) })
			after := s.View().Run(first.ID)
			if after.EndedAt == nil || *after.EndedAt != before.UpdatedAt || after.UpdatedAt == before.UpdatedAt {
				t.Errorf("ended %v, changed %v, want %v and later", after.EndedAt, after.UpdatedAt, before.UpdatedAt)
			}
			if got := listed(t, s.View(), 1); !slices.Equal(got, []RunID{second.ID, first.ID}) {
				t.Errorf("listed %v", got)
			}
			closeStore(t, s)
		})
	}
}

// moved is what an application says that has moved its task.
func moved(r *Result) {
	r.Details = &ResultDetails{Destination: "feature_test", Decision: "handoff"}
}
