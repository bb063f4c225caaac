package supervisor

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"greatminds/internal/durable"
)

// holder is who holds a lock of the project's. The kernel knows it; the text in the file is only
// a hint, which the original takes back when it lets go.
type holder struct {
	// pid is 0 where nobody knows it.
	pid int
	// argv is the process's command line; empty where it cannot be read.
	argv []string
	// ending is set where the process has given its memory up and not yet its locks.
	ending bool
	// ours is set where the lock's text is that of the process which holds it, as we and the
	// original write it.
	ours bool
	// cli is set where it said to hold the lock for one operation only.
	cli bool
}

// holderOf finds out who holds a lock.
func holderOf(held *durable.Held) holder {
	h := holder{pid: held.PID, cli: strings.Contains(held.Holder, holderCLI)}
	if pid := kernelHolder(held.Path, held.PID); pid > 0 {
		h.pid = pid
	}
	if h.pid == 0 {
		return h
	}
	h.ours = h.pid == held.PID
	h.cli = h.cli && h.ours
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", h.pid))
	if err != nil || len(text) == 0 {
		h.ending = err == nil
		return h // it has ended, or is of another pid namespace
	}
	h.argv = strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	return h
}

// original tells the Python original: an interpreter with the script or a module of greatminds.
func (h holder) original() bool {
	if len(h.argv) < 2 || !strings.HasPrefix(filepath.Base(h.argv[0]), "python") {
		return false
	}
	for _, arg := range h.argv[1:] {
		if filepath.Base(arg) == "greatminds" || strings.HasPrefix(arg, "greatminds.") {
			return true
		}
	}
	return false
}

// daemon tells the original's daemon, which keeps the lock, from its commands, which soon let go.
func (h holder) daemon() bool {
	for _, arg := range h.argv {
		if arg == "coordd" || arg == "greatminds.runtime.background" {
			return true
		}
	}
	return false
}

// String names the process as far as it is known.
func (h holder) String() string {
	const shown = 120
	switch {
	case h.pid == 0:
		return "pid unknown"
	case len(h.argv) == 0:
		return fmt.Sprintf("pid %d", h.pid)
	}
	command := strings.Join(h.argv, " ")
	if len(command) > shown {
		command = command[:shown] + "…"
	}
	return fmt.Sprintf("pid %d, `%s`", h.pid, strings.Map(printable, command))
}

func printable(c rune) rune {
	if c < ' ' || c == 0x7f {
		return '?'
	}
	return c
}

// kernelHolder is the process that holds the exclusive flock of a file by /proc/locks, 0 where
// that does not tell. Of several files with the inode's number on different devices, the one that
// the text names is taken.
func kernelHolder(path string, said int) int {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return 0
	}
	data, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	var pids []int
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		// N: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF
		f := strings.Fields(lines.Text())
		if len(f) < 6 || f[1] != "FLOCK" || f[3] != "WRITE" || !strings.HasSuffix(f[5], fmt.Sprintf(":%d", st.Ino)) {
			continue
		}
		pid, err := strconv.Atoi(f[4])
		if err != nil || pid <= 0 {
			continue
		}
		if pid == said || f[5] == fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino) {
			return pid
		}
		pids = append(pids, pid)
	}
	if len(pids) == 1 {
		return pids[0]
	}
	return 0
}
