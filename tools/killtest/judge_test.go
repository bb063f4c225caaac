package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scene is a project on disk, as one looks that has come to its end: one task, verified and merged.
type scene struct {
	t *testing.T
	*project
	doc        statusDoc
	live       []string
	doctorSaid string
}

const (
	sceneTask = "0001-write-file-number-1"
	otherTask = "0002-write-file-number-2"
)

func newScene(t *testing.T) *scene {
	t.Helper()
	folder, err := realFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, project: &project{folder: folder, dir: filepath.Join(folder, "project"), ledger: newLedger()}}
	s.put("project/README", "a project\n")
	s.put("project/.gitignore", ".greatminds/\n")
	s.mustGit("init", "-q", "-b", "main")
	s.mustGit("add", "-A")
	s.mustGit("commit", "-q", "-m", "start")
	s.base = s.mustGit("rev-parse", "HEAD")
	s.mustGit("checkout", "-q", "-b", "task")
	s.put("project/work-0.txt", s.dir+"/.worktrees/"+sceneTask+"\n")
	s.mustGit("add", "-A")
	s.mustGit("commit", "-q", "-m", "the work")
	s.mustGit("checkout", "-q", "main")
	s.mustGit("merge", "-q", "--no-ff", "-m", "review("+sceneTask+"): Write file number 1", "task")
	s.put("project/.greatminds/verified/"+sceneTask+".yaml", "id: x\ntitle: Write file number 1\n")
	s.put("project/.greatminds/journal.ndjson", strings.Join([]string{
		`{"task":"` + sceneTask + `","from":"_new","to":"feature_inbox","intent_id":"a"}`,
		`{"task":"` + sceneTask + `","from":"feature_inbox","to":"feature_inbox","intent_id":"b"}`,
		`{"task":"` + sceneTask + `","from":"feature_inbox","to":"feature_review","intent_id":"c"}`,
		`{"task":"` + sceneTask + `","from":"feature_review","to":"verified","intent_id":"r1-result","operation_id":"r1-result"}`}, "\n")+"\n")
	s.put("executions", "start r0/check-0\nend r0/check-0\n")
	s.put("agents/developer/trace.jsonl", `{"launch":0,"kind":"answer","to":"edit","got":{"outcome":{"outcome":"selected","optionId":"ok"}}}`+"\n")
	s.put("agents/reviewer/trace.jsonl", `{"launch":0,"kind":"cli","argv":["run","submit"],"rc":0,"out":"{ \"result_id\": \"r1-result\" }"}`+"\n")
	s.ledger.titles = []string{"Write file number 1"}
	s.ledger.filed[sceneTask] = "Write file number 1"
	s.ledger.planned[sceneTask] = true
	s.ledger.asked["p0"] = "r0"
	s.ledger.answered["p0"] = "ok"
	s.ledger.retried["r0"] = true
	s.status(`{"runs":{"r0":{"id":"r0","state":"interrupted","retry_authorized":true},"r1":{"id":"r1","state":"completed"}},
		"permissions":{"p0":{"id":"p0","status":"consumed","option_id":"ok"}},
		"results":{"r1-result":{"status":"applied","envelope":{"result_id":"r1-result"}}},
		"commands":{"check-0":{"id":"check-0","run_id":"r0","status":"succeeded"}}}`)
	return s
}

func (s *scene) put(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// add puts text behind what a file holds.
func (s *scene) add(name, text string) {
	s.t.Helper()
	old, err := os.ReadFile(filepath.Join(s.folder, name))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	s.put(name, string(old)+text)
}

func (s *scene) remove(name string) {
	s.t.Helper()
	if err := os.Remove(filepath.Join(s.folder, name)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) mustGit(args ...string) string {
	s.t.Helper()
	out, err := s.git(s.t.Context(), args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// status changes what `run status` says: the members given replace the old ones.
func (s *scene) status(text string) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(text), &s.doc); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) judge(final bool) []finding {
	s.t.Helper()
	pic := &picture{live: s.live, doctor: s.doctorSaid}
	if err := pic.readFiles(s.folder, s.dir); err != nil {
		s.t.Fatal(err)
	}
	if err := s.takeGit(s.t.Context(), pic); err != nil {
		s.t.Fatal(err)
	}
	pic.status = s.doc
	return judge(pic, s.ledger, final)
}

func TestAProjectThatKeptEverythingIsSound(t *testing.T) {
	s := newScene(t)
	for _, final := range []bool{false, true} {
		if found := s.judge(final); len(found) > 0 {
			t.Errorf("final %v: found %v", final, found)
		}
	}
}

// Each way of breaking a promise is found, and told as what it is.
func TestEveryBrokenPromiseIsFound(t *testing.T) {
	const journal, queues = "project/.greatminds/journal.ndjson", "project/.greatminds/"
	for name, c := range map[string]struct {
		doctor func(s *scene)
		kind   kind
		word   string
	}{
		"doubled journal line": {func(s *scene) {
			s.add(journal, `{"task":"`+sceneTask+`","from":"feature_review","to":"verified","intent_id":"z"}`+"\n")
		}, twice, "tells again"},
		"doubled operation": {func(s *scene) {
			s.add(journal, `{"task":"`+sceneTask+`","from":"verified","to":"verified","operation_id":"r1-result"}`+"\n")
		}, twice, "operation r1-result"},
		"doubled intent": {func(s *scene) {
			s.add(journal, `{"task":"`+sceneTask+`","from":"verified","to":"verified","intent_id":"b"}`+"\n")
		}, twice, "intent b"},
		"journal line missing at the end": {func(s *scene) { s.put(queues+"archive/"+otherTask+".yaml", "title: x\n") }, lost, "the journal ends"},
		"journal line missing between": {func(s *scene) {
			s.add(journal, `{"task":"`+sceneTask+`","from":"feature_dev","to":"verified","intent_id":"z"}`+"\n")
		}, lost, "but it was in verified"},
		"unreadable journal line": {func(s *scene) { s.add(journal, "{\n") }, unsound, "cannot be read"},
		"torn journal":            {func(s *scene) { s.add(journal, `{"task":`) }, unsound, "middle of a line"},
		"lost task":               {func(s *scene) { s.remove(queues + "verified/" + sceneTask + ".yaml") }, lost, "is in no queue"},
		"task in two queues":      {func(s *scene) { s.put(queues+"feature_dev/"+sceneTask+".yaml", "title: x\n") }, twice, "stands in 2 queues"},
		"task filed twice": {func(s *scene) {
			s.put(queues+"verified/"+otherTask+".yaml", "title: Write file number 1\n")
		}, twice, "was filed as"},
		"lost plan": {func(s *scene) {
			s.remove(queues + "verified/" + sceneTask + ".yaml")
			s.put(queues+"feature_inbox/"+sceneTask+".yaml", "title: x\n")
		}, lost, "was planned and stands in feature_inbox"},
		"second merge": {func(s *scene) {
			s.mustGit("checkout", "-q", "-b", "again")
			s.mustGit("commit", "-q", "--allow-empty", "-m", "again")
			s.mustGit("checkout", "-q", "main")
			s.mustGit("merge", "-q", "--no-ff", "-m", "review("+sceneTask+"): Write file number 1", "again")
		}, twice, "was merged 2 times"},
		"missing merge": {func(s *scene) { s.mustGit("reset", "-q", "--hard", s.base) }, lost, "was not merged"},
		"merge without the work": {func(s *scene) {
			s.mustGit("rm", "-q", "work-0.txt")
			s.mustGit("commit", "-q", "--amend", "-m", "review("+sceneTask+"): Write file number 1")
		}, lost, "does not hold its work"},
		"foreign commit":            {func(s *scene) { s.mustGit("commit", "-q", "--allow-empty", "-m", "foreign") }, unsound, "is no merge of a task"},
		"merge of a lost task":      {func(s *scene) { s.remove(queues + "verified/" + sceneTask + ".yaml") }, lost, "was merged and is in no queue"},
		"dirty checkout":            {func(s *scene) { s.put("project/README", "changed\n") }, unsound, "is not clean"},
		"left file in the checkout": {func(s *scene) { s.put("project/stray", "x") }, unsound, "stray"},
		"damaged repository":        {func(s *scene) { s.remove("project/.git/objects/" + s.object("HEAD:README")) }, unsound, "git fsck"},
		"command executed twice":    {func(s *scene) { s.add("executions", "start r0/check-0\n") }, twice, "executed 2 times"},
		"command that never ran": {func(s *scene) {
			s.status(`{"commands":{"check-1":{"id":"check-1","run_id":"r0","status":"succeeded"}}}`)
		}, unsound, "check-1 succeeded, but was begun 0 times"},
		"executed command recorded as not begun": {func(s *scene) {
			s.status(`{"commands":{"check-0":{"id":"check-0","run_id":"r0","status":"cancelled","reason":"supervisor_restart"}}}`)
		}, unsound, "recorded as never begun"},
		"executed without a record": {func(s *scene) { s.add("executions", "start r0/check-7\n") }, lost, "check-7 was executed and is on no record"},
		"agent of an ended run":     {func(s *scene) { s.live = []string{"r1"} }, left, "agent of run r1 lives"},
		"agent of no run":           {func(s *scene) { s.live = []string{"r9"} }, left, "agent of run r9 lives"},
		"command that ended lives":  {func(s *scene) { s.live = []string{"r0/check-0"} }, left, "command request check-0 lives"},
		"what the doctor found":     {func(s *scene) { s.doctorSaid = "a finding" }, unsound, "run doctor: a finding"},
		"lost resolution":           {func(s *scene) { s.ledger.resolved["check-0"] = true }, lost, "was resolved and is \"succeeded\""},
		"lost answer":               {func(s *scene) { s.status(`{"permissions":{"p0":{"id":"p0","status":"pending"}}}`) }, lost, "was answered \"ok\""},
		"other answer": {func(s *scene) {
			s.status(`{"permissions":{"p0":{"id":"p0","status":"consumed","option_id":"no"}}}`)
		}, lost, "with \"no\""},
		"answer by nobody": {func(s *scene) {
			s.status(`{"permissions":{"p1":{"id":"p1","status":"consumed","option_id":"ok"}}}`)
		}, unsound, "answered by nobody"},
		"answer handed over twice": {func(s *scene) {
			s.add("agents/developer/trace.jsonl", `{"launch":0,"kind":"answer","to":"edit","got":{"outcome":{"outcome":"selected","optionId":"ok"}}}`+"\n")
		}, twice, "was answered 2 times"},
		"allowed without an answer": {func(s *scene) {
			s.add("agents/developer/trace.jsonl", `{"launch":1,"kind":"answer","to":"edit","got":{"outcome":{"outcome":"selected","optionId":"ok"}}}`+"\n")
		}, unsound, "handed over 1 times"},
		"lost result": {func(s *scene) {
			s.add("agents/tester/trace.jsonl", `{"launch":0,"kind":"cli","argv":["run","submit"],"rc":0,"out":"\"result_id\": \"r2-result\""}`+"\n")
		}, lost, "result r2-result was received"},
		"result left open": {func(s *scene) {
			s.status(`{"results":{"r1-result":{"status":"applying","envelope":{"result_id":"r1-result"}}}}`)
		}, lost, "applying at the end"},
		"lost retry":  {func(s *scene) { s.ledger.retried["r1"] = true }, lost, "retry of run r1"},
		"lost cancel": {func(s *scene) { s.ledger.cancelled["r2"] = true }, lost, "cancel of run r2"},
		"lost pause":  {func(s *scene) { yes := true; s.ledger.paused = &yes }, lost, "paused was acknowledged"},
		"unfinished task": {func(s *scene) {
			s.ledger.filed[otherTask] = "x"
			s.put(queues+"feature_dev/"+otherTask+".yaml", "title: x\n")
		}, stuck, "at the end"},
		"silent task":      {func(s *scene) { s.put(queues+"feature_dev/"+otherTask+".yaml", "title: x\n") }, stuck, "nothing says why"},
		"hold without way": {func(s *scene) { s.status(`{"assignments":[{"task_id":"x","reason":"revision_already_attempted"}]}`) }, stuck, "no remedy is named"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			c.doctor(s)
			found := s.judge(true)
			for _, f := range found {
				if f.kind == c.kind && strings.Contains(f.what, c.word) {
					return
				}
			}
			t.Errorf("found %v, want %s with %q", found, c.kind, c.word)
		})
	}
}

// object is the file of a loose object below .git/objects.
func (s *scene) object(name string) string {
	id := s.mustGit("rev-parse", name)
	return id[:2] + "/" + id[2:]
}

// What is under way may look odd for a moment, and is odd no more at the end.
func TestWorkUnderWayIsNoFinding(t *testing.T) {
	s := newScene(t)
	s.status(`{"results":{"r1-result":{"status":"applying","envelope":{"result_id":"r1-result"}}}}`)
	s.put("project/README", "a merge is being brought here\n")
	s.add("project/.greatminds/journal.ndjson", `{"task":"`)
	if found := s.judge(false); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	if found := s.judge(true); len(found) != 3 {
		t.Errorf("at the end found %v, want 3", found)
	}
}

// A worktree that git was killed over is no damage until the end.
func TestAWorktreeThatIsNotBornYet(t *testing.T) {
	const unbornSaid = "git fsck: exit status 8: error: worktrees/0001-x/HEAD: detached HEAD points at nothing\n"
	for said, want := range map[string]bool{
		unbornSaid:                              true,
		unbornSaid + "error: bad object":        false,
		"error: refs/heads/main: badRefContent": false,
		"":                                      false,
	} {
		if got := onlyUnborn(said); got != want {
			t.Errorf("%q: got %v", said, got)
		}
	}
	for _, final := range []bool{false, true} {
		pic := &picture{fsck: unbornSaid}
		found := judge(pic, newLedger(), final)
		if said := len(found) > 0 && strings.Contains(found[len(found)-1].what, "fsck"); said != final {
			t.Errorf("final %v: %v", final, found)
		}
	}
}
