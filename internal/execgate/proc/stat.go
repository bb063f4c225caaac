package proc

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

// Stat is the part of /proc/PID/stat that identifies a process and places it in a tree.
type Stat struct {
	PID, Parent, Group, Session int
	// State is one letter, 'Z' for a zombie.
	State byte
	// Start is field 22: clock ticks after boot, with a grain of 10 ms.
	Start uint64
}

var errStatForm = errors.New("malformed /proc stat line")

// ParseStat reads one line of /proc/PID/stat. The command name in it is chosen by the process
// and may hold spaces, brackets and line ends, so the last bracket counts.
func ParseStat(line []byte) (Stat, error) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 1 || end < open {
		return Stat{}, errStatForm
	}
	fields := strings.Fields(string(line[end+1:]))
	if len(fields) < 20 || len(fields[0]) != 1 {
		return Stat{}, errStatForm
	}
	st := Stat{State: fields[0][0]}
	for _, f := range []struct {
		to   *int
		text string
	}{
		{&st.PID, strings.TrimSpace(string(line[:open]))},
		{&st.Parent, fields[1]}, {&st.Group, fields[2]}, {&st.Session, fields[3]},
	} {
		n, err := strconv.Atoi(f.text)
		if err != nil || strconv.Itoa(n) != f.text { // the kernel writes neither signs nor zeros before
			return Stat{}, errStatForm
		}
		*f.to = n
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil || st.PID <= 0 || st.Parent < 0 {
		return Stat{}, errStatForm
	}
	st.Start = start
	return st, nil
}

// ReadStat reads the line of the process that has this pid now.
func ReadStat(pid int) (Stat, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Stat{}, err
	}
	st, err := ParseStat(data)
	if err != nil {
		return Stat{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	return st, nil
}

// Children lists the direct children of pid, zombies included. The kernel may leave one out
// while others exit, so a single empty answer is no proof.
func Children(pid int) ([]int, error) {
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
	all, err := All()
	if err != nil {
		return nil, err
	}
	var found []int
	for _, candidate := range all {
		if st, err := ReadStat(candidate); err == nil && st.Parent == pid {
			found = append(found, candidate)
		}
	}
	return found, nil
}

// All lists every pid that /proc shows.
func All() ([]int, error) {
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

// BootID is the kernel's name for this boot.
var BootID = sync.OnceValues(func() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data)), err
})

// MarkOf returns the launch's mark in the environment that pid was exec'd with, "" without one.
// Only processes of our own uid can be read.
func MarkOf(pid int) (string, error) { return VariableOf(pid, entry.MarkName) }

// VariableOf returns a variable of the environment that pid was exec'd with, "" without one.
// Only processes of our own uid can be read.
func VariableOf(pid int, name string) (string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return "", err
	}
	for variable := range bytes.SplitSeq(data, []byte{0}) {
		if value, ok := bytes.CutPrefix(variable, []byte(name+"=")); ok {
			return string(value), nil
		}
	}
	return "", nil
}
