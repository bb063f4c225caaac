package execgate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// cgroup is one group of a delegated cgroup v2 tree, which holds one launch. It finishes what
// signals cannot: a tree that forks faster than it is killed. A nil *cgroup does nothing, which
// is the usual case: without delegation the keeper alone ends the tree.
type cgroup struct {
	dir string
	fd  int
}

// delegatedCgroup is the folder below which groups may be made, or "".
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

// groupName is derived from the mark, so that a restart finds the group of a recorded launch.
func groupName(mark string) string {
	sum := sha256.Sum256([]byte(mark))
	return "greatminds-" + hex.EncodeToString(sum[:8])
}

// newCgroup makes the group of a launch, or returns nil where that is not possible.
func newCgroup(parent, mark string) *cgroup {
	if parent == "" || mark == "" {
		return nil
	}
	dir := filepath.Join(parent, groupName(mark))
	// An empty one may be left of a keeper that was killed; one in use is not ours.
	_ = unix.Rmdir(dir)
	if unix.Mkdir(dir, 0o755) != nil {
		return nil
	}
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	// cgroup.kill is from Linux 5.14; without it the group serves nothing.
	if err == nil && unix.Faccessat(fd, "cgroup.kill", unix.W_OK, 0) != nil {
		closeFD(fd)
		err = unix.ENOSYS
	}
	if err != nil {
		_ = unix.Rmdir(dir) // made and still empty
		return nil
	}
	return &cgroup{dir: dir, fd: fd}
}

// enter makes the process that is started next a member from its first instruction.
func (g *cgroup) enter(attr *syscall.SysProcAttr) {
	if g != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, g.fd
	}
}

func (g *cgroup) path() string {
	if g == nil {
		return ""
	}
	return g.dir
}

// kill sends SIGKILL to every member at once.
func (g *cgroup) kill() {
	if g != nil {
		killGroup(g.dir)
	}
}

// remove takes the empty group away; one that holds a survivor stays.
func (g *cgroup) remove() {
	if g != nil {
		closeFD(g.fd)
		_ = unix.Rmdir(g.dir)
	}
}

// killGroup is best effort: whether anything is left is proven elsewhere.
func killGroup(dir string) {
	if dir != "" {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
	}
}
