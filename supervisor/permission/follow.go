package permission

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

const (
	// maxPathBytes is the longest path that the kernel takes.
	maxPathBytes = 4095
	// maxLinks is how many symlinks the kernel follows in one path.
	maxLinks = 40
)

// found is where a path leads. info is nil where nothing stands there.
type found struct {
	path string
	info os.FileInfo
}

// Why a path is not followed to its end.
var (
	errLinks   = errors.New("too many symlinks")
	errMissing = errors.New("a folder that is left again does not exist")
	errProcess = errors.New("it leads through /proc, which is another place for each process")
)

// follow walks an absolute path as the kernel does: link by link, ".." last. Of what does not exist
// it says where it would come to be, a dangling link's target included.
func follow(path string) (found, error) {
	at, left, seen := found{path: "/"}, strings.Split(path, "/"), 0
	missing := false
	for len(left) > 0 {
		part := left[0]
		left = left[1:]
		switch {
		case part == "" || part == ".":
			continue
		case part == ".." && missing:
			return at, errMissing
		case part == "..":
			at = found{path: filepath.Dir(at.path)}
			continue
		}
		next := filepath.Join(at.path, part)
		if next == "/proc" {
			return at, errProcess
		}
		if missing {
			at = found{path: next}
			continue
		}
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing, at = true, found{path: next}
		case err != nil:
			return at, err
		case info.Mode()&fs.ModeSymlink == 0:
			at = found{path: next, info: info}
		default:
			target, err := os.Readlink(next)
			if seen++; err != nil || seen > maxLinks {
				return at, errors.Join(err, errLinks)
			}
			if filepath.IsAbs(target) {
				at = found{path: "/"}
			}
			left = append(strings.Split(target, "/"), left...)
		}
	}
	if at.info == nil && !missing { // it ended on a ".." or is the root
		info, err := os.Lstat(at.path)
		if err != nil {
			return at, err
		}
		at.info = info
	}
	return at, nil
}

// fromURI is the path of a file URL without its scheme; not ok for another host, and for what is no URL.
func fromURI(rest string) (string, bool) {
	u, err := url.Parse("file:" + rest)
	if err != nil || u.Host != "" && u.Host != "localhost" || u.Path == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", false
	}
	return u.Path, true
}
