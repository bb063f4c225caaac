package supervisor

import (
	"encoding/json"
	"testing"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
)

// A start after a reboot, or long after a crash, meets processes that have the recorded pids and
// nothing else in common with them. They are left alone, and the run is interrupted all the same.
// One whose identity is not complete on record keeps the daemon from starting. The true record shows
// that the others are told apart by nothing but what was changed.
//
// E-239 E-240 E-241
func TestARestartTellsStrangersByTheirIdentity(t *testing.T) {
	t.Parallel()
	other := uint64(1)
	for name, c := range map[string]struct {
		forge func(*execgate.Process)
		lives bool
		how   string // of the recorded end; "" where the start is refused
	}{
		"the process itself": {func(*execgate.Process) {}, false, execgate.HowRecovered},
		"a reboot":           {func(p *execgate.Process) { p.BootID = "00000000-0000-0000-0000-000000000000" }, true, execgate.HowGone},
		"a reused pid":       {func(p *execgate.Process) { p.StartTicks-- }, true, execgate.HowGone},
		"reused in one tick": {func(p *execgate.Process) { p.PidfdInode = &other }, true, execgate.HowGone},
		"an unknown boot":    {func(p *execgate.Process) { p.BootID = "" }, true, ""},
		"a keeper's reused pid": {func(p *execgate.Process) {
			keeper := *p
			keeper.StartTicks--
			p.PID, p.Keeper = 1<<22, &keeper
		}, true, execgate.HowGone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{steps: waiting})
			h.task("feature_dev", taskID)
			const run = runstore.RunID("0123456789abcdef0123456789abcdef")
			record, fds := orphans(t, "of-another-run")
			if record.PidfdInode == nil && name == "reused in one tick" {
				t.Skip("pidfds have no inode of their own on this kernel")
			}
			c.forge(&record)
			h.open()
			recordRunning(t, h, run, record)
			h.shut()

			d, err := newDaemon(t.Context(), h.o)
			if c.how == "" {
				if r, ok := refusal.Find(err); !ok || r.Code != refusal.CodeProcessUnknown {
					t.Errorf("the start came to %v", err)
				}
			} else {
				must(t, err)
				h.d = d
				r := h.d.store.View().Run(run)
				h.shut()
				var cleanup execgate.Cleanup
				must(t, json.Unmarshal(r.Extra[execgate.CleanupMember], &cleanup))
				if r.State != runstore.Interrupted || r.Process != nil || cleanup.How != c.how {
					t.Errorf("the run is %s with process %+v, ended as %+v", r.State, r.Process, cleanup)
				}
			}
			for _, fd := range fds {
				n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
				if err != nil || (n == 0) != c.lives {
					t.Errorf("%d, %v: whether it lives is not %v", n, err, c.lives)
				}
			}
		})
	}
}
