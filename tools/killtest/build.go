package main

import (
	"context"

	"greatminds/fixtures/gobuild"
)

// binaries are the programs under test and the scripted agent, as paths.
type binaries struct {
	coordd, greatminds, agent string
}

func build(ctx context.Context, folder string) (b binaries, err error) {
	for _, p := range []struct {
		pkg  string
		path *string
	}{{gobuild.Coordd, &b.coordd}, {gobuild.Greatminds, &b.greatminds}, {gobuild.FakeAgent, &b.agent}} {
		if *p.path, err = gobuild.Program(ctx, folder, p.pkg); err != nil {
			return b, err
		}
	}
	return b, nil
}
