package execgate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
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
