package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"greatminds/tools/realagents/model"
)

// sampleRecipe is a recipe of this test's own agent, with the given manners.
func sampleRecipe(name, manners, modelURL string) recipe {
	r := sample
	r.name, r.env = name, map[string]string{"SAMPLE_AGENT": manners, "SAMPLE_MODEL": modelURL}
	return r
}

// whole gives a bench with all of its parts, whose temporary files stand in a folder of its own.
func whole(t *testing.T, behaviour string, out io.Writer) *bench {
	t.Helper()
	// Short, since the project's socket lies below it, and not below the test's long name.
	temp, err := os.MkdirTemp("", "ra-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(temp); err != nil {
			t.Error(err)
		}
	})
	b, _ := withNPM(t, behaviour)
	t.Setenv("TMPDIR", temp)
	b.source, b.out, b.now, b.pipeline = ".", out, time.Now, true
	if b.source, err = filepath.Abs("."); err != nil {
		t.Fatal(err)
	}
	return b
}

// The whole way, by the built greatminds: an agent that does its part, one that asks nobody, and
// one whose model is elsewhere. Only the first counts, and only its folder goes.
func TestOnlyAnAgentWithAllItsEvidenceCounts(t *testing.T) {
	elsewhere, err := model.Start(model.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := elsewhere.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	var out, log bytes.Buffer
	b := whole(t, "", &out)
	b.log = &log
	rows, err := b.run(t.Context(), []recipe{sampleRecipe("polite", "polite", "%U"), sampleRecipe("bold", "bold", "%U"),
		sampleRecipe("elsewhere", "polite", elsewhere.URL())})
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d rows, %v\n%s", len(rows), err, out.String())
	}
	checkPolite(t, rows[0], out.String())
	if got := rows[1]; got.Error != "the agent asked for no permission" || len(got.Permissions) != 0 || got.File == "" {
		t.Errorf("the bold agent's row is %+v", got)
	}
	if got := rows[2]; got.Error != "the model stand-in saw no request" || got.ModelRequests != 0 || got.File == "" {
		t.Errorf("the row of the agent with its model elsewhere is %+v", got)
	}
	if _, err := os.Stat(filepath.Join(b.folder, "polite")); !os.IsNotExist(err) {
		t.Errorf("the polite agent's folder is still there: %v", err)
	}
	for _, r := range rows[1:] {
		if r.Kept != filepath.Join(b.folder, r.Agent, pipeline) || !strings.Contains(out.String(), "FAILED "+r.Agent) {
			t.Errorf("%s: kept %q", r.Agent, r.Kept)
		}
		for _, pattern := range []string{"model.ndjson", "greatminds-demo-*/coordd.log", "greatminds-demo-*/greeter/.git"} {
			if found, err := filepath.Glob(filepath.Join(r.Kept, pattern)); err != nil || len(found) != 1 {
				t.Errorf("%s: %d of %s are kept, %v", r.Agent, len(found), pattern, err)
			}
		}
	}
	if lines := int64(strings.Count(log.String(), "\n")); lines != rows[0].ModelRequests+rows[1].ModelRequests {
		t.Errorf("the log has %d lines, want %d and %d", lines, rows[0].ModelRequests, rows[1].ModelRequests)
	}
	wantNoProcessOf(t, b.folder)
}

func checkPolite(t *testing.T, got row, out string) {
	t.Helper()
	if got.Error != "" || got.Kept != "" || !slices.Equal(got.AgentInfo, []string{"sample-agent 1.2.3"}) || len(got.Merge) != 40 ||
		got.File != model.WrittenFile || !slices.Equal(got.Changed, []string{model.WrittenFile, "greeter.go"}) {
		t.Fatalf("the polite agent's row is %+v\n%s", got, out)
	}
	if got.ModelRequests != 7 || got.AssignedRequests != 7 || got.Seconds <= 0 {
		t.Errorf("%d requests, %d with the assignment, %.1f s; want 7, 7 and some", got.ModelRequests, got.AssignedRequests, got.Seconds)
	}
	var asked []string
	for _, p := range got.Permissions {
		asked = append(asked, p.String())
	}
	const options = ": ever (allow_always), now (allow_once), no (reject_once) → now, 0"
	want := []string{"DEVELOPER, edit" + options, "DEVELOPER, execute" + options, "TESTER, execute" + options, "ARCHITECT-REVIEWER, execute" + options}
	if !slices.Equal(asked, want) {
		t.Errorf("asked\n%s\nwant\n%s", strings.Join(asked, "\n"), strings.Join(want, "\n"))
	}
}

// What an earlier agent left by its failure stays, and nothing else.
func TestAnInterruptionLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &tripwire{word: "the agent asks for a permission", trip: cancel}
	b := whole(t, "", out)
	rows, err := b.run(ctx, []recipe{sampleRecipe("bold", "bold", "%U"), sampleRecipe("first", "polite", "%U"), sampleRecipe("second", "polite", "%U")})
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d rows, %v\n%s", len(rows), err, out.text.String())
	}
	for _, r := range rows[1:] {
		if !strings.HasPrefix(r.Error, "interrupted") || r.Kept != "" || r.Merge != "" {
			t.Errorf("the row of %s is %+v", r.Agent, r)
		}
	}
	if told := strings.Count(out.text.String(), "merged:"); told != 1 {
		t.Errorf("%d agents were merged, want the bold one alone:\n%s", told, out.text.String())
	}
	for pattern, want := range map[string][]string{
		filepath.Join(os.TempDir(), "*"): {b.folder},
		filepath.Join(b.folder, "*"):     {filepath.Join(b.folder, "bold"), filepath.Join(b.folder, "greatminds")},
	} {
		if left, err := filepath.Glob(pattern); err != nil || !slices.Equal(left, want) {
			t.Errorf("left are %q, %v; want %q", left, err, want)
		}
	}
	wantNoProcessOf(t, b.folder)
}

// tripwire is a writer that acts on a word.
type tripwire struct {
	word string
	trip func()

	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (w *tripwire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if bytes.Contains(b, []byte(w.word)) {
		w.trip()
	}
	return w.text.Write(b)
}

func TestAFailedInstallIsAFailedRow(t *testing.T) {
	var out bytes.Buffer
	b := whole(t, "fails", &out)
	rows, err := b.run(t.Context(), []recipe{sample})
	if err != nil || len(rows) != 1 || !strings.Contains(rows[0].Error, "npm error E404") || rows[0].Kept != "" {
		t.Fatalf("rows %+v, %v", rows, err)
	}
	if table := markdownTable(rows); !strings.Contains(table, "| sample |") || !strings.Contains(table, "FAILED: npm install") {
		t.Errorf("the table is\n%s", table)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "*")); err != nil || len(left) != 0 {
		t.Errorf("left in the temporary folder: %q, %v", left, err)
	}
}

func TestOutsideOfTheRepositoryItSaysWhereToRun(t *testing.T) {
	b := whole(t, "", io.Discard)
	b.source = t.TempDir()
	if _, err := b.run(t.Context(), []recipe{sample}); err == nil || !strings.Contains(err.Error(), "run this inside the repository of greatminds") {
		t.Errorf("the error is %v", err)
	}
}

// wantNoProcessOf looks for processes whose environment or arguments name the folder.
func wantNoProcessOf(t *testing.T, folder string) {
	t.Helper()
	for _, what := range []string{"environ", "cmdline"} {
		files, err := filepath.Glob("/proc/[0-9]*/" + what)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			// A process may end, or belong to somebody else, while we look.
			if text, err := os.ReadFile(f); err == nil && bytes.Contains(text, []byte(folder)) {
				t.Errorf("%s names %s: %q", f, folder, text)
			}
		}
	}
}
