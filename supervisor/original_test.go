package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"greatminds/fixtures/original"
	"greatminds/internal/execgate/proc"
	"greatminds/runstore"
)

// inherited is a project as the original left it, opened and recovered as a daemon does it.
func inherited(t *testing.T, name string, edit func(state map[string]any)) *core {
	t.Helper()
	h := newHouse(t, plan{})
	must(t, original.Write(h.root, name))
	if edit != nil {
		path := h.file(".greatminds/.runtime/state.json")
		data, err := os.ReadFile(path)
		must(t, err)
		var state map[string]any
		must(t, json.Unmarshal(data, &state))
		edit(state)
		data, err = json.MarshalIndent(state, "", "  ")
		must(t, err)
		must(t, os.WriteFile(path, data, 0o600))
	}
	c, err := open(context.Background(), h.o, "")
	must(t, err)
	t.Cleanup(func() { must(t, c.close(context.Background())) })
	must(t, c.recover(context.Background()))
	must(t, c.settleOffline(context.Background()))
	return c
}

// E-116, E-239, E-240, E-242: what the original left unfinished becomes what recovery makes of our
// own.
func TestWhatTheOriginalLeftIsRecovered(t *testing.T) {
	for name, want := range map[string]string{
		"idle":       "",
		"completed":  "completed, completed, completed",
		"claimed":    "interrupted (supervisor_restart)",
		"running":    "interrupted (supervisor_restart)",
		"received":   "interrupted (supervisor_restart); result received",
		"command":    "interrupted (supervisor_restart); command needs_recovery",
		"permission": "waiting_input (permission_required); question cancelled (supervisor_restart)",
		"chat":       "interrupted (supervisor_restart)",
		"controls":   "completed [retry completed, once more], interrupted (supervisor_restart) [cancel completed], waiting_auth (authentication_required)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := inherited(t, name, nil)
			if got := summary(c.store.View()); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			for _, r := range c.store.View().ActiveRuns() {
				if r.Process != nil || r.OwnerID != c.owner {
					t.Errorf("run %s has the process %+v of %s", r.ID, r.Process, r.OwnerID)
				}
			}
			if open := c.store.View().OpenPermissions(); len(open) > 0 {
				t.Errorf("%d questions are open", len(open))
			}
		})
	}
}

func summary(v *runstore.View) string {
	var runs []string
	out := ""
	for _, r := range v.Runs() {
		text := string(r.State)
		if r.Reason != "" && r.State != runstore.Completed {
			text += " (" + r.Reason + ")"
		}
		if r.Control != nil {
			text += " [" + r.Control.Kind + " " + r.Control.Status
			if r.RetryAuthorized {
				text += ", once more"
			}
			text += "]"
		}
		runs = append(runs, text)
		for _, p := range v.PermissionsOfRun(r.ID) {
			out += fmt.Sprintf("; question %s (%s)", p.Status, p.Reason)
		}
		for _, c := range v.CommandsOfRun(r.ID) {
			if c.Open() {
				out += "; command " + c.Status
			}
		}
	}
	for _, r := range v.OpenResults() {
		out += "; result " + r.Status
	}
	return strings.Join(runs, ", ") + out
}

// The files of a conversation stay byte for byte.
func TestConversationsOfTheOriginalStay(t *testing.T) {
	c := inherited(t, "chat", nil)
	dir := filepath.Join(c.o.Project.StoreDir(), "conversations")
	other := t.TempDir()
	must(t, original.Write(other, "chat"))
	files, err := filepath.Glob(filepath.Join(other, ".greatminds/.runtime/conversations/*/*"))
	must(t, err)
	if len(files) == 0 {
		t.Fatal("the store holds no conversation")
	}
	for _, f := range files {
		want, err := os.ReadFile(f)
		must(t, err)
		got, err := os.ReadFile(filepath.Join(dir, filepath.Base(filepath.Dir(f)), filepath.Base(f)))
		must(t, err)
		if strings.ReplaceAll(string(got), c.o.Project.Root, other) != string(want) {
			t.Errorf("%s changed", filepath.Base(f))
		}
	}
}

// The original records less of a process than we do. It is ended by what is on record, and a
// stranger under its number is not touched.
func TestAProcessOfTheOriginalIsEndedByItsIdentityAlone(t *testing.T) {
	for name, stranger := range map[string]bool{"its process": false, "a stranger": true} {
		t.Run(name, func(t *testing.T) {
			child := exec.Command("sleep", "600")
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			must(t, child.Start())
			ended := make(chan struct{})
			go func() { defer close(ended); _ = child.Wait() }() // the rooms, a subreaper, may have been first
			t.Cleanup(func() { _ = child.Process.Kill(); <-ended })
			stat, err := proc.ReadStat(child.Process.Pid)
			must(t, err)
			boot, err := proc.BootID()
			must(t, err)
			ticks := stat.Start
			if stranger {
				ticks--
			}
			c := inherited(t, "running", func(state map[string]any) {
				for _, r := range state["runs"].(map[string]any) {
					r.(map[string]any)["process"] = map[string]any{"pid": child.Process.Pid, "group": child.Process.Pid,
						"session": child.Process.Pid, "start_ticks": ticks, "boot_id": boot}
				}
			})
			if got := summary(c.store.View()); got != "interrupted (supervisor_restart)" {
				t.Errorf("got %s", got)
			}
			if stranger {
				select {
				case <-ended:
					t.Error("the stranger was ended")
				default:
				}
				return
			}
			<-ended // it would sleep for ten minutes
		})
	}
}
