package execgate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"greatminds/internal/execgate/entry"
)

// procStat is the part of /proc/PID/stat that identifies a process and places it in a tree.
type procStat struct {
	pid, parent, group, session int
	state                       byte
	// start is field 22: clock ticks after boot, with a grain of 10 ms.
	start uint64
}

var errStatForm = errors.New("malformed /proc stat line")

// parseStat reads one line of /proc/PID/stat. The command name in it is chosen by the process
// and may hold spaces, brackets and line ends, so the last bracket counts.
func parseStat(line []byte) (procStat, error) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 1 || end < open {
		return procStat{}, errStatForm
	}
	fields := strings.Fields(string(line[end+1:]))
	if len(fields) < 20 || len(fields[0]) != 1 {
		return procStat{}, errStatForm
	}
	st := procStat{state: fields[0][0]}
	for _, f := range []struct {
		to   *int
		text string
	}{
		{&st.pid, strings.TrimSpace(string(line[:open]))},
		{&st.parent, fields[1]}, {&st.group, fields[2]}, {&st.session, fields[3]},
	} {
		n, err := strconv.Atoi(f.text)
		if err != nil {
			return procStat{}, errStatForm
		}
		*f.to = n
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil || st.pid <= 0 || st.parent < 0 {
		return procStat{}, errStatForm
	}
	st.start = start
	return st, nil
}

func readStat(pid int) (procStat, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, err
	}
	st, err := parseStat(data)
	if err != nil {
		return procStat{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	return st, nil
}

// children lists the direct children of pid, zombies included. The kernel may leave one out
// while others exit, so a single empty answer is no proof.
func children(pid int) ([]int, error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []int
	for _, thread := range threads {
		data, err := os.ReadFile(dir + "/" + thread.Name() + "/children")
		if errors.Is(err, os.ErrNotExist) {
			if childrenFile() {
				continue // the thread ended, its children moved to another one
			}
			return childrenByScan(pid)
		}
		if err != nil {
			return nil, err
		}
		for _, field := range strings.Fields(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				found = append(found, child)
			}
		}
	}
	return found, nil
}

// childrenFile says whether this kernel was built with /proc/PID/task/TID/children.
var childrenFile = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/thread-self/children")
	return err == nil
})

// childrenByScan finds children by their parent's pid, where the kernel keeps no list.
func childrenByScan(pid int) ([]int, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	var found []int
	for _, candidate := range all {
		if st, err := readStat(candidate); err == nil && st.parent == pid {
			found = append(found, candidate)
		}
	}
	return found, nil
}

// processes lists every pid that /proc shows.
func processes() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // only read from
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// bootID is the kernel's name for this boot.
var bootID = sync.OnceValues(func() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data)), err
})

// markOf returns the mark in the environment that pid was exec'd with, "" without one. Only
// processes of our own uid can be read.
func markOf(pid int) (string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return "", err
	}
	for variable := range bytes.SplitSeq(data, []byte{0}) {
		if value, ok := bytes.CutPrefix(variable, []byte(entry.MarkName+"=")); ok {
			return string(value), nil
		}
	}
	return "", nil
}
