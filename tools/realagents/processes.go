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

// processes lists those that carry the run's id in their environment, as an agent and all that it
// starts do. Without a run it is those that name the folder in environment or arguments.
func processes(run, folder string) []process {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		panic("realagents: a constant pattern is wrong: " + err.Error())
	}
	var out []process
	for _, file := range files {
		// A process may end, or belong to somebody else, while we look.
		environ, _ := os.ReadFile(file)
		cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		fits := bytes.Contains(environ, []byte("GREATMINDS_RUN_ID="+run+"\x00"))
		if run == "" {
			fits = bytes.Contains(environ, []byte(folder)) || bytes.Contains(cmdline, []byte(folder))
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && fits && len(cmdline) > 0 {
			out = append(out, process{pid, strings.Split(strings.TrimSuffix(string(cmdline), "\x00"), "\x00")})
		}
	}
	return out
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
	return slices.ContainsFunc(processes(run, ""), func(p process) bool { return slices.Equal(p.argv, argv) })
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

// killTree kills the agent and all that it started, but for those of our own program: they are
// the supervisor's. It returns how many it killed.
func killTree(run, own string) int {
	killed := 0
	for {
		left := slices.DeleteFunc(processes(run, ""), func(p process) bool { return p.argv[0] == own || ended(p.pid) })
		if len(left) == 0 {
			return killed
		}
		for _, p := range left {
			// It may have ended by itself; then there is nobody to kill.
			if one, err := os.FindProcess(p.pid); err == nil && one.Kill() == nil {
				killed++
			}
		}
	}
}

// ended says that a process is gone, or that only its parent has still to hear of its end.
func ended(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return true
	}
	after := bytes.LastIndexByte(stat, ')') // the name before may hold anything
	return after >= 0 && len(stat) > after+2 && (stat[after+2] == 'Z' || stat[after+2] == 'X')
}
