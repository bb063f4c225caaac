package main

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The programs that are shipped have no seam of the tests in them: no tag of one, and no ear for the file that moves a test
// clock.
func TestTheReleasedProgramsHaveNoTestClock(t *testing.T) {
	for _, name := range []string{"greatminds", "coordd"} {
		info, err := buildinfo.ReadFile(filepath.Join(binaries, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range info.Settings {
			if s.Key == "-tags" && s.Value != "" {
				t.Errorf("%s is built with the tags %s", name, s.Value)
			}
		}
	}
	p := newPlace(t)
	shift := filepath.Join(t.TempDir(), "clock")
	if err := os.WriteFile(shift, []byte("86400"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.env = append(p.env, "GREATMINDS_TEST_CLOCK="+shift)
	p.daemon()
	p.changes(1)
	f := p.follow()
	f.reaches(p.last())
	if at := time.UnixMilli(int64(f.latest * 1000)); time.Since(at).Abs() > time.Hour {
		t.Errorf("the newest event is of %v", at)
	}
}
