package faultdisk_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ops(steps []durable.Step) string {
	var all []string
	for _, s := range steps {
		all = append(all, string(s.Op))
	}
	return strings.Join(all, " ")
}

func size(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return st.Size()
}

func TestAfterACrashNothingChanges(t *testing.T) {
	for name, fault := range map[string]faultdisk.Fault{
		"before": faultdisk.CrashAt(4),
		"torn":   faultdisk.TearAt(4, 2),
	} {
		path := t.TempDir() + "/log"
		fd := faultdisk.New(fault)
		l, err := fd.Disk().OpenLog(path, 0o600) // steps 1 and 2
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if err := l.Append(nil); err == nil || !errors.Is(err, durable.ErrPoisoned) || !errors.Is(err, faultdisk.ErrCrashed) {
			t.Errorf("%s: the sync at step 4: got %v", name, err)
		}
		if !fd.Crashed() || !fd.Reached() {
			t.Errorf("%s: not crashed", name)
		}
		if err := fd.Disk().Create(path+"2", nil, 0o600); !errors.Is(err, faultdisk.ErrCrashed) || size(path+"2") != -1 {
			t.Errorf("%s: afterwards: %v", name, err)
		}
		if got := ops(fd.Steps()); got != "create syncdir write" {
			t.Errorf("%s: recorded %s", name, got)
		}
	}
}

func TestATornWriteLeavesItsHead(t *testing.T) {
	path := t.TempDir() + "/log"
	fd := faultdisk.New(faultdisk.TearAt(3, 2))
	l, err := fd.Disk().OpenLog(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Append([]byte("abcdef")); !errors.Is(err, faultdisk.ErrCrashed) {
		t.Errorf("got %v", err)
	}
	steps := fd.Steps()
	if got := string(steps[len(steps)-1].Data); got != "ab" || size(path) != 2 {
		t.Errorf("recorded %q, %d bytes on the disk", got, size(path))
	}
}

func TestFailuresEndWithHeal(t *testing.T) {
	dir := t.TempDir()
	fd := faultdisk.New(faultdisk.FailFrom(1, syscall.ENOSPC))
	for range 3 {
		if err := fd.Disk().Replace(dir+"/f", []byte("x"), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got %v", err)
		}
	}
	fd.Heal()
	if err := fd.Disk().Replace(dir+"/f", []byte("x"), 0o600); err != nil || size(dir+"/f") != 1 {
		t.Errorf("healed: %v", err)
	}
	renames := func(s durable.Step) bool { return s.Op == durable.OpRename }
	fd.Plan(faultdisk.On(renames, faultdisk.FailAt(2, syscall.EIO)))
	for i, want := range []error{nil, syscall.EIO, nil} {
		if err := fd.Disk().Replace(dir+"/f", []byte("yy"), 0o600); !errors.Is(err, want) {
			t.Errorf("rename %d: got %v, want %v", i+1, err, want)
		}
	}
}

func TestStepsAreCopies(t *testing.T) {
	fd := faultdisk.New()
	data := []byte("before")
	if err := fd.Disk().Replace(t.TempDir()+"/f", data, 0o600); err != nil {
		t.Fatal(err)
	}
	copy(data, "after!")
	if got := string(fd.Steps()[1].Data); got != "before" {
		t.Errorf("got %q", got)
	}
	fd.Crash()
	if err := fd.Disk().Step("x", func() error { t.Error("ran"); return nil }); !errors.Is(err, faultdisk.ErrCrashed) {
		t.Errorf("got %v", err)
	}
}
