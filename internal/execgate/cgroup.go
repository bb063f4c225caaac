package execgate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate/proc"
)

// delegatedCgroup is the folder below which groups may be made, or "". A group of its own for each
// launch finishes what signals cannot: a tree that forks faster than it is killed. Without
// delegation, which is the usual case, the keeper alone ends the tree.
var delegatedCgroup = sync.OnceValue(func() string {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(own) {
		path, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "0::")
		if !ok {
			continue
		}
		for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
			if dir := filepath.Join(mount, path); isDelegated(dir) {
				return dir
			}
		}
	}
	return ""
})

// isDelegated says whether the folder is a cgroup v2 whose manager gave it to us: by its owner,
// or by the attribute that systemd sets. Root could write anywhere, and must not.
func isDelegated(dir string) bool {
	var fs unix.Statfs_t
	var st unix.Stat_t
	if unix.Statfs(dir, &fs) != nil || int64(fs.Type) != unix.CGROUP2_SUPER_MAGIC || unix.Stat(dir, &st) != nil {
		return false
	}
	if uid := os.Geteuid(); uid != 0 && int(st.Uid) == uid {
		return true
	}
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// groupOf is the cgroup of the launch with this mark, or "" without delegation or mark. Being
// derived from the mark, it can be found again after a restart.
func groupOf(mark string) string {
	parent := delegatedCgroup()
	if parent == "" || mark == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(mark))
	return filepath.Join(parent, "greatminds-"+hex.EncodeToString(sum[:8]))
}

// grouped pins the members of a launch's cgroup and hands each to found at once: those that left no other
// trace are found so, and an empty group is the proof that none is left. "" has no members.
func grouped(dir string, found func(proc.Pin)) []proc.Pin {
	if dir == "" {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil // no such group
	}
	var pins []proc.Pin
	for field := range bytes.FieldsSeq(data) {
		pid, err := strconv.Atoi(string(field))
		if err != nil || pid == 0 { // 0 is a process outside of our namespace
			continue
		}
		pin, err := proc.PinPID(pid)
		if err != nil {
			continue
		}
		// Read under the pin: the pid may have been given to another process since.
		line, err := os.ReadFile("/proc/" + string(field) + "/cgroup")
		if err != nil || !bytes.Contains(line, []byte("/"+filepath.Base(dir)+"\n")) || !proc.Alive(pin.FD) {
			proc.CloseFD(pin.FD)
			continue
		}
		found(pin)
		pins = append(pins, pin)
	}
	return pins
}
