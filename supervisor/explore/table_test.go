package explore

import (
	"testing"
)

// E-153 E-165 E-168 E-201 E-202 E-203 E-214 E-240
func TestStopsAndPowerCuts(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) { t.Logf("%+v", s.explore(t)) })
	}
}

// E-165 E-167 E-646
func TestFaults(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) { t.Logf("%d faults", s.sweeps(t)) })
	}
}

// E-153 E-165
func TestAPowerCutAfterAKill(t *testing.T) {
	for _, s := range []scenario{blocked, planned} {
		t.Run(s.name, func(t *testing.T) {
			steps, images := s.twice(t)
			t.Logf("%d kills, %d images", steps, images)
		})
	}
}
