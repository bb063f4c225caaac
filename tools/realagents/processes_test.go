package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// family starts a shell with two children, one in a session of its own, and returns it when all
// of them run. Its environment names the run, unless there is none.
func family(t *testing.T, run string) *exec.Cmd {
	t.Helper()
	// exec, so that each child is the sleep itself.
	cmd := exec.Command("sh", "-c", "sleep 71 & setsid sleep 72 & echo ready; wait; exec sleep 73")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	if run != "" {
		cmd.Env = append(cmd.Env, "GREATMINDS_RUN_ID="+run)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the shell said %q, %v", line, err)
	}
	seen := func() bool {
		return strings.Contains(names(descendants(cmd.Process.Pid)), "sleep") && len(descendants(cmd.Process.Pid)) == 2 &&
			!slices.ContainsFunc(descendants(cmd.Process.Pid), func(p process) bool { return p.argv[0] != "sleep" })
	}
	if !await(t.Context(), seen) {
		t.Fatal("the children did not come")
	}
	return cmd
}

func TestATreeIsKilledWhereverItsSessionsAre(t *testing.T) {
	for name, run := range map[string]string{"by its run": "run-of-this-test", "by descent": ""} {
		t.Run(name, func(t *testing.T) {
			cmd := family(t, run)
			before := descendants(cmd.Process.Pid)
			if run != "" && len(tagged(run)) != 3 {
				t.Errorf("%d processes carry the run's id, want 3", len(tagged(run)))
			}
			if got := names(left("no-program", nil)); !strings.Contains(got, "sleep") {
				t.Errorf("left are %q, want sleep among them", got)
			}
			if run != "" && !running(run, []string{"sleep", "72"}) {
				t.Error("the child in its own session is not seen")
			}
			if got := killTree("no such run", cmd.Process.Pid, "no-program"); got != 3 {
				t.Errorf("%d were killed, want 3", got)
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.String() != "signal: killed" {
				t.Errorf("the shell ended with %v", err)
			}
			for _, p := range before {
				// A signal that was sent may still be on its way.
				gone := func() bool { state, _ := stateOf(p.pid); return state == 'X' || state == 'Z' }
				if !await(t.Context(), gone) {
					t.Errorf("%v still lives", p.argv)
				}
			}
		})
	}
}

// A process that has left the tree of its agent is still found by the run's id.
func TestAnOrphanIsFoundByItsRun(t *testing.T) {
	cmd := exec.Command("sh", "-c", "setsid sleep 74 & echo done")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GREATMINDS_RUN_ID=run-of-an-orphan"}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	found := func() bool { return running("run-of-an-orphan", []string{"sleep", "74"}) }
	if !await(t.Context(), found) {
		t.Fatal("the orphan is not found")
	}
	if got := killTree("run-of-an-orphan", cmd.Process.Pid, "no-program"); got == 0 || !await(t.Context(), func() bool { return !found() }) {
		t.Errorf("%d were killed", got)
	}
}
