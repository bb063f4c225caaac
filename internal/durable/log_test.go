package durable_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
)

func openLog(t *testing.T, d *durable.Disk, path string) *durable.Log {
	t.Helper()
	l, err := d.OpenLog(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func is(op durable.Op) func(durable.Step) bool {
	return func(s durable.Step) bool { return s.Op == op }
}

func TestAFailedWriteIsCutBack(t *testing.T) {
	for _, keep := range []int{0, 1, 5} {
		path := t.TempDir() + "/log"
		fd := faultdisk.New(faultdisk.On(is(durable.OpWrite), faultdisk.ShortAt(2, keep, syscall.ENOSPC)))
		l := openLog(t, fd.Disk(), path)
		if err := l.Append([]byte("one\n")); err != nil {
			t.Fatal(err)
		}
		err := l.Append([]byte("two-two\n"))
		if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, durable.ErrPoisoned) {
			t.Fatalf("got %v, want ENOSPC without poison", err)
		}
		if got := read(t, path); got != "one\n" || l.Size() != 4 {
			t.Fatalf("got %q, size %d", got, l.Size())
		}
		if err := l.Append([]byte("three\n")); err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); got != "one\nthree\n" {
			t.Fatalf("got %q", got)
		}
	}
}

func TestAFailedSyncOrCutBackPoisons(t *testing.T) {
	for name, faults := range map[string][]faultdisk.Fault{
		"sync":        {faultdisk.On(is(durable.OpSync), faultdisk.FailAt(2, syscall.EIO))},
		"cut back":    {faultdisk.On(is(durable.OpWrite), faultdisk.ShortAt(2, 1, syscall.ENOSPC)), faultdisk.On(is(durable.OpTruncate), faultdisk.FailAt(1, syscall.EIO))},
		"cut is lost": {faultdisk.On(is(durable.OpWrite), faultdisk.ShortAt(2, 1, syscall.ENOSPC)), faultdisk.On(is(durable.OpSync), faultdisk.FailAt(2, syscall.EIO))},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/log"
			fd := faultdisk.New(faults...)
			l := openLog(t, fd.Disk(), path)
			if err := l.Append([]byte("one\n")); err != nil {
				t.Fatal(err)
			}
			if err := l.Append([]byte("two\n")); !errors.Is(err, durable.ErrPoisoned) || !errors.Is(err, syscall.EIO) {
				t.Fatalf("got %v, want a poisoned EIO", err)
			}
			steps := len(fd.Steps())
			if err := l.Append([]byte("three\n")); !errors.Is(err, durable.ErrPoisoned) {
				t.Errorf("append: got %v, want ErrPoisoned", err)
			}
			if err := l.Truncate(0); !errors.Is(err, durable.ErrPoisoned) {
				t.Errorf("truncate: got %v, want ErrPoisoned", err)
			}
			if got := len(fd.Steps()); got != steps {
				t.Errorf("a poisoned log made %d more steps", got-steps)
			}
			if l.Size() != 4 {
				t.Errorf("size %d, want 4", l.Size())
			}
		})
	}
}

func TestALogGoesOnAtItsEnd(t *testing.T) {
	path := t.TempDir() + "/log"
	d := durable.NewDisk(nil)
	write(t, path, "kept\n")
	l := openLog(t, d, path)
	if err := l.Append([]byte("next\n")); err != nil {
		t.Fatal(err)
	}
	if err := l.Truncate(5); err != nil {
		t.Fatal(err)
	}
	if got := read(t, path); got != "kept\n" {
		t.Fatalf("got %q", got)
	}
	for _, n := range []int64{-1, 6} {
		if err := l.Truncate(n); err == nil || errors.Is(err, durable.ErrPoisoned) {
			t.Errorf("truncate to %d: got %v, want a plain error", n, err)
		}
	}
	if _, err := d.OpenLog(t.TempDir()+"/no/log", 0o600); !os.IsNotExist(errors.Unwrap(err)) {
		t.Errorf("missing folder: got %v", err)
	}
	link := t.TempDir() + "/link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := d.OpenLog(link, 0o600); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("symbolic link: got %v, want ELOOP", err)
	}
}

// What was acknowledged is in the file, in order, and nothing else but whole lines that were
// asked for, under any sequence of appends, cuts and faults.
func TestLogAgainstAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		fd := faultdisk.New()
		l, err := fd.Disk().OpenLog(dir+"/log", 0o600)
		if err != nil {
			rt.Fatal(err)
		}
		defer l.Close()
		model, poisoned := "", false
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(rt *rapid.T) {
				line := rapid.StringMatching(`[a-z]{0,20}\n`).Draw(rt, "line")
				err := l.Append([]byte(line))
				switch {
				case err == nil && poisoned:
					rt.Fatal("a poisoned log took a line")
				case err == nil:
					model += line
				}
				poisoned = poisoned || errors.Is(err, durable.ErrPoisoned)
			},
			"truncate": func(rt *rapid.T) {
				n := rapid.IntRange(0, len(model)).Draw(rt, "n")
				err := l.Truncate(int64(n))
				if err == nil {
					model = model[:n]
				}
				poisoned = poisoned || errors.Is(err, durable.ErrPoisoned)
			},
			"fault": func(rt *rapid.T) {
				fd.Heal()
				next := len(fd.Steps()) + rapid.IntRange(1, 3).Draw(rt, "steps ahead")
				fd.Plan(faultdisk.ShortAt(next, rapid.IntRange(0, 9).Draw(rt, "keep"), syscall.EIO))
			},
			"": func(rt *rapid.T) {
				b, err := os.ReadFile(dir + "/log")
				if err != nil {
					rt.Fatal(err)
				}
				if got := string(b); !poisoned && got != model {
					rt.Fatalf("got %q, want %q", got, model)
				} else if poisoned && !strings.HasPrefix(got, model[:min(len(model), len(got))]) {
					rt.Fatalf("poisoned log lost its head: %q, want %q at the front", got, model)
				}
			},
		})
	})
}
