package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// binaries are the programs under test and the scripted agent.
type binaries struct {
	coordd, greatminds, agent string
}

// build builds the programs as they are built for users.
func build(ctx context.Context, folder string) (binaries, error) {
	b := binaries{filepath.Join(folder, "coordd"), filepath.Join(folder, "greatminds"), filepath.Join(folder, "fakeagent")}
	for target, source := range map[string]string{
		b.coordd: "greatminds/cmd/coordd", b.greatminds: "greatminds/cmd/greatminds", b.agent: "greatminds/fixtures/agent/cmd/fakeagent",
	} {
		out, err := exec.CommandContext(ctx, "go", "build", "-o", target, source).CombinedOutput()
		if err != nil {
			return b, fmt.Errorf("build %s: %w\n%s", source, err, out)
		}
	}
	return b, nil
}
