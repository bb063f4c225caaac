package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "(none)"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	return got
}

func trace(steps []durable.Step) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteString(string(s.Op) + " ")
	}
	return strings.TrimSpace(b.String())
}

// E-164
func TestEachCallMakesItsDocumentedSteps(t *testing.T) {
	for _, c := range []struct {
		name, want string
		do         func(d *durable.Disk, dir string) error
	}{
		{"replace", "create write sync rename syncdir", func(d *durable.Disk, dir string) error {
			return d.Replace(dir+"/f", []byte("x"), 0o600)
		}},
		{"publish", "create write rename", func(d *durable.Disk, dir string) error {
			return d.Publish(dir+"/f", []byte("x"), 0o600)
		}},
		{"create", "create write sync move syncdir", func(d *durable.Disk, dir string) error {
			return d.Create(dir+"/new", []byte("x"), 0o600)
		}},
		{"rename in one folder", "move syncdir", func(d *durable.Disk, dir string) error {
			return d.Rename(dir+"/f", dir+"/g")
		}},
		{"rename across folders", "move syncdir syncdir", func(d *durable.Disk, dir string) error {
			return d.Rename(dir+"/f", dir+"/sub/g")
		}},
		{"link", "link rename", func(d *durable.Disk, dir string) error { return d.Link(dir+"/f", dir+"/g") }},
		{"link that is there", "link rename unlink", func(d *durable.Disk, dir string) error {
			if err := os.Link(dir+"/f", dir+"/g"); err != nil {
				return err
			}
			return d.Link(dir+"/f", dir+"/g")
		}},
		{"discard", "unlink", func(d *durable.Disk, dir string) error { d.Discard(dir + "/f"); return nil }},
		{"remove", "unlink syncdir", func(d *durable.Disk, dir string) error { return d.Remove(dir + "/f") }},
		{"folders", "syncdir mkdir syncdir mkdir syncdir", func(d *durable.Disk, dir string) error {
			return d.MkdirAll(dir+"/a/b", 0o700)
		}},
		{"folders that are there", "syncdir", func(d *durable.Disk, dir string) error {
			return errors.Join(d.MkdirAll(dir+"/sub", 0o700), d.MkdirAll(dir+"/sub", 0o700))
		}},
		{"folders that went away", "syncdir mkdir syncdir mkdir syncdir", func(d *durable.Disk, dir string) error {
			return errors.Join(d.MkdirAll(dir+"/a", 0o700), os.Remove(dir+"/a"), d.MkdirAll(dir+"/a", 0o700))
		}},
		{"log that is there", "syncdir write sync", func(d *durable.Disk, dir string) error {
			for range 2 {
				l, err := d.OpenLog(dir+"/f", 0o600)
				if err != nil {
					return err
				}
				if err := l.Close(); err != nil {
					return err
				}
			}
			l, err := d.OpenLog(dir+"/f", 0o600)
			if err != nil {
				return err
			}
			return errors.Join(l.Append([]byte("x")), l.Close())
		}},
		{"settle", "sync syncdir", func(d *durable.Disk, dir string) error { return d.Settle(dir + "/f") }},
		{"new log", "create syncdir write sync", func(d *durable.Disk, dir string) error {
			l, err := d.OpenLog(dir+"/log", 0o600)
			if err != nil {
				return err
			}
			return errors.Join(l.Append([]byte("line\n")), l.Close())
		}},
		{"named", "step", func(d *durable.Disk, dir string) error {
			return d.Step("gate", func() error { return nil })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir+"/f", "old")
			if err := os.Mkdir(dir+"/sub", 0o700); err != nil {
				t.Fatal(err)
			}
			fd := faultdisk.New()
			if err := c.do(fd.Disk(), dir); err != nil {
				t.Fatal(err)
			}
			if got := trace(fd.Steps()); got != c.want {
				t.Errorf("got steps %q, want %q", got, c.want)
			}
			for _, s := range fd.Steps() {
				if s.Op == durable.OpCreate && filepath.Dir(s.Path) != dir {
					t.Errorf("temporary file %s stands in another folder", s.Path)
				}
			}
		})
	}
}

// A second name keeps what a Replace of the first one takes away, and a fault leaves it as it was.
func TestALinkKeepsWhatIsReplaced(t *testing.T) {
	for n := 1; n <= 3; n++ {
		dir := t.TempDir()
		write(t, dir+"/f", "old")
		write(t, dir+"/g", "older")
		fd := faultdisk.New(faultdisk.FailAt(n, syscall.EPERM))
		err := fd.Disk().Link(dir+"/f", dir+"/g")
		want := "f=new g=old"
		if n <= 2 {
			want = "f=new g=older"
		}
		if (err != nil) != (n <= 2) {
			t.Errorf("a fault at step %d gave %v", n, err)
		}
		if err := durable.NewDisk(nil).Replace(dir+"/f", []byte("new"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := contents(t, dir); got != want || len(names(t, dir)) != 2 {
			t.Errorf("after a fault at step %d: got %q in %v, want %q", n, got, names(t, dir), want)
		}
	}
}

// calls are the operations whose outcome must be all or nothing, with what the folder holds
// before and after.
var calls = []struct {
	name          string
	before, after string
	do            func(d *durable.Disk, dir string) error
}{
	{"replace", "f=old", "f=new", func(d *durable.Disk, dir string) error { return d.Replace(dir+"/f", []byte("new"), 0o600) }},
	{"create", "f=old", "f=old g=new", func(d *durable.Disk, dir string) error { return d.Create(dir+"/g", []byte("new"), 0o600) }},
	{"rename", "f=old", "g=old", func(d *durable.Disk, dir string) error { return d.Rename(dir+"/f", dir+"/g") }},
	{"remove", "f=old", "", func(d *durable.Disk, dir string) error { return d.Remove(dir + "/f") }},
}

func contents(t *testing.T, dir string) string {
	t.Helper()
	var parts []string
	for _, n := range names(t, dir) {
		if !strings.HasSuffix(n, ".tmp") {
			parts = append(parts, n+"="+read(t, dir+"/"+n))
		}
	}
	return strings.Join(parts, " ")
}

// everyStep runs do once for each step with the fault that plan makes for it.
func everyStep(t *testing.T, plan func(n int) faultdisk.Fault, do func(fd *faultdisk.FaultDisk, dir string)) int {
	t.Helper()
	for n := 1; ; n++ {
		dir := t.TempDir()
		write(t, dir+"/f", "old")
		fd := faultdisk.New(plan(n))
		do(fd, dir)
		if !fd.Reached() {
			return n - 1
		}
	}
}

// E-165
func TestACrashLeavesBeforeOrAfter(t *testing.T) {
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			for _, plan := range []func(int) faultdisk.Fault{
				faultdisk.CrashAt,
				func(n int) faultdisk.Fault { return faultdisk.TearAt(n, 1) },
			} {
				n := everyStep(t, plan, func(fd *faultdisk.FaultDisk, dir string) {
					err := c.do(fd.Disk(), dir)
					got := contents(t, dir)
					if got != c.before && got != c.after {
						t.Errorf("got %q, want %q or %q", got, c.before, c.after)
					}
					if err == nil && got != c.after {
						t.Errorf("done, but got %q, want %q", got, c.after)
					}
				})
				if n < 2 {
					t.Fatalf("only %d steps were tried", n)
				}
			}
		})
	}
}

// E-167: an error is either a plain "nothing happened" or says that it is uncertain.
func TestAFailureIsEitherUndoneOrCalledUncertain(t *testing.T) {
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			for _, plan := range []func(int) faultdisk.Fault{
				func(n int) faultdisk.Fault { return faultdisk.FailAt(n, syscall.EIO) },
				func(n int) faultdisk.Fault { return faultdisk.ShortAt(n, 2, syscall.ENOSPC) },
			} {
				uncertain := 0
				everyStep(t, plan, func(fd *faultdisk.FaultDisk, dir string) {
					err := c.do(fd.Disk(), dir)
					if fd.Reached() == (err == nil) {
						t.Fatalf("fault reached: %v, error: %v", fd.Reached(), err)
					}
					if err == nil {
						return
					}
					switch got := contents(t, dir); {
					case errors.Is(err, durable.ErrUncertain):
						uncertain++
						if !strings.Contains(err.Error(), "uncertain") {
							t.Errorf("the text does not say so: %v", err)
						}
					case got != c.before:
						t.Errorf("error %v, but got %q, want %q", err, got, c.before)
					}
					for _, n := range names(t, dir) {
						if strings.HasSuffix(n, ".tmp") {
							t.Errorf("%s is left over after %v", n, err)
						}
					}
				})
				if uncertain != 1 {
					t.Errorf("got %d uncertain steps, want one: the folder's sync", uncertain)
				}
			}
		})
	}
}

// A file that is shown while it changes is whole at any moment too, and a failure leaves nothing behind.
func TestWhatIsPublishedIsWholeOrNotThere(t *testing.T) {
	for _, plan := range []func(int) faultdisk.Fault{
		faultdisk.CrashAt,
		func(n int) faultdisk.Fault { return faultdisk.ShortAt(n, 2, syscall.ENOSPC) },
	} {
		n := everyStep(t, plan, func(fd *faultdisk.FaultDisk, dir string) {
			err := fd.Disk().Publish(dir+"/f", []byte("new text"), 0o600)
			got, readErr := os.ReadFile(dir + "/f")
			if readErr != nil || string(got) != "old" && string(got) != "new text" || err == nil && string(got) == "old" {
				t.Errorf("got %q after %v", got, err)
			}
			if left := names(t, dir); err != nil && !fd.Crashed() && len(left) != 1 {
				t.Errorf("%v is left over after %v", left, err)
			}
		})
		if n < 3 {
			t.Fatalf("only %d steps were tried", n)
		}
	}
}

// lateRename lets the rename happen and then reports an error, as a network file system may.
type lateRename struct{}

func (lateRename) Before(durable.Step) error { return nil }
func (lateRename) After(s durable.Step, err error) error {
	if s.Op == durable.OpRename || s.Op == durable.OpMove {
		return syscall.EIO
	}
	return err
}

func TestARenameThatHappenedInSpiteOfItsErrorIsUncertain(t *testing.T) {
	for _, c := range calls[:3] {
		dir := t.TempDir()
		write(t, dir+"/f", "old")
		err := c.do(durable.NewDisk(lateRename{}), dir)
		if !errors.Is(err, durable.ErrUncertain) || !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: got %v, want an uncertain EIO", c.name, err)
		}
	}
}

func TestCreateAndRenameRefuseATakenName(t *testing.T) {
	d := durable.NewDisk(nil)
	for name, taken := range map[string]func(path string) error{
		"file":          func(p string) error { return os.WriteFile(p, []byte("mine"), 0o600) },
		"dangling link": func(p string) error { return os.Symlink("nowhere", p) },
		"folder":        func(p string) error { return os.Mkdir(p, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir+"/f", "old")
			if err := taken(dir + "/g"); err != nil {
				t.Fatal(err)
			}
			if err := d.Create(dir+"/g", []byte("new"), 0o600); !errors.Is(err, fs.ErrExist) {
				t.Errorf("create: got %v, want fs.ErrExist", err)
			}
			if err := d.Rename(dir+"/f", dir+"/g"); !errors.Is(err, fs.ErrExist) {
				t.Errorf("rename: got %v, want fs.ErrExist", err)
			}
			if got := len(names(t, dir)); got != 2 || read(t, dir+"/f") != "old" {
				t.Errorf("got %v, want f and g untouched", names(t, dir))
			}
		})
	}
}

func TestModesAreExactWhateverTheUmask(t *testing.T) {
	for _, mask := range []int{0, 0o077, 0o277} {
		old := syscall.Umask(mask)
		dir := t.TempDir()
		d := durable.NewDisk(nil)
		err := errors.Join(os.Chmod(dir, 0o700),
			d.Replace(dir+"/a", nil, 0o600), d.Create(dir+"/b", nil, 0o644), d.MkdirAll(dir+"/c", 0o700))
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]fs.FileMode{"a": 0o600, "b": 0o644, "c": 0o700} {
			st, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if got := st.Mode().Perm(); got != want {
				t.Errorf("umask %o: %s has mode %o, want %o", mask, name, got, want)
			}
		}
	}
}

func TestMkdirAllRefusesAFileInItsWay(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/f", "old")
	for _, p := range []string{dir + "/f", dir + "/f/g"} {
		if err := durable.NewDisk(nil).MkdirAll(p, 0o700); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("%s: got %v, want ENOTDIR", p, err)
		}
	}
}

func TestANamedStepIsNotRunAfterACrash(t *testing.T) {
	ran := false
	fd := faultdisk.New(faultdisk.CrashAt(1))
	err := fd.Disk().Step("open the gate", func() error { ran = true; return nil })
	if ran || !errors.Is(err, faultdisk.ErrCrashed) {
		t.Fatalf("ran: %v, error: %v", ran, err)
	}
	if err := fd.Disk().Replace(t.TempDir()+"/f", nil, 0o600); !errors.Is(err, faultdisk.ErrCrashed) {
		t.Fatalf("a later step: got %v, want ErrCrashed", err)
	}
}

// A project may stand in a folder that its user cannot list, as homes do on shared machines.
func TestMkdirAllBelowAFolderThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	fd := faultdisk.New(faultdisk.FailAt(1, fs.ErrPermission)) // the sync of the folder above
	if err := fd.Disk().MkdirAll(dir+"/a", 0o700); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(dir + "/a"); err != nil || !st.IsDir() {
		t.Errorf("got %v, %v", st, err)
	}
	fd = faultdisk.New(faultdisk.FailAt(1, syscall.EIO))
	if err := fd.Disk().MkdirAll(dir+"/a", 0o700); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v, want the failure of the disk", err)
	}
}
