package tasks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/tasks"
)

const sampleTask = `id: 0001-sample
stream: product
title: Sample task
reporter: ARCHITECT-PLANNER
opened_at: "2026-01-05T09:00:00Z"
priority: normal
kind: research
scope: backend
description: Reply with one short sentence.
blocks: []
`

func parse(t *testing.T, text string) (*tasks.Task, error) {
	t.Helper()
	return tasks.Parse(contract.EmbeddedSchema(), "feature_dev", "feature_dev/0001-sample.yaml", []byte(text))
}

func mustParse(t *testing.T, text string) *tasks.Task {
	t.Helper()
	task, err := parse(t, text)
	if err != nil {
		t.Fatalf("got %v, want a valid task", err)
	}
	return task
}

func TestParseReadsHeaderAndBlocksInOrder(t *testing.T) {
	task := mustParse(t, strings.Replace(sampleTask, "blocks: []\n", `custom:
  nested: [1, 2.5, true, null, text]
blocks:
- kind: triage
  by: ARCHITECT-PLANNER
  at: '2026-01-05T10:00:00Z'
  notes: 'two

    lines'
- at: '2026-01-05T11:00:00Z'
  by: DEVELOPER
  kind: implementation
  base_commit: 1234567e8
  files: []
  ready_for_test: false
`, 1))
	if task.ID != "0001-sample" || task.Queue != "feature_dev" || task.File != "feature_dev/0001-sample.yaml" ||
		task.Stream != "product" || task.Kind != "research" || task.Scope != "backend" || task.Priority != "normal" ||
		task.Description != "Reply with one short sentence." || task.Title != "Sample task" {
		t.Errorf("header read as %+v", task)
	}
	if got := task.Header[len(task.Header)-1].Key; got != "custom" {
		t.Errorf("last header field is %s, want custom", got)
	}
	if len(task.Blocks) != 2 || task.Blocks[0].Kind != "triage" || task.Blocks[0].Text("notes") != "two\nlines" ||
		task.Blocks[0].Line != 13 || task.Blocks[1].By != "DEVELOPER" || task.Blocks[1].Fields[0].Key != "base_commit" {
		t.Errorf("blocks read as %+v", task.Blocks)
	}
	if got := task.Blocks[1].Text("base_commit"); got != "1234567e8" {
		t.Errorf("a commit that looks like a float was read as %q", got)
	}
}

// E-161
func TestRevisionCoversPlaceAndBytes(t *testing.T) {
	here := mustParse(t, sampleTask).Revision
	if got := tasks.RevisionOf("feature_dev/0001-sample.yaml", []byte(sampleTask)); got != here {
		t.Errorf("RevisionOf gives %s, the task has %s", got, here)
	}
	moved := tasks.RevisionOf("feature_test/0001-sample.yaml", []byte(sampleTask))
	edited := tasks.RevisionOf("feature_dev/0001-sample.yaml", []byte(sampleTask+"# note\n"))
	if moved == here || edited == here || moved == edited {
		t.Errorf("a move alone or an edit alone left the revision: %s, %s, %s", here, moved, edited)
	}
	// sha256 over place, a zero byte and the bytes, computed elsewhere.
	want := tasks.Revision("69caadd555b98ebe3a6584ec716b72c4743458f620b8f9112d92190ad363e827")
	if got := tasks.RevisionOf("q/0001-a.yaml", []byte("hello\n")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestParseNamesEveryFaultWithItsPlace(t *testing.T) {
	with := func(old, new string) string {
		if !strings.Contains(sampleTask, old) {
			t.Fatalf("the sample has no %q", old)
		}
		return strings.Replace(sampleTask, old, new, 1)
	}
	cases := []struct{ name, text, place, word string }{
		{"duplicate key", with("scope: backend", "scope: ui\nscope: backend"), ":9:1", `"scope"`},
		{"duplicate key in a block", with("blocks: []", "blocks:\n- kind: triage\n  by: A\n  by: B"), ":13:3", `"by"`},
		{"anchor", with("title: Sample task", "title: &a Sample"), ":3:8", "&a"},
		{"alias", with("title: Sample task", "title: *a"), "", "anchor"},
		{"tag", with("title: Sample task", "title: !!str Sample"), ":3:8", "!!str"},
		{"lone tag", with("title: Sample task", "title: ! 12"), ":3:8", "tag"},
		{"merge key", with("priority: normal", "<<: {a: b}"), ":6:1", "<<"},
		{"second document", sampleTask + "---\nid: x\n", ":11:1", "further document"},
		{"yes", with("title: Sample task", "title: yes"), ":3:8", "yes"},
		{"date", with(`"2026-01-05T09:00:00Z"`, "2026-01-05T09:00:00Z"), ":5:12", "2026-01-05T09:00:00Z"},
		{"hexadecimal", with("title: Sample task", "title: 0x10"), ":3:8", "0x10"},
		{"octal", with("title: Sample task", "title: 010"), ":3:8", "010"},
		{"sexagesimal", with("title: Sample task", "title: 1:30"), ":3:8", "1:30"},
		{"underscore", with("title: Sample task", "title: 1_0"), ":3:8", "1_0"},
		{"tilde", with("title: Sample task", "title: ~"), ":3:8", "~"},
		{"huge number", with("title: Sample task", "title: 99999999999999999999"), ":3:8", "9999"},
		{"number key", with("blocks: []", "1: x\nblocks: []"), ":10:1", "1"},
		{"list key", with("blocks: []", "? [a]\n: x\nblocks: []"), ":10:3", "list"},
		{"tab indent", with("blocks: []", "x:\n\t- a\nblocks: []"), ":11", "YAML"},
		{"zero byte", with("Sample task", "Sam\x00ple"), ":3:11", "0x00"},
		{"escape byte", with("Sample task", "Sam\x1bple"), ":3:11", "0x1b"},
		{"no UTF-8", with("Sample task", "Sam\xffple"), ":3:11", "0xff"},
		{"UTF-16", "\xff\xfei\x00d\x00", ":1:1", "0xff"},
		{"empty", "", ":1:1", "no document"},
		{"comment only", "# nothing\n", ":1:1", "no document"},
		{"list", "- a\n", ":1:1", "list"},
		{"text", "hello\n", ":1:1", "single value"},
		{"deep", with("blocks: []", "x: "+strings.Repeat("[", 80)+strings.Repeat("]", 80)+"\nblocks: []"), ":10:", "deep"},
		{"blocks is text", with("blocks: []", "blocks: none"), ":10:9", "blocks"},
		{"a block is text", with("blocks: []", "blocks: [none]"), ":10:10", "block 1"},

		{"id of another file", with("0001-sample", "0002-other"), ":1:5", "0002-other"},
		{"id form", with("0001-sample", "1-sample"), ":1:5", "1-sample"},
		{"no id", with("id: 0001-sample\n", ""), "", "id"},
		{"stream", with("product", "other"), ":2:9", "other"},
		{"blank title", with("Sample task", `"  "`), ":3:8", "title"},
		{"number title", with("Sample task", "12"), ":3:8", "12"},
		{"null title", with("title: Sample task", "title:"), "", "title"},
		{"reporter", with("reporter: ARCHITECT-PLANNER\n", ""), "", "reporter"},
		{"opened_at", with("2026-01-05T09:00:00Z", "yesterday"), ":5:12", "yesterday"},
		{"no month 13", with("2026-01-05T09:00:00Z", "2026-13-05T09:00:00Z"), ":5:12", "2026-13"},
		{"priority", with("normal", "urgent"), ":6:11", "urgent"},
		{"kind", with("research", "thing"), ":7:7", "thing"},
		{"scope", with("backend", "all"), ":8:8", "all"},
		{"block kind", with("blocks: []", "blocks:\n- kind: weird\n  by: X\n  at: '2026-01-05T09:00:00Z'"), ":11:9", "weird"},
		{"block of the other stream", with("blocks: []", "blocks:\n- kind: session_iteration\n  by: X\n  at: '2026-01-05T09:00:00Z'\n  summary: s"), ":11:9", "session_iteration"},
		{"block author", with("blocks: []", "blocks:\n- kind: triage\n  at: '2026-01-05T09:00:00Z'"), ":11:3", "author"},
		{"block time", with("blocks: []", "blocks:\n- kind: triage\n  by: X\n  at: now"), ":13:7", "now"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			task, err := parse(t, c.text)
			r, ok := refusal.Find(err)
			if !ok || task != nil {
				t.Fatalf("got %v and %v, want a refusal alone", task, err)
			}
			text := r.Error()
			if !strings.Contains(text, "0001-sample.yaml"+c.place) || !strings.Contains(text, c.word) {
				t.Errorf("got %q, want the place %q and the word %q", text, c.place, c.word)
			}
			if r.Status() != refusal.Invalid || r.Remedy == "" {
				t.Errorf("got status %d and remedy %q, want 2 and a remedy", r.Status(), r.Remedy)
			}
		})
	}
}

func TestParseListsAllFaultsAtOnce(t *testing.T) {
	text := strings.NewReplacer("normal", "urgent", "research", "thing", "backend", "all").Replace(sampleTask)
	_, err := parse(t, text)
	r, ok := refusal.Find(err)
	if !ok || len(r.Reasons) != 3 {
		t.Fatalf("got %v, want three reasons", err)
	}
}

func TestParseTakesWhatPlainWritersWrite(t *testing.T) {
	cases := map[string]string{
		"byte order mark":     "\ufeff" + sampleTask,
		"CRLF":                strings.ReplaceAll(sampleTask, "\n", "\r\n"),
		"document marks":      "---\n" + sampleTask + "...\n",
		"flow":                `{id: 0001-sample, stream: product, title: "Sample task", reporter: R, opened_at: '2026-01-05T09:00:00+00:00', priority: low, kind: feature, scope: ui, blocks: []}`,
		"no blocks":           strings.Replace(sampleTask, "blocks: []\n", "", 1),
		"null blocks":         strings.Replace(sampleTask, "blocks: []", "blocks:", 1),
		"folded quoted":       strings.Replace(sampleTask, "Reply with one short sentence.", "\"one\\\n  \\ two\\n\\\n  three\"", 1),
		"indented lists":      strings.Replace(sampleTask, "blocks: []", "blocks:\n  - kind: triage\n    by: X\n    at: '2026-01-05T09:00:00Z'", 1),
		"comments":            "# head\n" + sampleTask + "# human note\n",
		"time with fraction":  strings.Replace(sampleTask, "09:00:00Z", "09:00:00.123Z", 1),
		"unknown header":      strings.Replace(sampleTask, "blocks: []", "later: {a: 1.5e+3}\nblocks: []", 1),
		"null in a mapping":   strings.Replace(sampleTask, "blocks: []", "later: {a: null, b: Null}\nblocks: []", 1),
		"words of other YAML": strings.Replace(sampleTask, "Sample task", "'yes'", 1),
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(t, text); err != nil {
				t.Errorf("got %v, want a valid task", err)
			}
		})
	}
}

func TestReviewSessionHasAHeaderOfItsOwn(t *testing.T) {
	good := "id: 0001-sample\nstream: review_session\ntitle: T\nreporter: R\nopened_at: '2026-01-05T09:00:00Z'\npriority: normal\n" +
		"kind: review_session\nmode: B\ntarget_functionality: login\nscenarios:\n- a\nblocks: []\n"
	task := mustParse(t, good)
	if task.Mode != "B" || task.TargetFunctionality != "login" || len(task.Scenarios) != 1 {
		t.Errorf("header read as %+v", task)
	}
	for name, change := range map[string][2]string{
		"kind": {"kind: review_session", "kind: feature"}, "mode": {"mode: B", "mode: D"},
		"target": {"target_functionality: login\n", ""}, "scenarios": {"scenarios:\n- a", "scenarios: []"},
		"scenarios text": {"scenarios:\n- a", "scenarios: a"},
	} {
		if _, err := parse(t, strings.Replace(good, change[0], change[1], 1)); err == nil {
			t.Errorf("%s: a wrong review session was accepted", name)
		}
	}
}

// Files in testdata/original were written by the reference implementation, revisions beside
// them: see testdata/original/README.md.
func TestFilesOfTheOriginalReadWithTheirRevisions(t *testing.T) {
	list, err := os.ReadFile("testdata/original/revisions.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(list))
	if len(lines) < 20 || len(lines)%2 != 0 {
		t.Fatalf("got %d words, want pairs of revision and file, at least ten", len(lines))
	}
	for i := 0; i < len(lines); i += 2 {
		file := lines[i+1]
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata/original", file))
			if err != nil {
				t.Fatal(err)
			}
			queue := contract.Queue(filepath.Dir(file))
			task, err := tasks.Parse(contract.EmbeddedSchema(), queue, file, data)
			if err != nil {
				t.Fatal(err)
			}
			if string(task.Revision) != lines[i] {
				t.Errorf("got revision %s, want %s", task.Revision, lines[i])
			}
		})
	}
}
