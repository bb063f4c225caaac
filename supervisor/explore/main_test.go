package explore

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"greatminds/internal/execgate"
)

var update = flag.Bool("update", false, "write docs/crash-testing.md anew")

// TestMain is keeper and gate of the configured commands too.
func TestMain(m *testing.M) {
	execgate.Main()
	goleak.VerifyTestMain(m)
}
