package supervisor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"greatminds/fixtures/sample"
)

// review is a project whose one task stands in feature_review. Its reviewer does the whole work
// of the task in the worktree and approves it: it changes a.txt, adds new/n.txt and takes
// dir/b.txt away. What is left is the merge, into a branch that the user has checked out.
type review struct {
	*lab
	branch string
}

// start state and end state of the files that the merge touches; keep.txt it never touches.
const (
	oldText   = "one\n"
	newText   = "ours\n"
	addedText = "new\n"
	keepText  = "kept\n"
)

const approve = `{"cli":["run","submit","--json","{\"decision\":\"handoff\",\"payload\":{\"to_queue\":\"verified\",` +
	`\"blocks\":[{\"kind\":\"review\",\"outcome\":\"approved\",\"commit\":\"${base}\",\"notes\":\"fine\"}]}}"]}`

// newReview makes such a project. more are further steps of the reviewer, before its decision.
func newReview(t *testing.T, branch string, more ...string) *review {
	t.Helper()
	p := &pipeline{cli: faultBinary(t), root: t.TempDir(), task: "0001-sample"}
	r := &review{lab: &lab{pipeline: p}, branch: branch}
	p.project = filepath.Join(p.root, "project")
	for name, text := range map[string]string{"a.txt": oldText, "dir/b.txt": "b\n", "keep.txt": keepText,
		".gitignore": ".worktrees/\nbuilt.txt\n"} {
		r.put(t, name, text)
	}
	p.git(t, "init", "-q", "-b", branch)
	p.commit(t, "start")
	contract := filepath.Join(p.root, "execution.yaml")
	must(t, os.WriteFile(contract, []byte(strings.Replace(oneAgent(p.cli, p.script("dev"), "", ""), "DEVELOPER", "ARCHITECT-REVIEWER", 1)), 0o600))
	p.run(t, "", "setup", "--project-dir", p.project, "--execution-config", contract)
	p.commit(t, "set up")
	p.base = p.git(t, "rev-parse", "HEAD")
	steps := append([]string{`{"handshake":{}}`, `{"prompt":"p"}`, edit("a.txt", newText), `{"file":{"op":"mkdir","path":"${cwd}/new"}}`, edit("new/n.txt", addedText),
		`{"file":{"op":"unlink","path":"${cwd}/dir/b.txt"}}`}, more...)
	played := strings.ReplaceAll(strings.Join(append(steps, approve, `{"end_turn":"p"}`), ","), "${base}", p.base)
	must(t, os.MkdirAll(filepath.Dir(p.script("dev")), 0o755))
	must(t, os.WriteFile(p.script("dev"), []byte(`{"version":1,"launches":[{"steps":[`+played+`]}]}`), 0o644))
	r.put(t, ".greatminds/feature_review/"+p.task+".yaml", strings.ReplaceAll(reviewTask, "@BASE@", p.base))
	return r
}

// edit is the agent's step that writes a file of its worktree.
func edit(name, text string) string {
	return `{"file":{"op":"write","path":` + quote("${cwd}/"+name) + `,"text":` + quote(text) + `}}`
}

const reviewTask = `id: 0001-sample
stream: product
title: Sample task
reporter: ARCHITECT-PLANNER
opened_at: "2026-01-05T09:00:00Z"
priority: normal
kind: feature
scope: backend
blocks:
` + sample.PlanBlock + sample.ImplementationBlock + sample.TestsBlock

// put writes a file of the user's checkout.
func (r *review) put(t *testing.T, name, text string) {
	t.Helper()
	write(t, filepath.Join(r.project, name), text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

// picture is everything of a checkout that a user could lose: what HEAD stands for, the index,
// and every file with mode and contents.
func (r *review) picture(t *testing.T, checkout string) string {
	t.Helper()
	var b strings.Builder
	for _, args := range [][]string{{"symbolic-ref", "-q", "HEAD"}, {"ls-files", "-s"}, {"stash", "list"}} {
		fmt.Fprintln(&b, r.git(t, append([]string{"-C", checkout}, args...)...))
	}
	must(t, filepath.WalkDir(checkout, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if n := d.Name(); path != checkout && (n == ".git" || n == ".greatminds" || n == ".worktrees") {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %v %q\n", strings.TrimPrefix(path, checkout), info.Mode(), data)
		return err
	}))
	return b.String()
}

// merged checks the one end of the task: one merge of the right parents on the branch, the task
// in verified and nowhere else, one line in the journal, no process left.
func (r *review) merged(t *testing.T) {
	t.Helper()
	if q := r.queue(t); q != "verified" {
		t.Fatalf("the task stands in %s, want verified", q)
	}
	if n := strings.Fields(r.git(t, "rev-list", "--merges", r.branch)); len(n) != 1 {
		t.Errorf("%d merges on %s, want 1", len(n), r.branch)
	}
	if got := r.git(t, "rev-parse", r.branch+"^1"); got != r.base {
		t.Errorf("the merge's first parent is %s, want %s", got, r.base)
	}
	for name, want := range map[string]string{"a.txt": newText, "new/n.txt": addedText, "keep.txt": keepText} {
		if got := r.git(t, "show", r.branch+":"+name) + "\n"; got != want {
			t.Errorf("the merge holds %q as %s, want %q", got, name, want)
		}
	}
	if got := r.git(t, "ls-tree", r.branch, "dir/b.txt"); got != "" {
		t.Errorf("the merge still holds dir/b.txt: %s", got)
	}
	if lines := r.journalTo(t, "verified"); lines != 1 {
		t.Errorf("%d lines of the journal tell the move to verified, want 1", lines)
	}
	if left, err := filepath.Glob(filepath.Join(r.project, ".git", "*.lock")); err != nil || len(left) > 0 {
		t.Errorf("locks left in .git: %v %v", left, err)
	}
}

// followed checks that a checkout of the branch holds the merge, but for what is the user's own.
func (r *review) followed(t *testing.T, checkout string, own map[string]string) {
	t.Helper()
	want := map[string]string{"a.txt": newText, "new/n.txt": addedText, "keep.txt": keepText, "dir/b.txt": ""}
	for name, text := range own {
		want[name] = text
	}
	for name, text := range want {
		data, err := os.ReadFile(filepath.Join(checkout, name))
		if err != nil && !os.IsNotExist(err) || string(data) != text {
			t.Errorf("%s holds %q as %s (%v), want %q", checkout, data, name, err, text)
		}
	}
	var status []string
	for _, line := range strings.Split(r.git(t, "-C", checkout, "status", "--porcelain", "-uall"), "\n") {
		if fields := strings.Fields(line); len(fields) > 0 {
			status = append(status, fields[len(fields)-1])
		}
	}
	for _, name := range status {
		if _, mine := own[name]; !mine {
			t.Errorf("git finds %s changed in %s", name, checkout)
		}
	}
}

func (r *review) journalTo(t *testing.T, queue string) (lines int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.project, ".greatminds", "journal.ndjson"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	must(t, err)
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var e struct{ From, To string }
		must(t, json.Unmarshal([]byte(line), &e))
		if e.To == queue && e.From != queue {
			lines++
		}
	}
	return lines
}

// receipt is what `run status` says of the reviewer's decision.
type receipt struct {
	Status string
	Hold   *struct{ Code, What, Remedy string }
}

func (r *review) receipt(t *testing.T) receipt {
	t.Helper()
	var doc struct{ Results map[string]receipt }
	must(t, json.Unmarshal([]byte(r.run(t, "", "run", "status", "--json", "--project-dir", r.project)), &doc))
	for _, res := range doc.Results {
		return res
	}
	return receipt{}
}

// wait looks again whenever the store or the verified queue changes, on inotify, until the
// condition holds.
func (r *review) wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	runtime := filepath.Join(r.project, ".greatminds")
	var came bool
	over := awaitChange(t, []string{filepath.Join(runtime, ".runtime"), filepath.Join(runtime, "verified"), filepath.Join(runtime, "feature_dev")},
		func() bool {
			came = ok()
			return came || r.failed(t)
		})
	if !over || !came {
		t.Fatalf("%s has not come; receipt %+v", what, r.receipt(t))
	}
}

// failed tells whether the reviewer's run has ended without a decision: nothing will come then.
func (r *review) failed(t *testing.T) bool {
	t.Helper()
	for _, run := range r.status(t).Runs {
		return run.State == "failed"
	}
	return false
}

// wantHeld checks that the decision waits under this code, that people are told the files and
// what helps, in the receipt as in the task's assignment, and that nothing has moved.
func (r *review) wantHeld(t *testing.T, code string, words ...string) {
	t.Helper()
	got := r.receipt(t)
	want := "received"
	if code == "checkout_overlap" || code == "git_index_locked" || code == "merge_busy" {
		want = "needs_recovery" // only a person can clear a checkout
	}
	if got.Status != want || got.Hold == nil || got.Hold.Code != code || got.Hold.Remedy == "" {
		t.Fatalf("got receipt %q %+v, want it %s and held as %s", got.Status, got.Hold, want, code)
	}
	told := ""
	for _, a := range r.status(t).Assignments {
		if a.TaskID == r.task {
			told = a.What + "\n" + a.Remedy
		}
	}
	for _, w := range append(words, code) {
		if w != code && !strings.Contains(got.Hold.What, w) {
			t.Errorf("the receipt's hold %q does not name %q", got.Hold.What, w)
		}
		if !strings.Contains(told, w) {
			t.Errorf("the assignment %q does not name %q", told, w)
		}
	}
	if q := r.queue(t); q != "feature_review" {
		t.Errorf("the held task stands in %s", q)
	}
	if got := r.git(t, "rev-parse", r.branch); got != r.base {
		t.Errorf("%s has moved to %s", r.branch, got)
	}
	if n := r.journalTo(t, "verified"); n != 0 {
		t.Errorf("the journal tells %d moves", n)
	}
}

// held waits for the hold.
func (r *review) held(t *testing.T, code string, words ...string) {
	t.Helper()
	r.wait(t, "the hold "+code, func() bool {
		got := r.receipt(t)
		return got.Hold != nil && got.Hold.Code == code || got.Status == "applied"
	})
	r.wantHeld(t, code, words...)
}

// done waits until the daemon has merged the task by itself.
func (r *review) done(t *testing.T) {
	t.Helper()
	r.wait(t, "the merge", func() bool { return r.receipt(t).Status == "applied" })
	r.merged(t)
}
