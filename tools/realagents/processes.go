package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// lookPause is the time between two looks at the processes.
const lookPause = 50 * time.Millisecond

// process is one process as /proc shows it.
type process struct {
	pid  int
	argv []string
}

// tagged lists those that carry the run's id in their environment, as an agent and all that it
// starts do. Some programs write over the place where it stands: descendants finds these.
func tagged(run string) []process {
	return matching(func(environ, _ []byte) bool { return bytes.Contains(environ, []byte("GREATMINDS_RUN_ID="+run+"\x00")) })
}

// naming lists the processes that name the folder in their environment or their arguments.
func naming(folder string) []process {
	return matching(func(environ, cmdline []byte) bool {
		return bytes.Contains(environ, []byte(folder)) || bytes.Contains(cmdline, []byte(folder))
	})
}

func matching(fits func(environ, cmdline []byte) bool) []process {
	var out []process
	for _, pid := range pids() {
		// A process may end, or belong to somebody else, while we look.
		environ, _ := os.ReadFile(procFile(pid, "environ"))
		cmdline, _ := os.ReadFile(procFile(pid, "cmdline"))
		if len(cmdline) > 0 && fits(environ, cmdline) {
			out = append(out, process{pid, argvOf(cmdline)})
		}
	}
	return out
}

// descendants lists the living processes below one, wherever their sessions are.
func descendants(of int) []process {
	parents := map[int]int{}
	for _, pid := range pids() {
		if state, parent := stateOf(pid); state != 'Z' && state != 'X' {
			parents[pid] = parent
		}
	}
	var out []process
	for pid := range parents {
		for p, steps := parents[pid], 0; p > 1 && steps < len(parents); p, steps = parents[p], steps+1 {
			if p != of {
				continue
			}
			cmdline, _ := os.ReadFile(procFile(pid, "cmdline"))
			if len(cmdline) > 0 {
				out = append(out, process{pid, argvOf(cmdline)})
			}
			break
		}
	}
	return out
}

func pids() []int {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		panic("realagents: a constant pattern is wrong: " + err.Error())
	}
	out := make([]int, 0, len(folders))
	for _, folder := range folders {
		if pid, err := strconv.Atoi(filepath.Base(folder)); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

func procFile(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

func argvOf(cmdline []byte) []string {
	return strings.Split(strings.TrimSuffix(string(cmdline), "\x00"), "\x00")
}

// stateOf is the state of a process, X for one that is gone, and its parent.
func stateOf(pid int) (state byte, parent int) {
	stat, err := os.ReadFile(procFile(pid, "stat"))
	after := bytes.LastIndexByte(stat, ')') // the name before may hold anything
	if err != nil || after < 0 {
		return 'X', 0
	}
	words := bytes.Fields(stat[after+1:])
	if len(words) < 2 {
		return 'X', 0
	}
	parent, err = strconv.Atoi(string(words[1]))
	if err != nil {
		return 'X', 0
	}
	return words[0][0], parent
}

// supervisors are the processes that stand between a daemon and what it starts, and git, which it
// calls itself.
var supervisors = []string{"greatminds-keeper", "greatminds-warden", "git"}

// left are the processes that a run's end, or a daemon's, should not have left: all below this
// program but for the supervisor's.
func left(own string, also []process) []process {
	all := append(descendants(os.Getpid()), also...)
	return slices.DeleteFunc(all, func(p process) bool {
		return p.argv[0] == own || slices.Contains(supervisors, filepath.Base(p.argv[0]))
	})
}

// names are the programs of the processes, sorted, each once.
func names(all []process) string {
	var out []string
	for _, p := range all {
		out = append(out, filepath.Base(p.argv[0]))
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

// running looks for a process of the run with these arguments.
func running(run string, argv []string) bool {
	return slices.ContainsFunc(tagged(run), func(p process) bool { return slices.Equal(p.argv, argv) })
}

// await looks again and again until the condition holds, and returns false when ctx ends first.
func await(ctx context.Context, condition func() bool) bool {
	tick := time.NewTicker(lookPause)
	defer tick.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// killTree kills the agent's process and all that it started, but for those of our own program:
// they are the supervisor's. It returns how many it killed.
func killTree(run string, agent int, own string) int {
	killed := 0
	for {
		tree := append(descendants(agent), tagged(run)...)
		if cmdline, err := os.ReadFile(procFile(agent, "cmdline")); err == nil && len(cmdline) > 0 {
			tree = append(tree, process{agent, argvOf(cmdline)})
		}
		tree = slices.DeleteFunc(tree, func(p process) bool {
			state, _ := stateOf(p.pid)
			return p.argv[0] == own || slices.Contains(supervisors, p.argv[0]) || state == 'Z' || state == 'X'
		})
		if len(tree) == 0 {
			return killed
		}
		for _, p := range tree {
			// It may have ended by itself; then there is nobody to kill.
			if one, err := os.FindProcess(p.pid); err == nil && one.Kill() == nil {
				killed++
			}
		}
	}
}
