//go:build !testclock

package clock

import "testing"

func TestTheReleasedClockCannotBeMoved(t *testing.T) {
	for _, text := range []string{"3600", "-3600", "86400"} {
		if d := moved(t, text); d != 0 {
			t.Errorf("%q moved the clock by %v", text, d)
		}
	}
}
