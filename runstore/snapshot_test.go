package runstore

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/internal/refusal"
)

// full puts one of everything into a store.
func full(t *testing.T, s *Store) {
	t.Helper()
	update(t, s, func(tx *Tx) error {
		tx.Observe(map[string]Revision{"feature_dev/0001-a.yaml": "rev-0001-a"})
		return nil
	})
	c := running(t, s, "0001-a")
	update(t, s, func(tx *Tx) error {
		pid := uint64(7)
		steps := []error{
			tx.RecordProcess(c.ID, Process{PID: 12, StartTicks: 34, BootID: "boot", PidfdInode: &pid, Keeper: &Process{PID: 11}}),
			tx.Stage(c.ID, "process_recorded", 1500e6),
			tx.Reserve(c.ID, "first-prompt", Reservation{RequestedBytes: 10, UsedBytes: 10, LimitBytes: 100}),
			tx.AskPermission(Permission{ID: "p1", RunID: c.ID, ExpiresAt: 2e9, Tool: json.RawMessage(`{"kind":"edit"}`), Options: []Option{{OptionID: "yes", Kind: "allow_once"}}}),
			tx.PutOperation(Operation{ID: "res1", Kind: ResultOperation, Phase: "prepared", ResultID: "res1", TaskID: "0001-a", After: "text"}),
			tx.PutOperation(Operation{ID: "resume-1", Kind: ResumeOperation, Status: "prepared", TaskID: "0002-b"}),
			tx.PutRequest("req1", json.RawMessage(`{"answer":1}`)),
			tx.SetFindings(json.RawMessage(`{"version":1,"tasks":{},"cycles":[]}`), nil),
			tx.HoldAccount(AccountHold{Account: "default", ID: "h1", Kind: "quota_exhausted", RPCCode: 402}),
			tx.SetEventLimit(500),
		}
		for _, err := range steps {
			if err != nil {
				return err
			}
		}
		if _, _, err := tx.RequestCommand(Command{ID: "cmd1", RunID: c.ID, TaskID: "0001-a", CommandID: "unit"}); err != nil {
			return err
		}
		if _, err := tx.RequestControl(c.ID, "cancel"); err != nil {
			return err
		}
		return tx.SetCommand("cmd1", "cancelled", nil)
	})
	receive(t, s, c.Run, "res1")
}

func keysOf(t *testing.T, raw []byte) []string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return sortedKeys(m)
}

// E-152, E-155
func TestTheSnapshotHasTheOriginalsShape(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, options(dir, nil))
	update(t, s, func(tx *Tx) error { tx.SetPaused(true); return nil })
	closeStore(t, s)
	text := readText(t, dir+"/state.json")
	want := []string{"events", "paused", "project_id", "results", "runs", "store", "version"}
	if got := keysOf(t, []byte(text)); !slices.Equal(got, want) {
		t.Errorf("after one change: got members %v, want %v", got, want)
	}
	s = openStore(t, options(dir, nil))
	update(t, s, func(tx *Tx) error { tx.SetPaused(false); return nil })
	full(t, s)
	closeStore(t, s)
	text = readText(t, dir+"/state.json")
	want = []string{"account_holds", "commands", "event_retention", "events", "maintenance", "maintenance_findings", "operations",
		"paused", "permissions", "project_id", "queue_observations", "requests", "results", "runs", "store", "version"}
	if got := keysOf(t, []byte(text)); !slices.Equal(got, want) {
		t.Errorf("in full use: got members %v, want %v", got, want)
	}
	checkRunShape(t, text)
	var indented bytes.Buffer
	if err := json.Indent(&indented, canonical([]byte(text)), "", "  "); err != nil || indented.String()+"\n" != text {
		t.Errorf("the file is not sorted, indented by two, with a newline at its end (%v):\n%s", err, text)
	}
}

func checkRunShape(t *testing.T, text string) {
	t.Helper()
	var doc struct {
		Version int
		Runs    map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil || doc.Version != 1 || len(doc.Runs) != 1 {
		t.Fatalf("got version %d with %d runs, %v", doc.Version, len(doc.Runs), err)
	}
	for _, run := range doc.Runs {
		want := strings.Fields(`account agent_id agent_sha256 binding_id binding_sha256 config_sha256 control conversation_id
			conversation_task created_at event_receipts id input_reservations owner_id permission process project_id queue_observation
			reason role schema_sha256 schema_version sequence session_id startup_ready_at state task_id task_path task_revision timings
			token_sha256 updated_at workspace`)
		if diff := cmp.Diff(want, keysOf(t, run)); diff != "" {
			t.Errorf("members of a run (-want +got):\n%s", diff)
		}
	}
}

// E-153: after a clean stop state.json alone is the whole state.
func TestAtRestOneFileIsTheWholeState(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, options(dir, nil))
	full(t, s)
	if got := readText(t, dir+"/journal.jsonl"); strings.Count(got, "\n") < 5 {
		t.Fatalf("the journal holds %d lines, want one per transaction and a header", strings.Count(got, "\n"))
	}
	want := everything(s.View())
	closeStore(t, s)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "state.json" {
		t.Fatalf("got %v, %v, want state.json alone", entries, err)
	}
	if st, err := os.Stat(dir + "/state.json"); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", st.Mode(), err)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("folder: got mode %v, %v, want 0700", st.Mode(), err)
	}
	before := readText(t, dir+"/state.json")
	s = openStore(t, options(dir, nil))
	if got := everything(s.View()); got != want {
		t.Errorf("reopened (-want +got):\n%s", cmp.Diff(want, got))
	}
	closeStore(t, s)
	if got := readText(t, dir+"/state.json"); got != before {
		t.Error("opening and closing without a change rewrote the file")
	}
}

func TestAnEmptyStoreIsNotWritten(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, options(dir, nil))
	closeStore(t, s)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("got %v, %v, want an empty folder", entries, err)
	}
	v, err := Read(filepath.Join(dir, "nowhere"))
	if err != nil || v.ProjectID() != "" || len(v.Runs()) != 0 {
		t.Errorf("reading no store: got %q, %v", v.ProjectID(), err)
	}
	if got, want := string(v.Document()), `{"events":[],"paused":false,"project_id":null,"results":{},"runs":{},"version":1}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// stored makes a closed store with one of everything and returns its folder and file.
func stored(t *testing.T) (dir, text string) {
	t.Helper()
	dir = storeDir(t)
	s := openStore(t, options(dir, nil))
	full(t, s)
	closeStore(t, s)
	return dir, readText(t, dir+"/state.json")
}

// E-166
func TestAMalformedSnapshotFailsClosed(t *testing.T) {
	dir, good := stored(t)
	other := func(old, with string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the snapshot has no %s", old)
		}
		return strings.Replace(good, old, with, 1)
	}
	for name, c := range map[string]struct {
		text string
		code refusal.Code
		what string
	}{
		"empty":                 {"", refusal.CodeStoreMalformed, "byte 0"},
		"cut":                   {good[:len(good)/2], refusal.CodeStoreMalformed, "unexpected end"},
		"zeros":                 {strings.Repeat("\x00", len(good)), refusal.CodeStoreMalformed, "byte 0"},
		"two documents":         {good + good, refusal.CodeStoreMalformed, "after the end"},
		"no object":             {"[]", refusal.CodeStoreMalformed, "an object expected"},
		"duplicate key":         {other(`"paused": false`, `"paused": false, "paused": true`), refusal.CodeStoreMalformed, "duplicate"},
		"duplicate key deep":    {other(`"kind": "edit"`, `"kind": "edit", "kind": "x"`), refusal.CodeStoreMalformed, "duplicate"},
		"wrong type":            {other(`"paused": false`, `"paused": 0`), refusal.CodeStoreMalformed, "true or false expected"},
		"runs an array":         {other(`"runs": {`, `"runs": [], "x": {`), refusal.CodeStoreMalformed, "runs: an object"},
		"events an object":      {other(`"events": [`, `"events": {}, "x": [`), refusal.CodeStoreMalformed, "events: an array"},
		"missing member":        {other(`"paused": false,`, ``), refusal.CodeStoreMalformed, "required member paused"},
		"unknown state":         {other(`"state": "running"`, `"state": "flying"`), refusal.CodeStoreMalformed, `unknown state "flying"`},
		"unknown status":        {other(`"status": "received"`, `"status": "lost"`), refusal.CodeStoreMalformed, `unknown status "lost"`},
		"another key":           {other(`"res1": {`, `"res2": {`), refusal.CodeStoreMalformed, "stands under the key"},
		"events out of order":   {other(`"sequence": 2`, `"sequence": 1`), refusal.CodeStoreMalformed, "event 1 after event 1"},
		"foreign format":        {other(`"format": "greatminds-go"`, `"format": "other"`), refusal.CodeStoreMalformed, `"other"`},
		"no generation":         {other(`"generation": `, `"generation": 0, "was": `), refusal.CodeStoreMalformed, "generation 0"},
		"event limit 0":         {other(`"max_events": 500`, `"max_events": 0`), refusal.CodeStoreMalformed, "event limit"},
		"version 0":             {other(`"version": 1`+"\n}\n", `"version": 0}`), refusal.CodeStoreMalformed, "version"},
		"version as text":       {other(`"version": 1`+"\n}\n", `"version": "1"}`), refusal.CodeStoreMalformed, "version"},
		"newer version":         {other(`"version": 1`+"\n}\n", `"version": 2}`), refusal.CodeStoreNewer, "version 2"},
		"newer, unknown shape":  {`{"version": 3, "anything": {}}`, refusal.CodeStoreNewer, "version 3"},
		"store of a wrong type": {other(`"store": {`, `"store": [], "x": {`), refusal.CodeStoreMalformed, "store"},
	} {
		t.Run(name, func(t *testing.T) {
			writeText(t, dir+"/state.json", c.text)
			for _, read := range []func() error{
				func() error { _, err := Open(context.Background(), options(dir, nil)); return err },
				func() error { _, err := Read(dir); return err },
			} {
				err := read()
				refused(t, err, c.code)
				r, _ := refusal.Find(err)
				if r.Status() != refusal.Storage || !strings.Contains(r.What, dir+"/state.json") || !strings.Contains(r.What, c.what) {
					t.Errorf("got %q with status %d, want the file and %q with status 4", r.What, r.Status(), c.what)
				}
			}
			if got := readText(t, dir+"/state.json"); got != c.text {
				t.Error("the bytes were changed")
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 1 {
				t.Errorf("something else was written: %v", entries)
			}
		})
	}
}

func TestUnknownMembersOfAStoreSurvive(t *testing.T) {
	dir, good := stored(t)
	text := strings.Replace(good, `{`, `{"x_future": {"kept": 7},`, 1)
	text = strings.Replace(text, `"store": {`, `"store": {"x_store": [1, 2],`, 1)
	text = strings.Replace(text, `"state": "running"`, `"state": "running", "x_run": [true]`, 1)
	writeText(t, dir+"/state.json", text)
	s := openStore(t, options(dir, nil))
	update(t, s, func(tx *Tx) error { tx.SetPaused(true); return nil })
	move(t, s, s.View().Runs()[0].ID, Failed)
	closeStore(t, s)
	got := readText(t, dir+"/state.json")
	for _, want := range []string{`"x_future":{"kept":7}`, `"x_store":[1,2]`, `"x_run":[true]`} {
		if !strings.Contains(string(canonical([]byte(got))), want) {
			t.Errorf("%s is gone", want)
		}
	}
	if !strings.Contains(string(s.View().Document()), `"x_future":{"kept":7}`) {
		t.Error("the document lacks x_future")
	}
}

func TestAChangedSnapshotAtRestIsTakenAsItStands(t *testing.T) {
	dir, good := stored(t)
	writeText(t, dir+"/state.json", strings.Replace(good, `"paused": false`, `"paused": true`, 1))
	o := options(dir, nil)
	var log bytes.Buffer
	o.Log = textLog(&log)
	s := openStore(t, o)
	if !s.View().Paused() {
		t.Error("the change was not taken")
	}
	if !strings.Contains(log.String(), "checksum") || !strings.Contains(log.String(), "state.json") {
		t.Errorf("not logged: %q", log.String())
	}
	update(t, s, func(tx *Tx) error { tx.SetPaused(false); return nil })
	closeStore(t, s)
	snap, err := decodeSnapshot([]byte(readText(t, dir+"/state.json")))
	if err != nil || !snap.fits {
		t.Errorf("the next snapshot's checksum fits: %v, %v", snap.fits, err)
	}
}

func TestEveryByteCountsInTheChecksum(t *testing.T) {
	_, good := stored(t)
	snap, err := decodeSnapshot([]byte(good))
	if err != nil || !snap.fits {
		t.Fatalf("fits: %v, %v", snap.fits, err)
	}
	for i := range good {
		changed := []byte(good)
		changed[i] ^= 1
		if checksumFits(changed, snap.meta.Checksum) {
			t.Fatalf("byte %d may change unseen", i)
		}
	}
}

func TestAFolderOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a folder of another user")
	}
	for _, foreign := range []string{"runtime", "runtime/.runtime", "runtime/.runtime/state.json"} {
		t.Run(foreign, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "runtime/.runtime")
			s := openStore(t, options(dir, nil))
			update(t, s, func(tx *Tx) error { tx.SetPaused(true); return nil })
			closeStore(t, s)
			if err := os.Chown(filepath.Join(root, foreign), 4711, 4711); err != nil {
				t.Fatal(err)
			}
			before := readText(t, dir+"/state.json")
			_, err := Open(context.Background(), options(dir, nil))
			refused(t, err, refusal.CodeForeignRuntime)
			if !strings.Contains(err.Error(), "4711") {
				t.Errorf("the text does not name the owner: %v", err)
			}
			if got := readText(t, dir+"/state.json"); got != before {
				t.Error("the file was changed")
			}
		})
	}
}

func TestOddFilesAreNotFollowed(t *testing.T) {
	dir, good := stored(t)
	path := dir + "/state.json"
	for name, make := range map[string]func() error{
		"link":   func() error { return os.Symlink(filepath.Join(t.TempDir(), "x"), path) },
		"folder": func() error { return os.Mkdir(path, 0o700) },
		"pipe":   func() error { return syscall.Mkfifo(path, 0o600) },
	} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := make(); err != nil {
			t.Fatal(err)
		}
		_, err := Open(context.Background(), options(dir, nil))
		if r, ok := refusal.Find(err); !ok || r.Code != refusal.CodeStoreUnreadable {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
		if _, err := Read(dir); err == nil {
			t.Errorf("%s: read", name)
		}
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	writeText(t, path, good)
	closeStore(t, openStore(t, options(dir, nil)))
}

func FuzzDecodeSnapshot(f *testing.F) {
	f.Add([]byte(`{"version":1,"project_id":"p","paused":false,"runs":{},"events":[],"results":{},"store":{"format":"greatminds-go","generation":1}}`))
	f.Add([]byte(`{"version":1,"project_id":"p","paused":true,"runs":{"r":{"id":"r","state":"running","event_receipts":{"e":"s"},"x":1}},"events":[{"sequence":3,"data":{}}],"results":{"a":{"envelope":{"result_id":"a"},"status":"applied"}},"store":{"format":"greatminds-go","generation":1,"h":[]},"y":null}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		snap, err := decodeSnapshot(data)
		if err != nil {
			return
		}
		// What was read is written and read again without loss.
		text := encodeSnapshot(snap.state, snap.meta)
		again, err := decodeSnapshot(text)
		if err != nil || !again.fits {
			t.Fatalf("our own snapshot of %q: %v\n%s", data, err, text)
		}
		if got, want := string(again.state.sections(true).join()), string(snap.state.sections(true).join()); got != want {
			t.Fatalf("read again: %s\nwant %s", got, want)
		}
	})
}
