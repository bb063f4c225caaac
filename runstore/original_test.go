package runstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/fixtures/original"
	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/refusal"
)

// leftByOriginal lays a store of the original out and returns its folder.
func leftByOriginal(t *testing.T, name string) string {
	t.Helper()
	root := filepath.Dir(storeDir(t))
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := original.Write(root, name); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, ".greatminds", ".runtime")
}

// tree is every file below dir with its bytes.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all[strings.TrimPrefix(path, dir+"/")] = readText(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func documentOf(t *testing.T, text string) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// holds tells what of want is not in got: members may be added, none may go or change.
func holds(place string, want, got any) []string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return []string{place + " is no object any more"}
		}
		var gone []string
		for key, value := range w {
			if now, there := g[key]; there || value != nil {
				gone = append(gone, holds(place+"."+key, value, now)...)
			}
		}
		return gone
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return []string{fmt.Sprintf("%s had %d elements", place, len(w))}
		}
		var gone []string
		for i := range w {
			gone = append(gone, holds(fmt.Sprintf("%s[%d]", place, i), w[i], g[i])...)
		}
		return gone
	}
	if !cmp.Equal(want, got) {
		return []string{fmt.Sprintf("%s was %v and is %v", place, want, got)}
	}
	return nil
}

// withoutTranslated takes out what is spelled otherwise by us.
func withoutTranslated(doc map[string]any) map[string]any {
	operations, _ := doc[inMaintenance].(map[string]any)
	for _, o := range operations {
		for _, key := range []string{"at", "updated_at", "source", "destination"} {
			delete(o.(map[string]any), key)
		}
	}
	return doc
}

func keptFile(sum string) string { return "original-state-" + sum[:12] + ".json" }

// E-153, E-157
func TestAStoreOfTheOriginalIsTakenOverWholeAndOnce(t *testing.T) {
	for _, name := range original.Names() {
		t.Run(name, func(t *testing.T) {
			dir := leftByOriginal(t, name)
			before := tree(t, dir)
			was := before["state.json"]
			seen, err := Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
				t.Errorf("reading changed something:\n%s", diff)
			}
			o := options(dir, nil)
			var log bytes.Buffer
			o.Log = textLog(&log)
			s := openStore(t, o)
			kept := keptFile(hashText(was))
			if !strings.Contains(log.String(), "taken over") || !strings.Contains(log.String(), kept) {
				t.Errorf("the log does not tell: %s", log.String())
			}
			now := documentOf(t, string(s.View().Document()))
			delete(now, topTakenOver)
			if diff := cmp.Diff(documentOf(t, string(seen.Document())), now); diff != "" {
				t.Errorf("read before and after the take-over (-before +after):\n%s", diff)
			}
			if got := s.View().TakenOver(); got == nil || got.File != kept || got.SHA256 != hashText(was) || got.At == 0 {
				t.Errorf("got %+v", got)
			}
			closeStore(t, s)
			after := tree(t, dir)
			if gone := holds("", withoutTranslated(documentOf(t, was)), documentOf(t, after["state.json"])); len(gone) > 0 {
				t.Errorf("not taken over: %s", strings.Join(gone, "; "))
			}
			if after[kept] != was {
				t.Error("the original's state.json was not kept as it was")
			}
			delete(after, kept)
			after["state.json"] = was
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("other files changed:\n%s", diff)
			}
			once(t, dir)
		})
	}
}

// once checks that nothing is taken over a second time.
func once(t *testing.T, dir string) {
	t.Helper()
	before := tree(t, dir)
	o := options(dir, nil)
	var log bytes.Buffer
	o.Log = textLog(&log)
	closeStore(t, openStore(t, o))
	if log.Len() > 0 {
		t.Errorf("the second start said %s", log.String())
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("the second start changed something:\n%s", diff)
	}
}

// What has ended goes to the history at the take-over already, and is found there.
func TestARolledOverTakeOverIsWhole(t *testing.T) {
	dir := leftByOriginal(t, "pruned")
	o := options(dir, nil)
	o.EagerHistory = true
	s := openStore(t, o)
	runs := s.View().Totals()[Completed]
	closeStore(t, s)
	for range 2 {
		s = openStore(t, o)
		if got := s.View().Totals()[Completed]; got != runs || got != 6 {
			t.Errorf("got %d runs, want %d", got, runs)
		}
		for id := range documentOf(t, readText(t, filepath.Join(dir, s.View().TakenOver().File)))["runs"].(map[string]any) {
			if r := s.View().Run(RunID(id)); r == nil || s.View().ResultOfRun(r.ID) == nil {
				t.Errorf("run %s is not found", id)
			}
		}
		update(t, s, func(tx *Tx) error { tx.Emit("more", "", nil); return nil })
		closeStore(t, s)
	}
}

// The sequence goes on, and so do the counters of what was discarded.
func TestEventsOfTheOriginalKeepTheirSequence(t *testing.T) {
	dir := leftByOriginal(t, "pruned")
	was := documentOf(t, readText(t, dir+"/state.json"))
	events := was["events"].([]any)
	retention := was["event_retention"].(map[string]any)
	last := uint64(events[len(events)-1].(map[string]any)["sequence"].(float64))
	o := options(dir, nil)
	o.MaxEvents = 100
	s := openStore(t, o)
	defer closeStore(t, s)
	v := s.View()
	r := v.EventRetention()
	if float64(r.DiscardedCount) != retention["discarded_count"] || float64(r.DiscardedThrough) != retention["discarded_through"] || r.DiscardedCount == 0 || r.MaxEvents != 100 {
		t.Errorf("got %+v, want %v", r, retention)
	}
	page := v.Events(0, 1000)
	if len(page) != len(events)+1 || page[0].Kind != "events_gap" || page[0].Sequence != r.DiscardedThrough || page[1].Sequence != r.DiscardedThrough+1 {
		t.Errorf("got %d events, the first of them %+v", len(page), page[0])
	}
	update(t, s, func(tx *Tx) error { tx.Emit("more", "", nil); return nil })
	if got := s.View().Sequence(); got <= last {
		t.Errorf("got sequence %d after %d", got, last)
	}
}

// The records of applications are files in the original's store.
func TestTheOriginalsApplicationsGoOn(t *testing.T) {
	for name, want := range map[string]struct{ status, phase, done, source, destination string }{
		"intent":    {status: "received"}, // nothing has begun: it is judged anew
		"received":  {status: "received"},
		"applying":  {"applying", "prepared", "[]", "feature_dev", "feature_test"},
		"moved":     {"applying", "prepared", "[]", "feature_dev", "feature_test"},
		"committed": {"applying", "committed", "[]", "feature_dev", "feature_test"},
		"merging":   {"applying", "prepared", "[]", "feature_review", "verified"},
		"merged":    {"applying", "prepared", "[pre-0-merge]", "feature_review", "verified"},
		"removing":  {"applying", "prepared", "[pre-0-merge]", "feature_review", "verified"},
		"conflict":  {"needs_recovery", "prepared", "[]", "feature_review", "verified"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := leftByOriginal(t, name)
			s := openStore(t, options(dir, nil))
			defer closeStore(t, s)
			v := s.View()
			open := v.OpenResults()
			if len(open) != 1 || open[0].Status != want.status {
				t.Fatalf("got %v", open)
			}
			op := v.Operation(OperationID(open[0].ID()))
			if want.phase == "" {
				if op != nil {
					t.Errorf("got %+v", op)
				}
				return
			}
			if op == nil {
				t.Fatal("no record")
			}
			if op.Phase != want.phase || fmt.Sprint(op.ActionsDone) != want.done || op.Source != want.source || op.Destination != want.destination {
				t.Errorf("got %+v", op)
			}
			if op.TaskRevision != open[0].Envelope.TaskRevision || op.At < 1.7e9 || op.After == "" || op.Kind != ResultOperation {
				t.Errorf("got %+v", op)
			}
			if got := len(v.OperationsOfTask(op.TaskID)); got != 1 {
				t.Errorf("%d operations of the task, want the one that is open", got)
			}
		})
	}
}

func TestTheOriginalsMaintenanceGoesOn(t *testing.T) {
	s := openStore(t, options(leftByOriginal(t, "resume"), nil))
	defer closeStore(t, s)
	open := s.View().OpenOperations()
	if len(open) != 1 || open[0].Kind != ResumeOperation || open[0].Status != "prepared" || open[0].Source != "feature_blocked" ||
		open[0].Destination != "feature_dev" || open[0].At < 1.7e9 || open[0].BlockedBy != "DEVELOPER" || len(open[0].ContentSHA256) != 64 {
		t.Errorf("got %+v", open)
	}
}

// What the original pinned goes on resolving, and pinning the same again is no conflict.
func TestContractsThatTheOriginalPinnedResolve(t *testing.T) {
	dir := leftByOriginal(t, "completed")
	s := openStore(t, options(dir, nil))
	defer closeStore(t, s)
	run := s.View().Runs()[0]
	contract, err := s.Pinned(PinnedExecution, run.ConfigSHA256)
	if err != nil || hashText(string(contract)) != run.ConfigSHA256 {
		t.Errorf("got %.60s, %v", contract, err)
	}
	doc, err := s.Pinned(PinnedSchema, run.SchemaSHA256)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := SchemaText(doc); err != nil || hashText(string(text)) != run.SchemaSHA256 {
		t.Errorf("got %.60s, %v", text, err)
	}
	before := tree(t, dir)
	own, err := SchemaDocument(original.Schema, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.PinDocument(PinnedSchema, run.SchemaSHA256, own); err != nil {
		t.Error(err)
	}
	if err := s.PinDocument(PinnedExecution, run.ConfigSHA256, contract); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("pinned documents changed:\n%s", diff)
	}
	path := dir + "/contracts/execution-" + run.ConfigSHA256 + ".json"
	writeText(t, path, strings.Replace(readText(t, path), `"max_running": `, `"max_running": 1`, 1))
	if _, err := s.Pinned(PinnedExecution, run.ConfigSHA256); err == nil || !strings.Contains(err.Error(), "hash") {
		t.Errorf("a changed contract: %v", err)
	}
}

func TestAnOriginalsContractIsHashedWithEscapes(t *testing.T) {
	pretty, canonicalForm := "{\n  \"a\": \"é \U0001F600 \x7f\",\n  \"b\": [1, 2]\n}\n", `{"a":"\u00e9 \ud83d\ude00 \u007f","b":[1,2]}`
	got, err := checkPinned(PinnedExecution, hashText(canonicalForm), []byte(pretty))
	if err != nil || string(got) != canonicalForm {
		t.Errorf("got %s, %v", got, err)
	}
}

// E-165: a crash at any step of a take-over leaves the original's store, or ours.
func TestACrashInATakeOverLeavesOneStoreOrTheOther(t *testing.T) {
	for fault, plan := range map[string]func(n int) faultdisk.Fault{
		"crash":             faultdisk.CrashAt,
		"crash in a write":  func(n int) faultdisk.Fault { return faultdisk.TearAt(n, 500) },
		"EIO":               func(n int) faultdisk.Fault { return faultdisk.FailAt(n, syscall.EIO) },
		"EROFS":             func(n int) faultdisk.Fault { return faultdisk.FailFrom(n, syscall.EROFS) },
		"ENOSPC in a write": func(n int) faultdisk.Fault { return faultdisk.ShortAt(n, 500, syscall.ENOSPC) },
	} {
		t.Run(fault, func(t *testing.T) {
			steps := 0
			for n := 1; ; n++ {
				dir := leftByOriginal(t, "conflict")
				before := tree(t, dir)
				fd := faultdisk.New(plan(n))
				o := options(dir, fd)
				o.EagerHistory = true
				s, err := Open(context.Background(), o)
				if err == nil {
					err = s.Close(context.Background())
				}
				if !fd.Reached() {
					if err != nil {
						t.Fatal(err)
					}
					break
				}
				if err == nil && strings.HasPrefix(fault, "crash") {
					t.Fatalf("step %d: no error", n)
				}
				steps = n
				afterFault(t, dir, before)
				if t.Failed() {
					t.Fatalf("at step %d: %v", n, err)
				}
			}
			if steps < 10 {
				t.Errorf("%d steps were tried, want at least 10", steps)
			}
		})
	}
}

// afterFault checks that dir holds one of the two stores whole, and that the next start goes on.
func afterFault(t *testing.T, dir string, before map[string]string) {
	t.Helper()
	was := before["state.json"]
	if now := readText(t, dir+"/state.json"); now != was {
		snap, err := decodeSnapshot([]byte(now))
		if err != nil || !snap.fits || snap.original {
			t.Errorf("neither store: %v", err)
		}
		if readText(t, filepath.Join(dir, keptFile(hashText(was)))) != was {
			t.Error("our store stands there, but the original's was not kept")
		}
	}
	s := openStore(t, options(dir, nil))
	runs := 0
	for _, n := range s.View().Totals() {
		runs += n
	}
	if runs != 3 || len(s.View().OpenOperations()) != 1 {
		t.Errorf("got %d runs, %d operations", runs, len(s.View().OpenOperations()))
	}
	closeStore(t, s)
	after := tree(t, dir)
	for name, text := range before {
		if name != "state.json" && after[name] != text {
			t.Errorf("%s changed", name)
		}
	}
	if after[keptFile(hashText(was))] != was || len(after) > len(before)+2 {
		t.Errorf("kept: %v", sortedKeys(after))
	}
}

// Somebody has edited the file that an interrupted take-over had kept.
func TestAKeptFileIsNeverReplaced(t *testing.T) {
	dir := leftByOriginal(t, "idle")
	was := readText(t, dir+"/state.json")
	kept := filepath.Join(dir, keptFile(hashText(was)))
	writeText(t, kept, "mine")
	s := openStore(t, options(dir, nil))
	other := s.View().TakenOver().File
	closeStore(t, s)
	if readText(t, kept) != "mine" || readText(t, dir+"/"+other) != was {
		t.Errorf("kept as %s", other)
	}
}

// E-166
func TestAnOriginalStoreThatCannotBeTrustedIsRefusedUntouched(t *testing.T) {
	edit := func(old, new string) func(dir string, text string) string {
		return func(_, text string) string { return strings.Replace(text, old, new, 1) }
	}
	operation := func(f func(text string) string) func(dir, text string) string {
		return func(dir, text string) string {
			for name := range documentOf(t, text)["results"].(map[string]any) {
				if path := dir + "/operations/" + name + ".json"; strings.Contains(readText(t, path), `"prepared"`) {
					writeText(t, path, f(readText(t, path)))
				}
			}
			return text
		}
	}
	for name, c := range map[string]struct {
		damage func(dir, text string) string
		code   refusal.Code
		what   string
	}{
		"cut short":               {func(_, text string) string { return text[:len(text)/2] }, refusal.CodeStoreMalformed, "state.json: byte"},
		"empty":                   {func(_, _ string) string { return "" }, refusal.CodeStoreMalformed, "state.json: byte 0"},
		"newer":                   {edit("\"version\": 1\n}", "\"version\": 2\n}"), refusal.CodeStoreNewer, "version 2"},
		"duplicate key":           {edit(`"paused": false`, `"paused": false, "paused": true`), refusal.CodeStoreMalformed, "duplicate"},
		"unknown state":           {edit(`"state": "completed"`, `"state": "flying"`), refusal.CodeStoreMalformed, "flying"},
		"events out of order":     {edit(`"sequence": 2`, `"sequence": 1`), refusal.CodeStoreMalformed, "event 1 after event 1"},
		"record cut short":        {operation(func(text string) string { return text[:100] }), refusal.CodeStoreMalformed, "operations/"},
		"record of another task":  {operation(func(text string) string { return strings.Replace(text, `"task_id": "0001`, `"task_id": "0002`, 1) }), refusal.CodeStoreMalformed, "0002-sample"},
		"record without its time": {operation(func(text string) string { return strings.Replace(text, `"at": "20`, `"at": "x20`, 1) }), refusal.CodeStoreMalformed, "a time"},
		"record of unknown phase": {operation(func(text string) string { return strings.Replace(text, `"prepared"`, `"begun"`, 1) }), refusal.CodeStoreMalformed, "begun"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := leftByOriginal(t, "conflict")
			writeText(t, dir+"/state.json", c.damage(dir, readText(t, dir+"/state.json")))
			before := tree(t, dir)
			for _, open := range []func() error{
				func() error { _, err := Open(context.Background(), options(dir, nil)); return err },
				func() error { _, err := Read(dir); return err },
			} {
				err := open()
				refused(t, err, c.code)
				if r, _ := refusal.Find(err); r.Status() != refusal.Storage || !strings.Contains(r.What, dir) || !strings.Contains(r.What, c.what) {
					t.Errorf("got %q with status %d, want %q with status 4", r.What, r.Status(), c.what)
				}
			}
			if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
				t.Errorf("something was changed:\n%s", diff)
			}
		})
	}
}

// The original hashes an envelope's bytes, and its bytes have escapes: the same decision sent
// again is the same decision, and another one is not.
func TestADecisionOfTheOriginalIsKnownByItsEnvelope(t *testing.T) {
	dir := leftByOriginal(t, "received")
	doc := documentOf(t, readText(t, dir+"/state.json"))
	for _, r := range doc["results"].(map[string]any) {
		r := r.(map[string]any)
		r["sha256"] = strings.Repeat("0", 64)
		r["envelope"].(map[string]any)["payload"].(map[string]any)["note"] = "na@ve"
	}
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/state.json", []byte(strings.Replace(string(data), "na@ve", `na\u00efve`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, options(dir, nil))
	defer closeStore(t, s)
	open := s.View().OpenResults()
	if len(open) != 1 {
		t.Fatalf("%d results", len(open))
	}
	again := open[0].Envelope
	again.Payload = json.RawMessage(strings.Replace(string(again.Payload), `na\u00efve`, "naïve", 1))
	update(t, s, func(tx *Tx) error {
		got, isNew, err := tx.Receive(again.RunID, again)
		if err != nil || isNew || got.ID() != again.ResultID {
			t.Errorf("the same decision: got %v, %v, %v", got, isNew, err)
		}
		again.Payload = json.RawMessage(`{"note":"another"}`)
		if _, _, err := tx.Receive(again.RunID, again); err == nil {
			t.Error("another decision under the same id is taken")
		}
		return nil
	})
}
