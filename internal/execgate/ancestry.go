package execgate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"greatminds/internal/execgate/proc"
)

// ancestry lists what this process descends from, nearest first, as far up as /proc shows it. An
// ancestor's pid stays its own for as long as it is one, and nobody but a subreaper further up takes
// the place of one that ends.
func ancestry() []proc.Stat {
	var line []proc.Stat
	for pid := os.Getppid(); pid > 0 && len(line) < maxDescent; {
		st, err := proc.ReadStat(pid)
		if err != nil {
			break
		}
		line, pid = append(line, st), st.Parent
	}
	return line
}

// isAncestor says whether a pinned process is in the line.
func isAncestor(line []proc.Stat, pin proc.Pin) bool {
	return slices.ContainsFunc(line, func(st proc.Stat) bool {
		return st.PID == pin.Stat.PID && st.Start == pin.Stat.Start
	})
}

// checkOutside refuses to end a tree that this process was started from: it would end itself half-way.
// A daemon gets there when an agent starts it.
func checkOutside(p Process, mark, group string) error {
	inside := func(st proc.Stat) error {
		return fmt.Errorf("%w: pid %d, which this process descends from: start it from outside of what is to be ended", ErrSurvivors, st.PID)
	}
	for _, st := range ancestry() {
		for _, record := range recordsOf(p) {
			if st.PID == record.PID && st.Start == record.StartTicks {
				return inside(st)
			}
		}
		if m, err := proc.MarkOf(st.PID); err == nil && mark != "" && m == mark {
			return inside(st)
		}
	}
	if group == "" {
		return nil
	}
	if own, err := os.ReadFile("/proc/self/cgroup"); err == nil && strings.Contains(string(own), "/"+filepath.Base(group)) {
		return fmt.Errorf("%w: this process is in the cgroup %s: start it from outside of what is to be ended", ErrSurvivors, group)
	}
	return nil
}
