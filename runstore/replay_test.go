package runstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/internal/refusal"
)

// left makes a store that was killed with a journal of several groups, and returns its folder,
// its state and the journal's lines, each with its newline.
func left(t *testing.T) (dir, state string, journal []string) {
	t.Helper()
	dir = storeDir(t)
	s := openStore(t, options(dir, nil))
	running(t, s, "0000-z")
	closeStore(t, s)
	killed(t, dir, func(s *Store) {
		full(t, s)
		state = everything(s.View())
	})
	journal = strings.SplitAfter(readText(t, dir+"/journal.jsonl"), "\n")
	journal = journal[:len(journal)-1]
	if len(journal) < 6 {
		t.Fatalf("the journal has %d lines", len(journal))
	}
	return dir, state, journal
}

// E-153, E-168: a store that was not closed loses nothing acknowledged, and folds its journal.
func TestAKilledStoreComesBackWhole(t *testing.T) {
	dir, want, journal := left(t)
	v, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := everything(v); got != want {
		t.Errorf("read (-want +got):\n%s", cmp.Diff(want, got))
	}
	if got := readText(t, dir+"/journal.jsonl"); got != strings.Join(journal, "") {
		t.Error("reading changed the journal")
	}
	before := readText(t, dir+"/state.json")
	s := openStore(t, options(dir, nil))
	if got := everything(s.View()); got != want {
		t.Errorf("opened (-want +got):\n%s", cmp.Diff(want, got))
	}
	if readText(t, dir+"/state.json") == before || strings.Count(readText(t, dir+"/journal.jsonl"), "\n") != 1 {
		t.Error("the journal was not folded at the start")
	}
	res, isNew, err := (*Result)(nil), true, error(nil)
	update(t, s, func(tx *Tx) error {
		run := tx.Result("res1").Envelope.RunID
		res, isNew, err = tx.Receive(run, envelope(tx.Run(run), "res1"))
		return err
	})
	if isNew || res.ID() != "res1" {
		t.Errorf("the same decision again: got %v, new %v, want its receipt", res, isNew)
	}
	closeStore(t, s)
}

func TestATailThatWasNeverAcknowledgedIsSetAside(t *testing.T) {
	for name, spoil := range map[string]func(last string) string{
		"cut to a byte":   func(last string) string { return last[:1] },
		"cut in half":     func(last string) string { return last[:len(last)/2] },
		"cut by two":      func(last string) string { return last[:len(last)-2] },
		"zeros":           func(last string) string { return strings.Repeat("\x00", len(last)) },
		"a zeroed middle": func(last string) string { return last[:90] + strings.Repeat("\x00", 20) + last[110:] },
		"a lost head":     func(last string) string { return strings.Repeat("\x00", 100) + last[100:] },
		"a flipped bit":   func(last string) string { return last[:200] + string(last[200]^4) + last[201:] },
		"lines of noise":  func(last string) string { return "noise\n\n{\"checksum\":\"\n" + last[:100] },
	} {
		t.Run(name, func(t *testing.T) {
			dir, _, journal := left(t)
			head := strings.Join(journal[:len(journal)-1], "")
			writeText(t, dir+"/journal.jsonl", head)
			v, err := Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			want := everything(v)
			tail := spoil(journal[len(journal)-1])
			writeText(t, dir+"/journal.jsonl", head+tail)
			if v, err := Read(dir); err != nil || everything(v) != want {
				t.Errorf("reading beside the tail: %v", err)
			}
			o := options(dir, nil)
			var log bytes.Buffer
			o.Log = textLog(&log)
			s := openStore(t, o)
			if got := everything(s.View()); got != want {
				t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
			}
			aside, err := filepath.Glob(dir + "/journal-tail-*")
			if err != nil || len(aside) != 1 || readText(t, aside[0]) != tail {
				t.Fatalf("set aside: %v, %v", aside, err)
			}
			if !strings.Contains(log.String(), filepath.Base(aside[0])) || !strings.Contains(log.String(), fmt.Sprintf("offset=%d", len(head))) {
				t.Errorf("not reported: %s", log.String())
			}
			closeStore(t, s)
		})
	}
}

func TestALastLineWithoutItsNewlineCounts(t *testing.T) {
	dir, want, journal := left(t)
	writeText(t, dir+"/journal.jsonl", strings.TrimSuffix(strings.Join(journal, ""), "\n"))
	s := openStore(t, options(dir, nil))
	if got := everything(s.View()); got != want {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
	}
	closeStore(t, s)
}

// resealed is a line with its text changed and a checksum that fits.
func resealed(t *testing.T, line, old, with string) string {
	t.Helper()
	rest, ok := unseal([]byte(strings.TrimSuffix(line, "\n")))
	if !ok || !strings.Contains(string(rest), old) {
		t.Fatalf("the line has no %s: %s", old, line)
	}
	return string(seal([]byte(strings.Replace(string(rest), old, with, 1))))
}

func TestWhatWasAcknowledgedAndBrokeFailsClosed(t *testing.T) {
	dir, _, lines := left(t)
	snapshot := readText(t, dir+"/state.json")
	last := len(lines) - 1
	at := func(n int) int { return len(strings.Join(lines[:n], "")) }
	type damage struct {
		journal func(l []string) string
		what    string
		off     int // -1: not checked
	}
	replaced := func(n int, text string) func(l []string) string {
		return func(l []string) string { return strings.Join(l[:n], "") + text + strings.Join(l[n+1:], "") }
	}
	swap := func(l []string) string {
		l = append([]string(nil), l...)
		l[2], l[3] = l[3], l[2]
		return strings.Join(l, "")
	}
	for name, c := range map[string]damage{
		"a flipped bit":         {replaced(2, lines[2][:100]+"~"+lines[2][101:]), "checksum does not fit", at(2)},
		"a zeroed page":         {replaced(2, strings.Repeat("\x00", len(lines[2]))), "a good line follows", at(2)},
		"a lost newline":        {replaced(2, strings.TrimSuffix(lines[2], "\n")), "a good line follows", at(2)},
		"a damaged header":      {replaced(0, "x"+lines[0][1:]), "a good line follows", 0},
		"a line taken out":      {replaced(2, ""), "a gap", at(2)},
		"a line twice, changed": {replaced(2, lines[2]+resealed(t, lines[2], `"last":`, `"last":9`)), "a gap", -1},
		"two lines swapped":     {swap, "a gap", at(2)},
		"no header":             {replaced(0, ""), "header", 0},
		"a second header":       {replaced(2, lines[0]), "header", at(2)},
		"another project":       {replaced(0, resealed(t, lines[0], `"project_id":"`, `"project_id":"f`)), "project", 0},
		"a later generation":    {replaced(0, resealed(t, lines[0], `"generation":`, `"generation":9`)), "older", 0},
		"another snapshot":      {replaced(0, resealed(t, lines[0], `"after":`, `"after":9`)), "follows transaction 9", 0},
		"a foreign format":      {replaced(0, resealed(t, lines[0], `greatminds-go`, `greatminds-x`)), "format", 0},
		"an unknown kind":       {replaced(last, resealed(t, lines[last], `"results":{`, `"wonders":{`)), "unknown kind of entity", -1},
		"an unknown member":     {replaced(last, resealed(t, lines[last], `"first":`, `"x":1,"first":`)), "unknown member", -1},
		"a wrong type":          {replaced(last, resealed(t, lines[last], `"status":"received"`, `"status":7`)), "a string expected", -1},
		"a duplicate key":       {replaced(last, resealed(t, lines[last], `"status":`, `"status":"x","status":`)), "duplicate key", -1},
		"an event twice":        {replaced(last, resealed(t, lines[last], `"sequence":`, `"sequence":0,"x":`)), "event 0 after", -1},
		"a removed run":         {replaced(last, resealed(t, lines[last], `"results":{`, `"runs":{"r":null},"results":{`)), "never removed", -1},
		"backward numbers":      {replaced(last, string(seal([]byte(`"changes":{},"events":[],"first":9,"last":8}`)))), "transactions 9 to 8", at(last)},
		"no numbers":            {replaced(last, string(seal([]byte(`"changes":{},"events":[]}`)))), "transactions 0 to 0", at(last)},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.journal(lines)
			writeText(t, dir+"/journal.jsonl", text)
			_, err := Open(context.Background(), options(dir, nil))
			refused(t, err, refusal.CodeStoreMalformed)
			r, _ := refusal.Find(err)
			if !strings.Contains(r.What, dir+"/journal.jsonl: byte ") || !strings.Contains(r.What, c.what) {
				t.Errorf("got %q, want the file, the byte and %q", r.What, c.what)
			}
			if want := fmt.Sprintf("byte %d:", c.off); c.off >= 0 && !strings.Contains(r.What, want) {
				t.Errorf("got %q, want %s", r.What, want)
			}
			if readText(t, dir+"/journal.jsonl") != text || readText(t, dir+"/state.json") != snapshot {
				t.Error("the bytes were changed")
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 3 {
				t.Errorf("something else was written: %v", entries)
			}
		})
	}
}

// The way out that a refusal names is one.
func TestTheWayOutOfAMiddleDamageWorks(t *testing.T) {
	dir, _, lines := left(t)
	lines[3] = "x" + lines[3][1:]
	writeText(t, dir+"/journal.jsonl", strings.Join(lines, ""))
	_, err := Open(context.Background(), options(dir, nil))
	refused(t, err, refusal.CodeStoreMalformed)
	r, _ := refusal.Find(err)
	cut := len(strings.Join(lines[:3], ""))
	if want := fmt.Sprintf("`truncate -s %d %s/journal.jsonl`", cut, dir); !strings.Contains(r.Remedy, want) {
		t.Fatalf("got remedy %q, want %s", r.Remedy, want)
	}
	if err := os.Truncate(dir+"/journal.jsonl", int64(cut)); err != nil {
		t.Fatal(err)
	}
	closeStore(t, openStore(t, options(dir, nil)))
}

// A crash between the new snapshot and the new journal leaves the old journal, which the
// snapshot already holds: by generation, and, were they equal, by sequence.
func TestAnOldJournalBesideANewSnapshotIsSkipped(t *testing.T) {
	dir, want, lines := left(t)
	old := strings.Join(lines, "")
	closeStore(t, openStore(t, options(dir, nil)))
	newer := readText(t, dir+"/state.json")
	snap, err := decodeSnapshot([]byte(newer))
	if err != nil {
		t.Fatal(err)
	}
	sameGeneration := resealed(t, lines[0], `"generation":`, fmt.Sprintf(`"generation":%d,"was":`, snap.meta.Generation))
	sameGeneration = resealed(t, sameGeneration, `"after":`, fmt.Sprintf(`"after":%d,"from":`, snap.meta.LastSequence))
	for name, journal := range map[string]string{
		"older generation": old,
		// What a failed fsync left: neither its number nor its contents matter.
		"older generation, refused group":  old + string(seal([]byte(`"changes":{},"events":[],"first":77,"last":77}`))),
		"same generation, older sequences": sameGeneration + strings.Join(lines[1:], ""),
	} {
		t.Run(name, func(t *testing.T) {
			writeText(t, dir+"/state.json", newer)
			writeText(t, dir+"/journal.jsonl", journal)
			s := openStore(t, options(dir, nil))
			if got := everything(s.View()); got != want {
				t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
			}
			closeStore(t, s)
		})
	}
}

func TestAJournalNeedsItsSnapshot(t *testing.T) {
	t.Run("missing", func(t *testing.T) {
		dir, _, lines := left(t)
		if err := os.Remove(dir + "/state.json"); err != nil {
			t.Fatal(err)
		}
		_, err := Open(context.Background(), options(dir, nil))
		refused(t, err, refusal.CodeStoreMalformed)
		if got := readText(t, dir+"/journal.jsonl"); got != strings.Join(lines, "") || readText(t, dir+"/state.json") != "(none)" {
			t.Error("something was written")
		}
	})
	t.Run("changed", func(t *testing.T) {
		dir, _, lines := left(t)
		text := strings.Replace(readText(t, dir+"/state.json"), `"paused": false`, `"paused": true`, 1)
		writeText(t, dir+"/state.json", text)
		_, err := Open(context.Background(), options(dir, nil))
		refused(t, err, refusal.CodeStoreConflict)
		if !strings.Contains(err.Error(), "checksum") {
			t.Errorf("got %v", err)
		}
		if readText(t, dir+"/journal.jsonl") != strings.Join(lines, "") || readText(t, dir+"/state.json") != text {
			t.Error("something was written")
		}
		// The way out that the refusal names.
		if err := os.Remove(dir + "/journal.jsonl"); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, options(dir, nil))
		if !s.View().Paused() {
			t.Error("the changed snapshot was not taken")
		}
		closeStore(t, s)
	})
}

func TestLeftoversOfKilledWritersAreIgnored(t *testing.T) {
	dir, _ := stored(t)
	for _, name := range []string{".state.json.abc123", "state.json.tmp", ".state.json.0011223344556677.tmp"} {
		writeText(t, filepath.Join(dir, name), `{"version": 1, "ru`)
	}
	s := openStore(t, options(dir, nil))
	update(t, s, func(tx *Tx) error { tx.SetPaused(true); return nil })
	closeStore(t, s)
}

func FuzzDecodeLine(f *testing.F) {
	f.Add([]byte(`"changes":{"top":{"paused":true}},"events":[],"first":1,"last":1}`))
	f.Add([]byte(`"changes":{"runs":{"r":{"id":"r","state":"claimed","process":null}},"queue_observations":{"a":null}},"discarded":3,"events":[{"sequence":9,"data":{}}],"first":1,"last":4}`))
	f.Add([]byte(`"after":0,"format":"greatminds-go","generation":1,"project_id":"p"}`))
	f.Fuzz(func(t *testing.T, rest []byte) {
		if bytes.ContainsRune(rest, '\n') {
			return // it would be two lines
		}
		text := bytes.TrimSuffix(seal(rest), []byte("\n"))
		l, err := decodeLine(text, 0)
		if err != nil || l.header != nil {
			return
		}
		h := &hot{}
		if l.apply(h) != nil {
			return
		}
		// What a group left can be written as a snapshot and read again.
		snap, err := decodeSnapshot(encodeSnapshot(h, meta{Generation: 1}))
		if err != nil {
			t.Fatalf("the state after %q is no snapshot: %v", rest, err)
		}
		if got, want := string(snap.state.sections(true).join()), string(h.sections(true).join()); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}

func FuzzReplay(f *testing.F) {
	snapshot := encodeSnapshot(&hot{projectID: "p"}, meta{Generation: 1})
	head := encodeHeader(header{Generation: 1, ProjectID: "p"})
	g := &group{}
	g.add(1, map[change]struct{}{{inTop, topPaused}: {}})
	line := encodeGroup(g, &hot{paused: true})
	f.Add([]byte{}, []byte{})
	f.Add(head, line)
	f.Add(append(head, line...), line[:50])
	f.Add(head[:40], line)
	f.Fuzz(func(t *testing.T, head, tail []byte) {
		files := &files{dir: "/d", snapshot: snapshot, journal: append(append([]byte{}, head...), tail...)}
		r, err := files.replay()
		if err != nil {
			if _, ok := refusal.Find(err); !ok {
				t.Fatalf("no refusal: %v", err)
			}
			return
		}
		if r.tailAt > len(files.journal) || !json.Valid(r.state.sections(true).join()) {
			t.Fatalf("tail at %d of %d", r.tailAt, len(files.journal))
		}
	})
}
