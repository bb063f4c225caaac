package setup_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/refusal"
	"greatminds/setup"
)

const sample = `# reviewed by hand
version: 1
agents:
  a: {transport: acp, argv: [my-agent], adapter_version: "1", harness_version: "1"}
bindings:
  dev: {role: DEVELOPER, agent: a}
`

var queues = []string{"archive", "feature_blocked", "feature_dev", "feature_docs", "feature_docs_review", "feature_inbox",
	"feature_live", "feature_plan", "feature_review", "feature_test", "feature_ui_dev", "review_sessions", "user_feedback", "verified"}

// E-364, E-471
func TestPlainSetupMakesAnEmptyProject(t *testing.T) {
	dir := repository(t, "trunk")
	write(t, filepath.Join(dir, ".gitignore"), "bin/\n# no line end")
	report := done(t, dir, withGit(realGit(t)))

	got := picture(t, dir)
	for name := range got {
		if strings.HasPrefix(name, ".git"+string(filepath.Separator)) {
			delete(got, name)
		}
	}
	const private, public = "drwx------", "drwxr-xr-x"
	schema := contract.EmbeddedSchema()
	want := map[string]string{
		".": got["."], ".git": got[".git"],
		".gitignore":                  "-rw-r--r-- bin/\n# no line end\n/.greatminds/\n/.worktrees/\n",
		"coordination":                public,
		"coordination/execution.yaml": "-rw------- # Who works on this project: agents (how to start them) and bindings (their roles).\nversion: 1\nagents: {}\nbindings: {}\n",
		"coordination/coord.yaml":     "-rw-r--r-- # What this project does differently from the workflow schema.\nworktrees:\n  default_branch: trunk\n",
		".greatminds":                 private,
		".greatminds/setup.lock":      got[".greatminds/setup.lock"],
		".greatminds/schema.yaml":     "-rw------- " + string(schema.Text),
	}
	for _, q := range queues {
		want[".greatminds/"+q] = public
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("what setup made (-want +got):\n%s", d)
	}
	if !strings.HasPrefix(got[".greatminds/setup.lock"], "-rw------- ") {
		t.Errorf("setup.lock is %s", got[".greatminds/setup.lock"])
	}
	wantReport := setup.Report{Project: dir, ExecutionSHA256: "039f3e351eb4c55cdfdc90ca1aec561ecac579218d18d9fa0aeecb7115a33f4e",
		SchemaSHA256: schema.SHA256, SchemaMirror: "current", DefaultBranch: "trunk",
		NextStep: "configure agents and bindings in coordination/execution.yaml, then run `greatminds coordd`"}
	if d := cmp.Diff(wantReport, report); d != "" {
		t.Fatalf("report (-want +got):\n%s", d)
	}
	text, err := json.Marshal(report)
	if err != nil || !strings.HasPrefix(string(text), `{"project":`) {
		t.Fatalf("report as JSON: %s %v", text, err)
	}
	for _, key := range []string{"project", "execution_sha256", "bindings", "agents", "schema_sha256", "schema_mirror", "next_step"} {
		if !strings.Contains(string(text), `"`+key+`":`) {
			t.Errorf("report %s has no %s", text, key)
		}
	}
}

// E-472
func TestSuppliedContractIsInstalledByteForByte(t *testing.T) {
	dir, file := realTemp(t), filepath.Join(t.TempDir(), "reviewed.yaml")
	write(t, file, sample)
	report := done(t, dir, withContract(file))
	if got := read(t, filepath.Join(dir, "coordination/execution.yaml")); got != sample {
		t.Fatalf("installed %q, want the supplied bytes", got)
	}
	if report.Agents != 1 || report.Bindings != 1 || report.NextStep != "run `greatminds coordd`" {
		t.Fatalf("report %+v", report)
	}
}

// E-363
func TestInvalidContractIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	dir, file := realTemp(t), filepath.Join(t.TempDir(), "draft.yaml")
	write(t, file, strings.Replace(sample, "DEVELOPER", "DEVELOPPER", 1))
	_, err := run(t, dir, withContract(file))
	refused(t, err, refusal.CodeContractInvalid, refusal.Invalid, "draft.yaml:6:15", "DEVELOPPER")
	_, err = run(t, dir, withContract(file+".none"))
	refused(t, err, refusal.CodeContractMissing, refusal.Invalid, file+".none")
	_, err = run(t, dir, withContract(t.TempDir()))
	refused(t, err, refusal.CodeContractUnreadable, refusal.Invalid, "not a regular file")
	if got := picture(t, dir); len(got) != 1 {
		t.Fatalf("something was written: %v", got)
	}
}

// E-367, E-473
func TestRepeatedSetupChangesNoByte(t *testing.T) {
	dir, file := repository(t, "main"), filepath.Join(t.TempDir(), "reviewed.yaml")
	write(t, file, sample)
	first := done(t, dir, withContract(file), withGit(realGit(t)))
	contractFile := filepath.Join(dir, "coordination/execution.yaml")
	// The same contract in other bytes: the fingerprint counts, the bytes stay.
	write(t, contractFile, "# edited\n"+sample)
	write(t, filepath.Join(dir, ".greatminds/feature_dev/0001-x.yaml"), "id: 0001-x\n")
	write(t, filepath.Join(dir, ".greatminds/.runtime/state.json"), "{}")
	before := picture(t, dir)
	for _, change := range [][]func(*setup.Request){{withContract(file)}, nil} {
		again := done(t, dir, append(change, withGit(realGit(t)))...)
		if d := cmp.Diff(first, again); d != "" {
			t.Fatalf("report changed (-first +again):\n%s", d)
		}
	}
	if d := cmp.Diff(before, picture(t, dir)); d != "" {
		t.Fatalf("bytes changed (-before +after):\n%s", d)
	}
}

// E-370
func TestDifferentContractIsNotReplaced(t *testing.T) {
	dir, file := realTemp(t), filepath.Join(t.TempDir(), "other.yaml")
	done(t, dir)
	write(t, file, sample)
	before := picture(t, dir)
	_, err := run(t, dir, withContract(file))
	refused(t, err, refusal.CodeSetupDiffers, refusal.Invalid, "other.yaml", "039f3e351eb4", "edit coordination/execution.yaml")
	write(t, filepath.Join(dir, "coordination/execution.yaml"), "version: 2\n")
	_, err = run(t, dir)
	refused(t, err, refusal.CodeContractInvalid, refusal.Invalid, "execution.yaml:1:10")
	write(t, filepath.Join(dir, "coordination/execution.yaml"), read(t, file))
	before["coordination/execution.yaml"] = "-rw------- " + sample
	if d := cmp.Diff(before, picture(t, dir)); d != "" {
		t.Fatalf("something changed (-before +after):\n%s", d)
	}
}

// E-366
func TestContractAppearsLastWhereverSetupIsCutShort(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reviewed.yaml")
	write(t, file, sample)
	installed := "coordination/execution.yaml"
	whole := realTemp(t)
	want := done(t, whole, withContract(file))
	complete := picture(t, whole)
	steps := 0
	for n := 1; ; n++ {
		dir := realTemp(t)
		fd := faultdisk.New(faultdisk.CrashAt(n))
		_, err := run(t, dir, withContract(file), func(q *setup.Request) { q.Disk = fd.Disk() })
		left := picture(t, dir)
		if fd.Reached() && err == nil {
			t.Fatalf("step %d: cut short without an error", n)
		}
		if _, there := left[installed]; there {
			// The contract implies everything else.
			for name := range complete {
				if _, ok := left[name]; !ok {
					t.Fatalf("step %d: the contract is there and %s is not", n, name)
				}
			}
			if read(t, filepath.Join(dir, installed)) != sample {
				t.Fatalf("step %d: the contract is not complete", n)
			}
		}
		if !fd.Reached() {
			break
		}
		steps++
		// Whatever was left, the next setup completes it.
		report := done(t, dir, withContract(file))
		report.Project = want.Project
		if d := cmp.Diff(want, report); d != "" {
			t.Fatalf("step %d: report after the crash (-want +got):\n%s", n, d)
		}
		for name, text := range complete {
			if name != ".greatminds/setup.lock" && picture(t, dir)[name] != text {
				t.Fatalf("step %d: %s differs after the second setup", n, name)
			}
		}
	}
	if steps < 20 {
		t.Fatalf("only %d steps were tried", steps)
	}
}

// A contract that somebody writes by hand while setup runs is not replaced either.
func TestContractThatAppearsMeanwhileIsKept(t *testing.T) {
	dir := realTemp(t)
	path := filepath.Join(dir, "coordination/execution.yaml")
	calls := 0
	meanwhile := func(ctx context.Context, in string, args ...string) ([]byte, error) {
		if calls++; slices.Equal(args, []string{"symbolic-ref", "--quiet", "HEAD"}) && calls > 4 {
			write(t, path, sample) // after the last look, before the last write
		}
		return onBranch("main")(ctx, in, args...)
	}
	_, err := run(t, dir, withGit(meanwhile))
	refused(t, err, refusal.CodeSetupWrite, refusal.Storage, "execution.yaml", "greatminds setup")
	if got := read(t, path); got != sample {
		t.Fatalf("the contract became %q", got)
	}
	if report := done(t, dir); report.Bindings != 1 {
		t.Fatalf("the next setup takes it as it stands: %+v", report)
	}
}

// A disk that fails is a refusal of its own, and no contract appears.
func TestFullDiskIsRefused(t *testing.T) {
	dir := realTemp(t)
	fd := faultdisk.New(faultdisk.FailFrom(1, fs.ErrPermission))
	_, err := run(t, dir, func(q *setup.Request) { q.Disk = fd.Disk() })
	refused(t, err, refusal.CodeSetupWrite, refusal.Storage, ".greatminds")
	if !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("the cause is lost: %v", err)
	}
}

// E-365
func TestSchemaMirror(t *testing.T) {
	dir := realTemp(t)
	mirror := filepath.Join(dir, ".greatminds/schema.yaml")
	done(t, dir)
	if err := os.Remove(mirror); err != nil {
		t.Fatal(err)
	}
	if report := done(t, dir); report.SchemaMirror != "current" || read(t, mirror) != string(contract.EmbeddedSchema().Text) {
		t.Fatalf("a missing copy is not written: %+v", report)
	}
	edited := strings.ReplaceAll(string(contract.EmbeddedSchema().Text), "DEVELOPER", "HACKER")
	write(t, mirror, edited)
	report := done(t, dir)
	if report.SchemaMirror != "drifted" || read(t, mirror) != edited || report.SchemaSHA256 != contract.EmbeddedSchema().SHA256 {
		t.Fatalf("an edited copy: %+v", report)
	}
	// It overrides nothing: the role that it invents does not exist.
	file := filepath.Join(t.TempDir(), "c.yaml")
	write(t, file, strings.Replace(sample, "DEVELOPER", "HACKER", 1))
	_, err := run(t, realTemp(t), withContract(file))
	refused(t, err, refusal.CodeContractInvalid, refusal.Invalid, "HACKER")

	if err := os.Remove(mirror); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(mirror, "x"), "")
	if report := done(t, dir); report.SchemaMirror != "unreadable" {
		t.Fatalf("a copy that is a folder: %+v", report)
	}
}

// E-474
func TestTaskDataInCoordinationIsRefused(t *testing.T) {
	for _, name := range []string{"feature_dev/0001-x.yaml", ".runtime/state.json", ".agent_registry/x"} {
		dir := realTemp(t)
		write(t, filepath.Join(dir, "coordination", name), "x")
		before := picture(t, dir)
		_, err := run(t, dir)
		refused(t, err, refusal.CodeSetupOldLayout, refusal.Invalid, strings.Split(name, "/")[0], ".greatminds")
		if d := cmp.Diff(before, picture(t, dir)); d != "" {
			t.Fatalf("something was created:\n%s", d)
		}
	}
}

func TestStateWithoutContractIsRefused(t *testing.T) {
	for _, name := range []string{"state.json", "journal.jsonl"} {
		dir := realTemp(t)
		write(t, filepath.Join(dir, ".greatminds/.runtime", name), "x")
		before := picture(t, dir)
		_, err := run(t, dir)
		refused(t, err, refusal.CodeSetupOrphanState, refusal.Invalid, name, "execution.yaml is gone")
		if d := cmp.Diff(before, picture(t, dir)); d != "" {
			t.Fatalf("something was created:\n%s", d)
		}
	}
}

// E-368
func TestSetupTouchesNothingElseAndLeavesNoProcess(t *testing.T) {
	world := realTemp(t)
	home, dir := filepath.Join(world, "home"), filepath.Join(world, "work/project")
	write(t, filepath.Join(home, ".some-agent/settings.json"), "{}")
	write(t, filepath.Join(dir, "main.go"), "package main\n")
	git(t, dir, "init", "-q", "-b", "main")
	before := picture(t, world)
	real := setup.GitTool([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home})
	marker := filepath.Join(world, "started")
	file := filepath.Join(t.TempDir(), "c.yaml")
	write(t, file, strings.Replace(sample, "[my-agent]", "[/bin/sh, -c, 'touch "+marker+"']", 1))
	done(t, dir, withContract(file), withGit(real))
	for name, text := range picture(t, world) {
		inside := strings.HasPrefix(name, "work/project/")
		if before[name] != text && name != "work/project" && !inside {
			t.Errorf("%s changed outside the project", name)
		}
		if strings.HasPrefix(name, "work/project/.git/") && before[name] != text {
			t.Errorf("%s changed in the repository", name)
		}
	}
	if got := children(t); len(got) != 0 {
		t.Errorf("processes are left: %v", got)
	}
	if _, err := os.Lstat(marker); err == nil {
		t.Error("the agent was started")
	}
}

// children lists the child processes of this one.
func children(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(files) == 0 {
		t.Fatalf("cannot see children: %v", err)
	}
	var all []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a thread may have ended
			t.Fatal(err)
		}
		all = slices.Concat(all, strings.Fields(string(data)))
	}
	return all
}

func TestTwoSetupsAtOnceAgree(t *testing.T) {
	dir := realTemp(t)
	type answer struct {
		report setup.Report
		err    error
	}
	answers := make(chan answer)
	const both = 4
	for range both {
		go func() {
			r, err := setup.Run(t.Context(), setup.Request{ProjectDir: dir, Disk: durable.NewDisk(nil), Git: onBranch("main")})
			answers <- answer{r, err}
		}()
	}
	first := <-answers
	for range both - 1 {
		next := <-answers
		if first.err != nil || next.err != nil || first.report != next.report {
			t.Errorf("got %+v and %+v", first, next)
		}
	}
}
