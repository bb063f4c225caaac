package ops

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"greatminds/supervisor/audit"
)

// DiskUse is what the runtime folder takes, in bytes of the disk, and what is left.
type DiskUse struct {
	// Parts are the uses: snapshot, journal, history, contracts, artifacts (captured output of
	// commands), activity (what agents were seen doing), worktrees, and tasks (everything else in the runtime folder).
	Parts []DiskPart `json:"parts"`
	Total int64      `json:"total_bytes"`
	// Free is what an ordinary user can still write, of a file system of Size bytes; both are null
	// where that cannot be told.
	Free *int64 `json:"free_bytes"`
	Size *int64 `json:"size_bytes"`
}

// DiskPart is one use.
type DiskPart struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Disks with less than this to spare are warned of: a checkout for a task, or a snapshot, may
// need it at once. Small ones are warned of at a tenth of their size.
const (
	lowSpace  = 1 << 30
	lowInodes = 1000
)

// partOf says which part a path below the runtime folder belongs to.
func partOf(rel string) string {
	inStore, ok := strings.CutPrefix(rel, ".runtime/")
	switch first, _, _ := strings.Cut(inStore, "/"); {
	case !ok:
		return "tasks"
	case first == "state.json":
		return "snapshot"
	case strings.HasPrefix(first, "journal"):
		return "journal"
	case strings.HasPrefix(first, "history"):
		return "history"
	case first == "contracts", first == "activity":
		return first
	case first == "command-output":
		return "artifacts"
	}
	return "tasks"
}

// disk measures the runtime folder and the worktrees, and warns before the disk is full.
func (d *doctor) disk() *DiskUse {
	sums := map[string]int64{}
	err := walkSizes(d.Project.Runtime, func(rel string, size int64) { sums[partOf(rel)] += size })
	if err == nil {
		err = walkSizes(d.Project.WorktreesDir(), func(_ string, size int64) { sums["worktrees"] += size })
	}
	if err != nil {
		d.report.add(audit.Finding{Component: "runtime", Code: "disk_use_unknown", Severity: audit.Warning, Place: d.Project.Runtime,
			What: "what the runtime folder takes cannot be told: " + err.Error(), Remedy: "mend what it names"})
	}
	use := &DiskUse{}
	for _, name := range []string{"snapshot", "journal", "history", "contracts", "artifacts", "activity", "worktrees", "tasks"} {
		use.Parts = append(use.Parts, DiskPart{name, sums[name]})
		use.Total += sums[name]
	}
	d.space(use)
	return use
}

// walkSizes reports the allocated size of every file below a folder, which may be missing. What
// goes away meanwhile is left out.
func walkSizes(root string, use func(rel string, size int64)) error {
	return filepath.WalkDir(root, func(full string, e fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := e.Info()
		if os.IsNotExist(err) {
			return nil
		}
		rel, relErr := filepath.Rel(root, full)
		if err != nil || relErr != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			use(filepath.ToSlash(rel), st.Blocks*512)
		}
		return nil
	})
}

// space looks at what the file system has left.
func (d *doctor) space(use *DiskUse) {
	var st unix.Statfs_t
	if err := unix.Statfs(d.Project.Runtime, &st); err != nil {
		return // null says so
	}
	free, size := int64(st.Bavail)*st.Bsize, int64(st.Blocks)*st.Bsize
	use.Free, use.Size = &free, &size
	if f, low := spaceFinding(free, size, st.Ffree, st.Files); low {
		f.Place = d.Project.Runtime
		d.report.add(f)
	}
}

// spaceFinding warns of a disk that is nearly full.
func spaceFinding(free, size int64, freeInodes, inodes uint64) (audit.Finding, bool) {
	f := audit.Finding{Component: "runtime", Code: "disk_nearly_full", Severity: audit.Warning,
		Remedy: "free space before claims stop; the parts of `disk` say what takes it here"}
	switch {
	case size > 0 && free < min(lowSpace, size/10):
		f.What = fmt.Sprintf("the disk has %s of %s left", inUnits(free), inUnits(size))
	case inodes > 0 && freeInodes < lowInodes:
		f.What = fmt.Sprintf("the disk has room for %d more files", freeInodes)
	default:
		return f, false
	}
	return f, true
}

// text is the use in one line.
func (u *DiskUse) text() string {
	if u == nil {
		return ""
	}
	var parts []string
	for _, p := range u.Parts {
		if p.Bytes > 0 {
			parts = append(parts, p.Name+" "+inUnits(p.Bytes))
		}
	}
	line := fmt.Sprintf("Disk: %s (%s)", inUnits(u.Total), strings.Join(parts, ", "))
	if u.Free != nil {
		line += ", " + inUnits(*u.Free) + " free"
	}
	return line + "\n"
}

func inUnits(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}
