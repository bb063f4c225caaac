package tasks

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func look(t *testing.T, file string) fileStamp {
	t.Helper()
	info, err := os.Lstat(file)
	if err != nil {
		t.Fatal(err)
	}
	return stampOf(info)
}

// Whatever is done to a file is seen by its stamp, also where size and times are put back.
func TestAStampTellsEveryChange(t *testing.T) {
	for name, change := range map[string]func(file string) error{
		"other bytes of the same length": func(file string) error { return os.WriteFile(file, []byte("other"), 0o644) },
		"other bytes and the old time": func(file string) error {
			info, err := os.Stat(file)
			if err == nil {
				err = os.WriteFile(file, []byte("other"), 0o644)
			}
			if err == nil {
				err = os.Chtimes(file, info.ModTime(), info.ModTime())
			}
			return err
		},
		"another file in its place": func(file string) error {
			if err := os.WriteFile(file+".new", []byte("other"), 0o644); err != nil {
				return err
			}
			return os.Rename(file+".new", file)
		},
		"longer":       func(file string) error { return os.WriteFile(file, []byte("longer than before"), 0o644) },
		"another mode": func(file string) error { return os.Chmod(file, 0o600) },
		"renamed and back": func(file string) error {
			if err := os.Rename(file, file+".away"); err != nil {
				return err
			}
			return os.Rename(file+".away", file)
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(file, []byte("bytes"), 0o644); err != nil {
				t.Fatal(err)
			}
			before := look(t, file)
			// The kernel's clock for files ticks every few milliseconds; until it does, a file
			// is too young to be remembered at all.
			for deadline := time.Now().Add(5 * time.Second); look(t, file) == before; {
				if time.Now().After(deadline) {
					t.Fatal("the stamp does not change")
				}
				if err := change(file); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestWhatIsRemembered(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("bytes"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := look(t, file)
	written := time.Unix(s.changed.Unix())
	good := Found{Ref: Ref{File: "q/f", Revision: "r"}}
	unread := Found{Ref: Ref{File: "q/f"}}
	other := s
	other.inode++
	for name, c := range map[string]struct {
		found Found
		begun time.Time
		asked fileStamp
		want  bool
	}{
		"left alone":                       {good, written.Add(racyAge), s, true},
		"read as it was written":           {good, written.Add(racyAge - 1), s, false},
		"read before it was, by the clock": {good, written.Add(-time.Hour), s, false},
		"could not be read":                {unread, written.Add(time.Hour), s, false},
		"changed since":                    {good, written.Add(time.Hour), other, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := readings{}
			r.put(c.found, s, c.begun)
			if found, ok := r.get("q/f", c.asked); ok != c.want || ok && found.Revision != "r" {
				t.Errorf("got %v, %v", found, ok)
			}
		})
	}
	r := readings{}
	r.put(good, s, written.Add(time.Hour))
	r.put(unread, s, written.Add(time.Hour))
	if _, ok := r.get("q/f", s); ok {
		t.Error("what was remembered outlives a reading that failed")
	}
}

func TestReadingsAreBounded(t *testing.T) {
	r, s := readings{}, fileStamp{}
	for i := range maxReadings + 10 {
		r.put(Found{Ref: Ref{File: string(rune(i)) + "f", Revision: "r"}}, s, time.Unix(1<<32, 0))
	}
	if len(r) > maxReadings {
		t.Errorf("%d readings", len(r))
	}
}
