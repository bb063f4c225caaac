package tasks_test

import (
	"testing"

	"go.uber.org/goleak"

	"greatminds/internal/execgate"
)

// TestMain is keeper and gate of the git calls too, and ends by finding no goroutine left.
func TestMain(m *testing.M) {
	execgate.Main()
	goleak.VerifyTestMain(m)
}
