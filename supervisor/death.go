package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
)

// What is known of an agent that was not started, or that died by itself: the system's own words, its exit
// status or signal, and the limits of the machine that such deaths come from. None of it is text of the
// agent.

// minFree is the room, in bytes, below which a file system counts as full.
const minFree = 1 << 20

// limitHints say which limit an errno of a start mostly comes from.
var limitHints = map[syscall.Errno]string{
	syscall.EAGAIN: "the number of processes and threads is limited: see ulimit -u of the daemon's user, TasksMax of its service, pids.max of its cgroup",
	syscall.ENOMEM: "there is not enough memory, or its cgroup limits it (memory.max)",
	syscall.EMFILE: "the daemon may open no more files: see ulimit -n, LimitNOFILE of its service",
	syscall.ENFILE: "the machine has no more open files to give: see fs.file-max",
	syscall.ENOSPC: "the disk is full",
}

// notStarted ends a run whose agent the machine did not start.
func (e *execution) notStarted(err error) ending {
	end := e.failed(transportFailure, "OSError", err)
	if e.outcome.what == "" {
		e.outcome.what = "the agent was not started: " + limitWords(err)
	}
	return end
}

// noWorkspace ends a run whose workspace could not be prepared: mostly for what a refusal names and a
// person mends, but where the machine only had no process to give, time may mend it as it does a start.
func (e *execution) noWorkspace(err error) ending {
	var errno syscall.Errno
	reason, kind := configurationError, "WorkspaceError"
	if _, refused := refusal.Find(err); !refused && (errors.Is(err, execgate.ErrGateLost) || errors.As(err, &errno) && slices.Contains(passing, errno)) {
		reason, kind = transportFailure, "OSError"
	}
	end := e.failed(reason, kind, err)
	if e.outcome.what == "" {
		e.outcome.what = "the workspace was not prepared: " + limitWords(err)
	}
	return end
}

// limitWords is an error of the system, with the limit that it mostly comes from.
func limitWords(err error) string {
	what := err.Error()
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno) && limitHints[errno] != "":
		what += "; " + limitHints[errno]
	case errors.Is(err, execgate.ErrGateLost):
		what += "; processes of ours ended before it, mostly for a limit of processes or memory: see ulimit -u, TasksMax, and the kernel's log"
	}
	return what
}

// explain adds to a failure what is known by now of how the agent's process ended, and whether its
// workspace has room. It is called once, when the tree has been ended.
func (e *execution) explain(end ending) {
	if end.state != runstore.Failed {
		return
	}
	why := []string{e.outcome.what}
	if end.reason == transportFailure && e.session != nil && e.died.Known && e.died.How == execgate.HowExited {
		why = append(why, deathWords(e.died, oomKills()-e.oomKills))
	}
	if e.workspace != "" {
		why = append(why, fullWords(e.workspace))
	}
	why = slices.DeleteFunc(why, func(s string) bool { return s == "" })
	e.outcome.what = strings.Join(why, "; ")
}

// deathWords says how a process ended by itself. starved is how many processes the kernel has killed
// for want of memory since it was started.
func deathWords(died execgate.Ending, starved uint64) string {
	if died.Signal == 0 {
		return fmt.Sprintf("its process ended with exit status %d", died.Code)
	}
	name := unix.SignalName(died.Signal)
	if name == "" {
		name = "signal " + strconv.Itoa(int(died.Signal))
	}
	words := "its process was killed by " + name + ", which the supervisor did not send"
	if died.Signal == syscall.SIGKILL && starved > 0 {
		words += fmt.Sprintf("; since it was started the kernel has killed for want of memory (%d processes): see the kernel's log, and memory.max of its cgroup", starved)
	}
	return words
}

// oomKills is how many processes the kernel has killed for want of memory since the machine was
// started, of a cgroup too; 0 where it does not say.
func oomKills() uint64 {
	data, _ := os.ReadFile("/proc/vmstat") // nothing of it says nothing
	return oomKillsIn(data)
}

func oomKillsIn(data []byte) uint64 {
	for line := range bytes.Lines(data) {
		if count, ok := strings.CutPrefix(string(line), "oom_kill "); ok {
			n, _ := strconv.ParseUint(strings.TrimSpace(count), 10, 64) // no number is no count
			return n
		}
	}
	return 0
}

// fullWords says that the file system of a folder is full; empty where it has room, or cannot be asked.
func fullWords(dir string) string {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return ""
	}
	switch free := int64(st.Bavail) * st.Bsize; {
	case st.Blocks > 0 && free < minFree:
		return fmt.Sprintf("the disk of its workspace is full (%d bytes left)", free)
	case st.Files > 0 && st.Ffree == 0:
		return "the disk of its workspace can hold no more files"
	}
	return ""
}
