package execgate

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// lookPath finds the file that argv[0] names, as execvp does it in the child: a name with a
// slash stands for itself, seen from dir, any other is searched in the PATH of the child's own
// environment. A candidate that exists but may not be executed makes the answer EACCES.
func lookPath(name, dir string, env []string) (string, syscall.Errno) {
	if strings.Contains(name, "/") {
		return seenFrom(dir, name), 0
	}
	fault := syscall.ENOENT
	for _, folder := range filepath.SplitList(pathOf(env)) {
		if folder == "" {
			folder = "."
		}
		file := seenFrom(dir, folder+"/"+name)
		info, err := os.Stat(file)
		if err != nil || info.IsDir() {
			continue
		}
		if unix.Access(file, unix.X_OK) == nil {
			return file, 0
		}
		fault = syscall.EACCES
	}
	return name, fault
}

func seenFrom(dir, name string) string {
	if dir == "" || strings.HasPrefix(name, "/") {
		return name
	}
	return dir + "/" + name
}

// pathOf returns the first PATH, the one that getenv in the child will see.
func pathOf(env []string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			return value
		}
	}
	return ""
}
