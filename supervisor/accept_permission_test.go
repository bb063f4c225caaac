package supervisor_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"greatminds/internal/redact"
)

// shown is what `run permission` prints of a request.
func (l *lab) shown(t *testing.T, id string) (doc map[string]any) {
	t.Helper()
	must(t, json.Unmarshal([]byte(l.run(t, "", "run", "permission", id, "--project-dir", l.project)), &doc))
	return doc
}

// A question is on record whole, but for what must not be: the run's secrets and what vendors
// add for themselves. It stands in private files alone.
//
// E-061 E-062 E-063 E-066 E-068
func TestAQuestionIsOnRecordWholeAndPrivate(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789 ", 18_000) // nearly the largest question there may be
	steps := `{"handshake":{}},{"prompt":"p"},{"ask":"q","title":"Change two files","kind":"edit","tool":{` +
		`"status":"pending","locations":[{"path":"/somewhere/a.go","line":7},{"path":"b.go"}],` +
		`"content":[{"type":"diff","path":"/somewhere/a.go","oldText":"x","newText":"y"}],` +
		`"rawInput":{"command":"edit ENVIRONMENT-SECRET","note":` + quote(long) + `,"api_key":"CANARY-KEY","list":[1,2.50,null,true],"_meta":{"v":"CANARY-VENDOR"}},` +
		`"_meta":{"vendor":"CANARY-VENDOR"}},` +
		`"options":[{"optionId":"ok","name":"Once","kind":"allow_once","_meta":{"v":"CANARY-VENDOR"}},{"optionId":"ever","name":"Always","kind":"allow_always"},{"optionId":"no","name":"No","kind":"reject_once"}]},` +
		`{"await":"q","within_ms":90000},{"end_turn":"p"}`
	l := newLab(t, steps, "    environment: {CHILD_KEY: PARENT_KEY}\n", ", permission: ask")
	l.extra = []string{"PARENT_KEY=ENVIRONMENT-SECRET"}
	l.start(t)
	id := l.pending(t)
	for _, r := range l.status(t).Runs {
		if r.State != "waiting_input" || r.Process == nil {
			t.Errorf("the run that asks is %s, process %v", r.State, r.Process)
		}
	}
	doc := l.shown(t, id)
	var want map[string]any
	must(t, json.Unmarshal([]byte(`{"toolCallId":"t-q","title":"Change two files","kind":"edit","status":"pending",`+
		`"locations":[{"path":"/somewhere/a.go","line":7},{"path":"b.go"}],`+
		`"content":[{"type":"diff","path":"/somewhere/a.go","oldText":"x","newText":"y"}],`+
		`"rawInput":{"command":"edit `+redact.Mask+`","note":`+quote(long)+`,"api_key":"`+redact.Mask+`","list":[1,2.50,null,true]}}`), &want))
	if got, ok := doc["tool"].(map[string]any); !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("the record's tool is %.600v,\nwant %.600v", doc["tool"], want)
	}
	var options []any
	must(t, json.Unmarshal([]byte(`[{"optionId":"ok","name":"Once","kind":"allow_once"},{"optionId":"ever","name":"Always","kind":"allow_always"},{"optionId":"no","name":"No","kind":"reject_once"}]`), &options))
	if !reflect.DeepEqual(doc["options"], any(options)) {
		t.Errorf("the record's options are %v", doc["options"])
	}
	private := filepath.Join(l.project, ".greatminds", ".runtime")
	if info, err := os.Stat(private); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the runtime folder: %v %v", info.Mode(), err)
	}
	holds := 0
	must(t, filepath.WalkDir(l.project, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, secret := range []string{"ENVIRONMENT-SECRET", "CANARY-KEY", "CANARY-VENDOR"} {
			if strings.Contains(string(data), secret) {
				t.Errorf("%s holds %s", path, secret)
			}
		}
		if strings.Contains(string(data), "Change two files") {
			holds++
			if info, statErr := d.Info(); statErr != nil || info.Mode().Perm() != 0o600 || !strings.HasPrefix(path, private) {
				t.Errorf("the question stands in %s, mode %v", path, info.Mode())
			}
		}
		return err
	}))
	if holds == 0 {
		t.Error("the question stands in no file")
	}
	l.run(t, "", "run", "permission", id, "--option", "no", "--project-dir", l.project)
	l.traced(t, func(e map[string]any) bool { return e["kind"] == "stdin_eof" })
}

// An answer that was handed over says nothing of what the tool then did.
//
// E-049 E-060
func TestConsumedClaimsNothingAboutTheTool(t *testing.T) {
	t.Parallel()
	steps := `{"handshake":{}},{"prompt":"p"},{"ask":"q"},{"await":"q","within_ms":90000},` +
		`{"update":{"sessionUpdate":"tool_call_update","toolCallId":"t-q","status":"failed"}},{"mark":"failed"},{"wait_file":"go","within_ms":90000},{"end_turn":"p"}`
	l := newLab(t, steps, "", ", permission: ask")
	l.start(t)
	id := l.pending(t)
	l.run(t, "", "run", "permission", id, "--option", "ok", "--project-dir", l.project)
	l.marked(t, "failed")
	doc := l.shown(t, id)
	if doc["status"] != "consumed" || doc["option_id"] != "ok" {
		t.Errorf("the record says %v, option %v", doc["status"], doc["option_id"])
	}
	for member := range doc {
		if strings.Contains(member, "success") || strings.Contains(member, "outcome") || strings.Contains(member, "result") {
			t.Errorf("the record claims a %s", member)
		}
	}
	help := l.run(t, "", "run", "permission", "--help")
	if !strings.Contains(help, `"consumed" says that it was handed over`) || !strings.Contains(help, "not that the tool succeeded") {
		t.Errorf("the help does not say what consumed means:\n%s", help)
	}
	l.release(t, "go")
	l.traced(t, func(e map[string]any) bool { return e["kind"] == "stdin_eof" })
}
