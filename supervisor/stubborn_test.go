package supervisor

import (
	"encoding/json"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate"
	"greatminds/internal/execgate/proc"
	"greatminds/runstore"
)

// However an agent refuses to go, its run ends within the limits once an operator cancels it, with
// nothing of its tree left, and says how that went. One that goes by itself is not killed for a child
// that holds its output.
//
// E-223 E-240
func TestARunEndsHoweverItsAgentRefusesToGo(t *testing.T) {
	t.Parallel()
	const kids = `{"spawn":{"name":"a","setsid":true,"keep_stdout":true,"keep_stderr":true,"ignore_signals":["TERM","HUP","INT"]}},{"spawn":{"name":"b","setpgid":true}},`
	for name, c := range map[string]struct {
		steps string // once the prompt was received and the children are there
		state runstore.State
		how   string
	}{
		"ignores signals":         {`{"ignore_signals":["TERM","HUP","INT","QUIT"]},{"hang":true}`, runstore.Cancelled, execgate.HowKilled},
		"reads no more":           {`{"stop_reading":true},{"hang":true}`, runstore.Cancelled, execgate.HowKilled},
		"closes its output":       {`{"close":"stdout"},{"hang":true}`, runstore.Cancelled, execgate.HowKilled},
		"never answers":           {`{"hang":true}`, runstore.Cancelled, execgate.HowKilled},
		"leaves when told":        {`{"until_eof":true}`, runstore.Cancelled, execgate.HowExited},
		"leaves in the turn":      {`{"exit":{"code":3}}`, runstore.Failed, execgate.HowExited},
		"is killed in the turn":   {`{"exit":{"signal":"KILL"}}`, runstore.Failed, execgate.HowExited},
		"ends the turn and stays": {`{"ignore_signals":["TERM"]},{"end_turn":"p"},{"hang":true}`, runstore.Completed, execgate.HowKilled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{steps: `{"handshake":{}},{"prompt":"p"},` + kids + `{"say":"at work"},{"wait_file":"pinned","within_ms":60000},` + c.steps})
			h.task("feature_dev", taskID)
			h.start()
			run := h.prompted()
			pins := treeOf(t, run.Process.Keeper.Keeper.PID)
			if len(pins) < 5 {
				t.Fatalf("%d processes, want warden, keeper, agent and two children", len(pins))
			}
			must(t, os.WriteFile(h.file("agent/go-pinned"), nil, 0o644))
			if c.state == runstore.Cancelled {
				must(t, h.operator("run.cancel", map[string]any{"run_id": string(run.ID)}))
			}
			run = h.inState(c.state)
			for _, pin := range pins {
				if n, err := unix.Poll([]unix.PollFd{{Fd: int32(pin.FD), Events: unix.POLLIN}}, 0); n != 1 || err != nil {
					t.Errorf("pid %d lives on (%v)", pin.Stat.PID, err)
				}
			}
			proc.ClosePins(pins)
			var cleanup execgate.Cleanup
			must(t, json.Unmarshal(run.Extra[execgate.CleanupMember], &cleanup))
			if cleanup.How != c.how || cleanup.Ended < 2 || cleanup.Seconds > cleanup.TermSeconds+cleanup.KillSeconds {
				t.Errorf("the end is recorded as %+v, want %s", cleanup, c.how)
			}
		})
	}
}

// treeOf pins a process and everything below it.
func treeOf(t *testing.T, pid int) []proc.Pin {
	t.Helper()
	root, err := proc.PinPID(pid)
	must(t, err)
	return append(proc.Walk(root), root)
}
