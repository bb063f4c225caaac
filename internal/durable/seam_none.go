//go:build !faultseam

package durable

// SeamFromEnv returns nil: this build has no fault seam in its environment.
func SeamFromEnv(func(string) string) Seam { return nil }
