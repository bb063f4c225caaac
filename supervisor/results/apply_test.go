package results_test

import "testing"

// E-199 E-205
func TestApprovedTaskIsMergedMovedAndTold(t *testing.T) {
	l := newLab(t)
	l.review()
	if err := l.apply(); err != nil {
		t.Fatal(err)
	}
	l.wantVerified()
	for i, s := range l.fault.Steps() {
		t.Logf("%d %s %s %s", i, s.Op, s.Name, s.Path)
	}
}
