package commands_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
)

// E-075, E-091, E-092
func TestAReceiptKeepsEverything(t *testing.T) {
	l := newLab(t, shell("check", "echo out; echo err >&2"))
	l.repository()
	queued, err := l.admit("check", "r1")
	l.must(err)
	if queued.Status != "queued" || queued.Process != nil || queued.RequestedAt == 0 {
		t.Errorf("got %+v, want a queued request", queued)
	}
	// It is on the disk, for whoever reads without asking the daemon.
	onDisk, err := runstore.Read(l.runtime())
	l.must(err)
	if c := onDisk.Command("r1"); c == nil || c.Status != "queued" {
		t.Errorf("the disk has %+v", c)
	}
	l.must(l.service.Execute(t.Context(), "r1"))
	c := l.receipt("r1")
	wantOutcome(t, c, "succeeded", "exit")
	run := l.store.View().Run(l.run)
	if c.ExitCode == nil || *c.ExitCode != 0 || c.StartedAt == nil || c.FinishedAt == nil || *c.FinishedAt < *c.StartedAt {
		t.Errorf("exit and times: %+v", c)
	}
	if fmt.Sprint(c.Argv) != "[sh -c echo out; echo err >&2]" || c.Cwd != realpath(t, l.dir) {
		t.Errorf("argv %q in %s", c.Argv, c.Cwd)
	}
	if c.TaskID != run.TaskID || c.TaskRevision != run.TaskRevision || c.SchemaSHA256 != run.SchemaSHA256 || c.ConfigSHA256 != run.ConfigSHA256 || c.DefinitionSHA256 == "" || c.OwnerID != "owner" {
		t.Errorf("identities: %+v", c)
	}
	if c.SourceBefore == nil || c.SourceAfter == nil || len(c.SourceBefore.Commit) != 40 || len(c.SourceAfter.SourceSHA256) != 64 {
		t.Errorf("sources %+v %+v", c.SourceBefore, c.SourceAfter)
	}
	if id := c.EnvironmentIdentity; id == nil || len(id.EnvironmentHMAC) != 64 || len(id.ExecutableSHA256) != 64 || filepath.Base(id.Executable) != "sh" {
		t.Errorf("environment %+v", id)
	}
	if p := c.Process; p == nil || p.PID == 0 || p.StartTicks == 0 || p.BootID == "" || p.Group != p.PID || p.Session != p.PID || p.Keeper == nil {
		t.Errorf("process %+v", p)
	}
	for name, stream := range map[string]runstore.Stream{"out\n": c.Output.Stdout, "err\n": c.Output.Stderr} {
		text, err := os.ReadFile(stream.Path)
		if err != nil || string(text) != name || stream.Bytes != 4 || stream.StoredBytes != 4 || stream.Truncated || len(stream.SHA256) != 64 {
			t.Errorf("stream %+v holds %q, %v", stream, text, err)
		}
	}
	if got := kinds(l); fmt.Sprint(got) != "[command_requested command_starting command_running command_succeeded]" {
		t.Errorf("got events %v", got)
	}
}

func realpath(t *testing.T, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

func kinds(l *lab) []string {
	var out []string
	for _, e := range l.store.View().Events(0, 1000) {
		if strings.HasPrefix(e.Kind, "command_") {
			out = append(out, e.Kind)
		}
	}
	return out
}

// E-084, E-094
func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name, definition, status, reason string
		exit                             string
		signal                           string
	}{
		{"success", shell("c", "true"), "succeeded", "exit", "0", ""},
		{"exit status", shell("c", "exit 3"), "failed", "exit", "3", ""},
		{"signal", shell("c", "kill -SEGV $$"), "failed", "signal", "none", "SIGSEGV"},
		{"killed by somebody", shell("c", "kill -KILL $$"), "failed", "signal", "none", "SIGKILL"},
		{"time over", shell("c", "sleep 1000", "timeout_seconds: 1"), "failed", "timeout", "none", ""},
		{"time over, stubborn", shell("c", `trap "" TERM; sleep 1000`, "timeout_seconds: 1"), "failed", "timeout", "none", ""},
		{"missing program", "  c: {argv: [no-such-program], roles: [DEVELOPER]}\n", "failed", "preflight_failed", "none", ""},
		{"program of another format", "  c: {argv: [./a.txt], roles: [DEVELOPER]}\n", "failed", "execution_error:ENOEXEC", "none", ""},
		{"missing variable", shell("c", "true", "required_env: [NOT_SET_ANYWHERE]"), "failed", "preflight_failed", "none", ""},
		{"missing folder", shell("c", "true", "cwd: nowhere"), "failed", "preflight_failed", "none", ""},
		{"folder is a file", shell("c", "true", "cwd: a.txt"), "failed", "preflight_failed", "none", ""},
		{"folder leads out", shell("c", "true", "cwd: out"), "failed", "preflight_failed", "none", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, c.definition)
			l.must(os.Chmod(filepath.Join(l.dir, "a.txt"), 0o755))
			if c.name == "folder leads out" {
				l.repository() // where links to folders are no part of the source when ignored
				l.must(os.Symlink(t.TempDir(), filepath.Join(l.dir, "out")))
			}
			r := l.carryOut("c", "r1")
			wantOutcome(t, r, c.status, c.reason)
			exit := "none"
			if r.ExitCode != nil {
				exit = strconv.Itoa(*r.ExitCode)
			}
			var signal string
			if raw, ok := r.Extra["signal"]; ok {
				l.must(json.Unmarshal(raw, &signal))
			}
			if exit != c.exit || signal != c.signal {
				t.Errorf("got exit %s and signal %q, want %s and %q", exit, signal, c.exit, c.signal)
			}
			if r.Reason == "preflight_failed" && (r.Process != nil || slices.Contains(kinds(l), "command_starting")) {
				t.Errorf("a process was started: %+v, %v", r.Process, kinds(l))
			}
			if r.Process != nil {
				if life, err := execgate.Look(execgate.Process{PID: r.Process.PID, StartTicks: r.Process.StartTicks, BootID: r.Process.BootID}); life != execgate.Gone {
					t.Errorf("the process is %v, %v", life, err)
				}
			}
			if r.Output != nil {
				for _, s := range []runstore.Stream{r.Output.Stdout, r.Output.Stderr} {
					if info, err := os.Stat(s.Path); err != nil || info.Mode().Perm() != 0o600 {
						t.Errorf("%s: %v, %v", s.Path, info.Mode(), err)
					}
				}
			}
			// Another request is accepted now.
			if _, err := l.admit("c", "r2"); err != nil {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

// E-085
func TestOutputIsBoundedAndDrained(t *testing.T) {
	l := newLab(t, shell("c", `head -c 3000000 /dev/zero | tr '\0' x; echo end >&2`, "max_output_bytes: 1000"))
	c := l.carryOut("c", "r1")
	wantOutcome(t, c, "succeeded", "exit")
	out := c.Output.Stdout
	if out.Bytes != 3000000 || out.StoredBytes != 1000 || !out.Truncated || l.stdout(c) != strings.Repeat("x", 1000) || len(out.Extra["stream_sha256"]) != 66 {
		t.Errorf("got %+v", out)
	}
	if c.Output.Stderr.Truncated || c.Output.Stderr.Bytes != 4 {
		t.Errorf("got %+v", c.Output.Stderr)
	}
}

// E-086
func TestArgvIsLiteral(t *testing.T) {
	l := newLab(t, "  c: {argv: [printf, \"%s|\", \"$HOME\", \";\", \"a b\", \"*\", \"\\\\n\"], roles: [DEVELOPER]}\n")
	if got, want := l.stdout(l.carryOut("c", "r1")), `$HOME|;|a b|*|\n|`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// E-087, E-093
func TestTheEnvironmentIsSmallAndItsValuesAreStoredNowhere(t *testing.T) {
	l := newLab(t, shell("c", "env | sort", "environment: {CHILD: SECRET_PARENT, NOT_THERE: NOT_SET, GREATMINDS_RUN_TOKEN: OTHER}", "required_env: [SECRET_PARENT]"))
	c := l.carryOut("c", "r1")
	var names []string
	for _, line := range strings.Split(strings.TrimSpace(l.stdout(c)), "\n") {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	// PWD, SHLVL, OLDPWD and _ are the shell's own.
	names = slices.DeleteFunc(names, func(n string) bool { return n == "PWD" || n == "SHLVL" || n == "OLDPWD" || n == "_" })
	if fmt.Sprint(names) != "[CHILD GREATMINDS_MARK HOME PATH TERM]" {
		t.Errorf("got variables %v", names)
	}
	info, err := os.Stat(filepath.Join(l.runtime(), "evidence.key"))
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != 32 {
		t.Errorf("the key: %v %v", info, err)
	}
	l.close()
	for _, name := range []string{"state.json", "journal.jsonl"} {
		if data, err := os.ReadFile(filepath.Join(l.runtime(), name)); err == nil && strings.Contains(string(data), "s3cret-value") {
			t.Errorf("%s holds the value", name)
		}
	}
	l.open()
	// The same environment after a restart has the same identity: the key is kept.
	if again := l.carryOut("c", "r2"); again.EnvironmentIdentity.EnvironmentHMAC != c.EnvironmentIdentity.EnvironmentHMAC {
		t.Error("the identity of the same environment changed")
	}
}

func TestAKeyThatOthersCanReadIsRefused(t *testing.T) {
	for name, damage := range map[string]func(l *lab, path string){
		"mode":  func(l *lab, path string) { l.must(os.Chmod(path, 0o644)) },
		"short": func(l *lab, path string) { l.must(os.WriteFile(path, []byte("x"), 0o600)) },
		"link": func(l *lab, path string) {
			l.must(os.Rename(path, path+".moved"))
			l.must(os.Symlink(path+".moved", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, shell("c", "true"))
			l.carryOut("c", "r1")
			damage(l, filepath.Join(l.runtime(), "evidence.key"))
			l.reopen()
			wantOutcome(t, l.carryOut("c", "r2"), "failed", "preflight_failed")
			_, err := l.service.Stale(t.Context(), l.store.View().Run(l.run), l.receipt("r1"))
			wantCode(t, err, refusal.CodeEvidenceKey)
		})
	}
}

// E-083
func TestTheFolderIsInTheWorkspace(t *testing.T) {
	l := newLab(t, shell("c", "pwd", "cwd: sub/dir"))
	l.write("sub/dir/x", "")
	c := l.carryOut("c", "r1")
	if want := filepath.Join(realpath(t, l.dir), "sub/dir"); strings.TrimSpace(l.stdout(c)) != want || c.Cwd != want {
		t.Errorf("ran in %q, receipt %s, want %s", l.stdout(c), c.Cwd, want)
	}
}

// E-099, E-100
func TestAChangeOfTheSourceDuringTheCommand(t *testing.T) {
	for _, c := range []struct{ name, script, status, reason, exit string }{
		{"tracked file", "echo 2 >> a.txt", "stale", "source_changed_during_command", "0"},
		{"new file", "echo {} > result.json", "stale", "source_changed_during_command", "0"},
		{"permissions", "chmod 700 a.txt", "stale", "source_changed_during_command", "0"},
		{"a commit", "git -c user.name=t -c user.email=t@example.invalid commit -q --allow-empty -m m", "stale", "source_changed_during_command", "0"},
		{"ignored file", "echo 2 > x.log", "succeeded", "exit", "0"},
		{"with a failure", "echo 2 >> a.txt; exit 1", "failed", "exit", "1"},
		{"a link that leads out", "ln -s /etc/passwd link", "failed", "identity_check_failed:source_identity", "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, shell("c", c.script))
			l.repository()
			r := l.carryOut("c", "r1")
			wantOutcome(t, r, c.status, c.reason)
			if r.ExitCode == nil || strconv.Itoa(*r.ExitCode) != c.exit {
				t.Errorf("got exit %v, want %s", r.ExitCode, c.exit)
			}
		})
	}
}

// E-098
func TestALinkOutOfTheTreeIsNoSource(t *testing.T) {
	l := newLab(t, shell("c", "true"))
	l.must(os.Symlink("/etc/passwd", filepath.Join(l.dir, "link")))
	r := l.carryOut("c", "r1")
	wantOutcome(t, r, "failed", "preflight_failed")
	if !strings.Contains(string(r.Extra["detail"]), "link") {
		t.Errorf("the detail names no link: %s", r.Extra["detail"])
	}
}

func TestACommandEndsWhenItsProcessEnds(t *testing.T) {
	for name, script := range map[string]string{
		"child in the background":     "sleep 1000 & echo $!; echo ok",
		"child in its own session":    "setsid sleep 1000 & echo $!; echo ok",
		"child that ignores SIGTERM":  `sh -c 'trap "" TERM; exec sleep 1000' & echo $!; echo ok`,
		"grandchild, twice forked":    "(setsid sleep 1000 & echo $!); echo ok",
		"child that writes endlessly": "yes > /dev/null & echo $!; echo ok",
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, shell("c", script))
			c := l.carryOut("c", "r1")
			wantOutcome(t, c, "succeeded", "exit")
			pid, rest, _ := strings.Cut(l.stdout(c), "\n")
			if rest != "ok\n" {
				t.Errorf("got output %q", l.stdout(c))
			}
			if cmdline, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && len(cmdline) > 0 {
				t.Errorf("pid %s is left: %q", pid, cmdline)
			}
		})
	}
}

// E-082, E-088, E-089
func TestAdmission(t *testing.T) {
	l := newLab(t,
		shell("check", "touch ran"),
		"  review: {argv: [touch, ran], roles: [TESTER]}\n",
		shell("deploy", "touch ran", "purpose: deployment"),
		shell("publish", "touch ran", "purpose: publication"),
		shell("allowed", "true", "purpose: deployment", "authorized: true"))
	_, err := l.admit("review", "r1")
	wantCode(t, err, refusal.CodeCommandRole)
	if r, ok := refusal.Find(err); ok && r.Status() != refusal.Forbidden {
		t.Errorf("another role exits with %d", r.Status())
	}
	for _, command := range []string{"deploy", "publish"} {
		_, err := l.admit(command, "r2")
		wantCode(t, err, refusal.CodeCommandAuthorization)
	}
	if len(l.store.View().CommandsOfRun(l.run)) != 0 || l.exists("ran") {
		t.Error("a refused request left something behind")
	}
	wantOutcome(t, l.carryOut("check", "r3"), "stale", "source_changed_during_command")
	// A success gives no permission for anything else.
	_, err = l.admit("deploy", "r4")
	wantCode(t, err, refusal.CodeCommandAuthorization)
	wantOutcome(t, l.carryOut("allowed", "r5"), "succeeded", "exit")
}

// E-081
func TestARunKeepsTheDefinitionsThatItPinned(t *testing.T) {
	l := newLab(t, shell("c", "echo pinned"))
	l.current = configured(t, shell("c", "echo edited"))
	if got := l.stdout(l.carryOut("c", "r1")); got != "pinned\n" {
		t.Errorf("carried out %q", got)
	}
	// A definition that is not the pinned one is not carried out under its name.
	edited, _ := l.current.Command("c")
	_, err := l.service.Admit(t.Context(), l.store.View().Run(l.run), edited, "r2")
	l.must(err)
	l.must(l.service.Execute(t.Context(), "r2"))
	wantOutcome(t, l.receipt("r2"), "failed", "preflight_failed")
}

// E-078, E-079, E-080
func TestRequestIdsNeverRepeatACommand(t *testing.T) {
	l := newLab(t, shell("count", "echo x >> count.log"), shell("other", "true"), shell("wait", "read x < fifo.log"))
	l.repository()
	first := l.carryOut("count", "r1")
	again, err := l.admit("count", "r1")
	l.must(err)
	if again.Status != first.Status || *again.FinishedAt != *first.FinishedAt {
		t.Errorf("got %+v, want the first receipt", again)
	}
	l.must(l.service.Execute(t.Context(), "r1"))
	if got := l.read("count.log"); got != "x\n" {
		t.Errorf("carried out %q", got)
	}
	_, err = l.admit("other", "r1")
	wantCode(t, err, refusal.CodeRequestReused)
	another := l.run
	l.run = l.claim("0002-task", "DEVELOPER")
	_, err = l.admit("count", "r1")
	wantCode(t, err, refusal.CodeRequestReused)
	l.run = another

	_, err = l.admit("other", "r2")
	l.must(err)
	_, err = l.admit("count", "r3")
	wantCode(t, err, refusal.CodeCommandPending)
	l.must(l.service.Execute(t.Context(), "r2"))
	_, err = l.admit("count", "r3")
	l.must(err)
}

func TestARunThatEndedCarriesNothingOut(t *testing.T) {
	l := newLab(t, shell("c", "touch ran"))
	_, err := l.admit("c", "r1")
	l.must(err)
	l.must(l.store.Update(t.Context(), func(tx *runstore.Tx) error {
		return tx.Transition(l.run, runstore.NewID(), runstore.Failed, "timeout", nil)
	}))
	l.must(l.service.Execute(t.Context(), "r1"))
	wantOutcome(t, l.receipt("r1"), "cancelled", "run_not_running")
	if l.exists("ran") {
		t.Error("it was carried out")
	}
}
