package clock

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// moved returns how far the clock is from the machine's, by the wall, after the file got the text.
func moved(t *testing.T, text string) time.Duration {
	t.Helper()
	file := filepath.Join(t.TempDir(), "clock")
	now := Wall(func(name string) string {
		if name == Env {
			return file
		}
		return ""
	})
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	got := now()
	if d := got.Sub(before); d < 0 || d > time.Minute {
		t.Errorf("%q moved the monotonic clock by %v", text, d)
	}
	return got.Round(0).Sub(before.Round(0)).Round(time.Minute)
}

func TestWithoutTheVariableTheClockIsTheMachines(t *testing.T) {
	now := Wall(func(string) string { return "" })
	if d := time.Since(now().Round(0)); d < -time.Minute || d > time.Minute {
		t.Errorf("off by %v", d)
	}
}
