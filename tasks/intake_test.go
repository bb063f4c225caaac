package tasks_test

import (
	"maps"
	"os"
	"strings"
	"testing"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/tasks"
)

func TestNewWritesTheReferencesHeader(t *testing.T) {
	l := newDesk(t)
	ref := l.must(l.tree.New(bg, as("TESTER"), tasks.NewTask{Stream: "product", Title: "Add Login: 'now'", Kind: "feature", Scope: "backend",
		Description: "two\nlines", Hosts: []string{"h1", "h2"}, EvidenceFor: []string{"0003-x"}}))
	want := `id: 0001-add-login-now
stream: product
title: 'Add Login: ''now'''
reporter: TESTER
opened_at: '2026-01-05T09:00:00Z'
priority: normal
kind: feature
scope: backend
description: |-
  two
  lines
hosts:
- h1
- h2
evidence_for:
- 0003-x
blocks: []
`
	if got := l.read("feature_inbox", "0001-add-login-now.yaml"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if ref.File != "feature_inbox/0001-add-login-now.yaml" || ref.Revision != tasks.RevisionOf(ref.File, []byte(want)) {
		t.Errorf("got %+v", ref)
	}
	lines, err := l.tree.Journal()
	if err != nil || len(lines) != 1 || lines[0].From != "_new" || lines[0].To != "feature_inbox" || lines[0].Reason != "new product task" ||
		lines[0].Task != "0001-add-login-now" || lines[0].Actor != "TESTER" || lines[0].T != "2026-01-05T09:00:00Z" {
		t.Errorf("got the journal %+v, %v", lines, err)
	}
	session := l.must(l.tree.New(bg, as("ARCHITECT-PLANNER"), tasks.NewTask{Stream: "review_session", Title: "Look", TargetFunctionality: "login", Scenarios: []string{"a", "0x10"}, Reason: "why"}))
	if got := l.read("review_sessions", "0002-look.yaml"); session.ID != "0002-look" || !strings.Contains(got, "kind: review_session\nmode: B\ntarget_functionality: login\nscenarios:\n- a\n- '0x10'\nblocks: []\n") {
		t.Errorf("got\n%s", got)
	}
	if other := l.must(l.tree.New(bg, as("USER"), tasks.NewTask{Stream: "product", Title: "é", Kind: "docs", Scope: "docs", InQueue: "user_feedback", Reporter: "me", Priority: "high"})); !strings.HasPrefix(string(other.ID), "0003-task-") {
		t.Errorf("a title without letters gives %s", other.ID)
	}
}

// A refused call takes no number and leaves nothing behind.
func TestNewBurnsNoNumberWhenRefused(t *testing.T) {
	l := newDesk(t)
	l.newTask("First", "feature", "backend")
	before := l.everything()
	good := tasks.NewTask{Stream: "product", Title: "x", Kind: "feature", Scope: "ui"}
	with := func(f func(*tasks.NewTask)) tasks.NewTask { a := good; f(&a); return a }
	cases := map[string]struct {
		a      tasks.NewTask
		role   contract.Role
		code   refusal.Code
		status refusal.Status
	}{
		"no role":        {good, "", refusal.CodeRoleUnknown, 1},
		"unknown role":   {good, "FOO", refusal.CodeRoleUnknown, 1},
		"stream":         {with(func(a *tasks.NewTask) { a.Stream = "other" }), "TESTER", refusal.CodeUsage, 2},
		"no kind":        {with(func(a *tasks.NewTask) { a.Kind = "" }), "TESTER", refusal.CodeIntake, 1},
		"no title":       {with(func(a *tasks.NewTask) { a.Title = " " }), "TESTER", refusal.CodeIntake, 1},
		"long title":     {with(func(a *tasks.NewTask) { a.Title = strings.Repeat("x", 201) }), "TESTER", refusal.CodeIntake, 1},
		"queue":          {with(func(a *tasks.NewTask) { a.InQueue = "verified" }), "TESTER", refusal.CodeIntake, 1},
		"seq form":       {with(func(a *tasks.NewTask) { a.Seq = "12" }), "TESTER", refusal.CodeIntake, 1},
		"seq taken":      {with(func(a *tasks.NewTask) { a.Seq = "0001" }), "TESTER", refusal.CodeTaskExists, 1},
		"kind word":      {with(func(a *tasks.NewTask) { a.Kind = "zzz" }), "TESTER", refusal.CodeTaskInvalid, 2},
		"scope word":     {with(func(a *tasks.NewTask) { a.Scope = "zzz" }), "TESTER", refusal.CodeTaskInvalid, 2},
		"priority":       {with(func(a *tasks.NewTask) { a.Priority = "urgent" }), "TESTER", refusal.CodeTaskInvalid, 2},
		"no UTF-8":       {with(func(a *tasks.NewTask) { a.Description = "\xff" }), "TESTER", refusal.CodeIntake, 1},
		"session, empty": {tasks.NewTask{Stream: "review_session", Title: "x"}, "TESTER", refusal.CodeIntake, 1},
		"session mode":   {tasks.NewTask{Stream: "review_session", Title: "x", TargetFunctionality: "x", Scenarios: []string{"a"}, Mode: "D"}, "TESTER", refusal.CodeTaskInvalid, 2},
	}
	for name, c := range cases {
		_, err := l.tree.New(bg, as(c.role), c.a)
		if r := refused(t, err, c.code); r.Status() != c.status || r.Remedy == "" {
			t.Errorf("%s: got status %d and remedy %q, want %d", name, r.Status(), r.Remedy, c.status)
		}
	}
	if after := l.everything(); !maps.Equal(before, after) {
		t.Errorf("refused calls left %v, before %v", after, before)
	}
	if ref := l.newTask("Second", "feature", "backend"); ref.ID != "0002-second" {
		t.Errorf("the next task is %s, want 0002-second", ref.ID)
	}
}

func TestNumbersAreNeverGivenTwice(t *testing.T) {
	l := newDesk(t)
	ref := l.must(l.tree.New(bg, as("TESTER"), tasks.NewTask{Stream: "product", Title: "x", Kind: "feature", Scope: "ui", Seq: "0050"}))
	if err := os.Remove(l.tree.PathOf(ref)); err != nil {
		t.Fatal(err)
	}
	if next := l.newTask("y", "feature", "ui"); next.ID != "0051-y" {
		t.Errorf("after a deleted 0050 comes %s", next.ID)
	}
	l.put("archive", "0070-old.md", "#")
	if next := l.newTask("z", "feature", "ui"); next.ID != "0071-z" {
		t.Errorf("after an archived 0070 comes %s", next.ID)
	}
	l.put("", ".id_counter", "9999")
	_, err := l.tree.New(bg, as("TESTER"), tasks.NewTask{Stream: "product", Title: "x", Kind: "feature", Scope: "ui"})
	refused(t, err, refusal.CodeIntake)
	l.put("", ".id_counter", "many")
	_, err = l.tree.New(bg, as("TESTER"), tasks.NewTask{Stream: "product", Title: "x", Kind: "feature", Scope: "ui"})
	refused(t, err, refusal.CodeTaskStorage)
}
