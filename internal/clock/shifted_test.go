//go:build testclock

package clock

import (
	"testing"
	"time"
)

func TestATestClockMovesTheWallAlone(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{"": 0, "x": 0, "0": 0, "3600": time.Hour, "-3600\n": -time.Hour,
		"86400": day, "-86400": -day, "31536000": 365 * day, "-31536000": -365 * day} {
		if d := moved(t, text); d != want {
			t.Errorf("%q moved the clock by %v, want %v", text, d, want)
		}
	}
}
