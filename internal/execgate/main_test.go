package execgate_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"greatminds/internal/execgate"
)

func TestMain(m *testing.M) {
	execgate.Main()
	if helper := os.Getenv("EXECGATE_TEST_ROLE"); helper != "" {
		os.Exit(playRole(helper))
	}
	goleak.VerifyTestMain(m)
}

func playRole(string) int { return 0 }
