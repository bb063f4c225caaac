package execgate_test

import (
	"os/exec"
	"syscall"
	"testing"

	"greatminds/internal/execgate"
	"greatminds/internal/execgate/proc"
)

// forged is a living stranger and its true identity; a test changes the record.
func forged(t *testing.T, env ...string) (*pinnedProcess, execgate.Process) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "setsid sleep 1000 & exec sleep 1000")
	cmd.Env = append([]string{path}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	must(t, cmd.Start())
	pin := pinPID(t, cmd.Process.Pid)
	t.Cleanup(func() {
		kids, _ := proc.Children(pin.pid) // none where it was ended
		for _, kid := range kids {
			pinPID(t, kid).signal(t, syscall.SIGKILL)
		}
		_ = cmd.Process.Kill() // it may have been ended
		_ = cmd.Wait()         // killed
		reapAdopted(t)
	})
	held, err := proc.PinPID(pin.pid)
	must(t, err)
	defer proc.CloseFD(held.FD)
	record, err := held.Identity()
	must(t, err)
	return pin, record
}

// A record names its process by pid, start, boot and pidfd inode together: where one of them differs
// the process is a stranger, in each place of the record, and is left alone. The true record is the
// proof that the others are told apart by nothing else.
//
// E-239, E-463
func TestAStrangerInEachPlaceOfARecordIsLeftAlone(t *testing.T) {
	other, boot := uint64(1), "00000000-0000-0000-0000-000000000000"
	changes := []struct {
		name   string
		change func(*execgate.Process)
		ended  bool
	}{
		{"itself", func(*execgate.Process) {}, true},
		{"no inode on record", func(p *execgate.Process) { p.PidfdInode = nil }, true},
		{"earlier start", func(p *execgate.Process) { p.StartTicks-- }, false},
		{"later start", func(p *execgate.Process) { p.StartTicks++ }, false},
		{"other start, no inode on record", func(p *execgate.Process) { p.StartTicks++; p.PidfdInode = nil }, false},
		{"other inode", func(p *execgate.Process) { p.PidfdInode = &other }, false},
		{"other boot", func(p *execgate.Process) { p.BootID = boot }, false},
		{"other boot, no inode on record", func(p *execgate.Process) { p.BootID = boot; p.PidfdInode = nil }, false},
	}
	dead := gated(t, "true")
	gone := dead.c.Process()
	must(t, dead.c.Abandon(bounded(t)))
	for place, put := range map[string]func(execgate.Process) execgate.Process{
		"process": func(p execgate.Process) execgate.Process { return p },
		"keeper": func(p execgate.Process) execgate.Process {
			q := gone
			q.Keeper = &p
			return q
		},
		"warden": func(p execgate.Process) execgate.Process {
			q, k := gone, *gone.Keeper
			k.Keeper = &p
			q.Keeper = &k
			return q
		},
	} {
		for _, c := range changes {
			t.Run(place+"/"+c.name, func(t *testing.T) {
				stranger, record := forged(t)
				if record.PidfdInode == nil && c.name == "other inode" {
					t.Skip("pidfds have no inode of their own on this kernel")
				}
				c.change(&record)
				e, err := execgate.EndRecorded(bounded(t), put(record), "", execgate.Grace{})
				want := execgate.HowGone
				if c.ended {
					want = execgate.HowRecovered
				}
				if err != nil || e.How != want {
					t.Errorf("got %+v, %v, want %s", e, err, want)
				}
				if c.ended {
					stranger.mustBeGone(t)
				} else {
					stranger.mustLive(t)
				}
			})
		}
	}
}

// After a reboot nothing of a record is looked for, not even by its mark: whoever carries it was
// started later, by somebody who was told the name.
func TestARecordOfAnotherBootIsGoneWithItsMark(t *testing.T) {
	stranger, record := forged(t, "GREATMINDS_MARK="+t.Name())
	record.BootID = "00000000-0000-0000-0000-000000000000"
	e, err := execgate.EndRecorded(bounded(t), record, t.Name(), execgate.Grace{})
	if err != nil || e.How != execgate.HowGone || e.Ended != 0 {
		t.Errorf("got %+v, %v, want gone", e, err)
	}
	stranger.mustLive(t)
}
