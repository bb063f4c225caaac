package entry

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestLookPath(t *testing.T) {
	root := t.TempDir()
	for _, f := range []struct {
		name string
		mode os.FileMode
	}{{"first/tool", 0o644}, {"second/tool", 0o755}, {"here", 0o755}, {"first/only", 0o600}} {
		path := filepath.Join(root, f.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, f.mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "second", "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := "PATH=" + root + "/first:" + root + "/second:"
	for _, c := range []struct {
		name, program, dir string
		env                []string
		want               string
		errno              syscall.Errno
	}{
		{"passes over what is not executable", "tool", "/", []string{path}, root + "/second/tool", 0},
		{"an empty entry is the folder", "here", root, []string{path}, root + "/./here", 0},
		{"a slash stands for itself", "./here", root, []string{path}, root + "/./here", 0},
		{"absolute", "/x/y", root, nil, "/x/y", 0},
		{"found but not executable", "only", "/", []string{path}, "only", syscall.EACCES},
		{"a folder is no program", "folder", "/", []string{path}, "folder", syscall.ENOENT},
		{"nowhere", "nothing", "/", []string{path}, "nothing", syscall.ENOENT},
		{"the first PATH counts", "tool", "/", []string{"PATH=/none", path}, "tool", syscall.ENOENT},
		{"no PATH has a default", "sh", "/", nil, "/bin/sh", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, errno := LookPath(c.program, c.dir, c.env)
			if got != c.want || errno != c.errno {
				t.Errorf("got %s, %v, want %s, %v", got, errno, c.want, c.errno)
			}
		})
	}
}
