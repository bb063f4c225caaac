package proc

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseStat(t *testing.T) {
	const rest = " S 41 42 43 0 -1 4194560 75 0 0 0 0 0 0 0 20 0 1 0 248219 2990080 393"
	for _, c := range []struct {
		name, line string
		want       Stat
		ok         bool
	}{
		{"plain", "40 (sh)" + rest, Stat{40, 41, 42, 43, 'S', 248219}, true},
		{"brackets, spaces and lines in the name", "40 (a) Z 1 (\n)" + rest, Stat{40, 41, 42, 43, 'S', 248219}, true},
		{"no name", "40 S 41", Stat{}, false},
		{"short", "40 (sh) S 41 42 43", Stat{}, false},
		{"no number", "40 (sh)" + strings.Replace(rest, "248219", "x", 1), Stat{}, false},
		{"negative start", "40 (sh)" + strings.Replace(rest, "248219", "-1", 1), Stat{}, false},
		{"empty", "", Stat{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseStat([]byte(c.line))
			if got != c.want || (err == nil) != c.ok {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

func FuzzParseStat(f *testing.F) {
	if own, err := os.ReadFile("/proc/self/stat"); err == nil {
		f.Add(own)
	}
	f.Add([]byte("1 (a) b) S 1 2 3 0 -1 4194560 75 0 0 0 0 0 0 0 20 0 1 0 5"))
	f.Add([]byte("1 () "))
	f.Add([]byte(" 01()0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"))
	f.Fuzz(func(t *testing.T, line []byte) {
		st, err := ParseStat(line)
		if err == nil && (st.PID <= 0 || st.Parent < 0 || !strings.HasPrefix(strings.TrimSpace(string(line)), strconv.Itoa(st.PID))) {
			t.Errorf("%q became %+v", line, st)
		}
		if err != nil && st != (Stat{}) {
			t.Errorf("%q: error %v and %+v", line, err, st)
		}
	})
}

func TestChildrenByScanAgreesWithTheKernelsList(t *testing.T) {
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill() // ends it for the wait
		_ = child.Wait()         // killed
	}()
	listed, err := Children(os.Getpid())
	scanned, scanErr := childrenByScan(os.Getpid())
	if err != nil || scanErr != nil || len(listed) != 1 || len(scanned) != 1 || listed[0] != child.Process.Pid || scanned[0] != child.Process.Pid {
		t.Errorf("listed %v, %v; scanned %v, %v; want %d", listed, err, scanned, scanErr, child.Process.Pid)
	}
	pins := Walk(Self())
	defer ClosePins(pins)
	if len(pins) != 1 || pins[0].Stat.PID != child.Process.Pid {
		t.Errorf("walked to %v", pins)
	}
	if records := Identities(pins); len(records) != 1 || records[0].PID != child.Process.Pid || records[0].BootID == "" {
		t.Errorf("identified %v", records)
	}
}
