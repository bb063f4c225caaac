package durable

import (
	"errors"
	"os"
	"testing"

	"github.com/gofrs/flock"
)

// A lock on a file that is not the one under its name any more excludes nobody.
func TestALockOnAReplacedFileIsNone(t *testing.T) {
	for name, swap := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", []byte("other"), 0o600), os.Rename(path+".new", path))
		},
	} {
		path := t.TempDir() + "/x.lock"
		l := flock.New(path)
		if ok, err := l.TryLock(); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if err := writeHolder(l, path, "1\n"); err != nil {
			t.Errorf("untouched: %v", err)
		}
		if err := swap(path); err != nil {
			t.Fatal(err)
		}
		if err := writeHolder(l, path, "2\n"); !errors.Is(err, errReplaced) {
			t.Errorf("%s: got %v, want errReplaced", name, err)
		}
		if got, err := os.ReadFile(path); err == nil && string(got) != "other" {
			t.Errorf("%s: the other file was written to: %q", name, got)
		}
		if err := l.Unlock(); err != nil {
			t.Error(err)
		}
	}
}
