//go:build !faultseam

package durable_test

import (
	"testing"

	"greatminds/internal/durable"
)

func TestAnOrdinaryBuildTakesNoFaultsFromItsEnvironment(t *testing.T) {
	seam := durable.SeamFromEnv(func(string) string { return "before:gate#1" })
	if seam != nil {
		t.Fatalf("got %v, want nil", seam)
	}
}
