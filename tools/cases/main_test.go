package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const folder = "../../fixtures/cases"

// runCases runs the command with a program that does nothing in the product's and the agent's place.
func runCases(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	work := t.TempDir()
	nothing := filepath.Join(work, "nothing")
	if err := os.WriteFile(nothing, []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"--cli", nothing, "--agent", nothing, "--work", work}, args...), os.Environ(), &out, &errs)
	return code, out.String(), errs.String()
}

func TestWrongCalls(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"flag":              {[]string{"--nonsense"}, "flag provided but not defined"},
		"folder":            {[]string{t.TempDir()}, "no case.yaml below"},
		"case":              {[]string{"--only", "C006,C999", folder}, "no such case: C999"},
		"case not handled":  {[]string{"--only", "C106", "--handled", folder}, "no such case: C106"},
		"program not there": {[]string{"--only", "C055", "--cli", "/nonexistent/greatminds", folder}, "/nonexistent/greatminds"},
	} {
		code, stdout, stderr := runCases(t, c.args...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q; want 2 and %q", name, code, stdout, stderr, c.says)
		}
	}
}

func TestFailsAreCountedAndWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "records.json")
	code, stdout, _ := runCases(t, "--only", "C055,C063", "--flip", "--json", file, folder)
	if code != 1 || !strings.Contains(stdout, "C055 duplicate-top-key fail") || !strings.Contains(stdout, "0 passed, 2 failed, 0 skipped, 0 errors\n") {
		t.Errorf("exit %d, stdout %q", code, stdout)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Version int            `json:"version"`
		Totals  map[string]int `json:"totals"`
		Cases   []struct {
			ID, Verdict string
			Failed      []string
		} `json:"cases"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Version != 1 || doc.Totals["fail"] != 2 || len(doc.Cases) != 2 || doc.Cases[0].ID != "C055" || len(doc.Cases[0].Failed) == 0 {
		t.Errorf("records %s", data)
	}
}
