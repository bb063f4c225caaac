package cli

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"

	"greatminds/contract"
	"greatminds/runstore"
	"greatminds/supervisor"
	"greatminds/supervisor/control"
	"greatminds/supervisor/status"
	"greatminds/tasks"
)

// CommandLine is the first argument by which coordd becomes the whole command line, for agents
// of a daemon that has no greatminds beside it.
const CommandLine = "greatminds"

// agentCLI is the argv prefix that agents are given. It begins with an absolute path, so neither
// PATH nor anything in the project can put another program in its place. E-012, E-013.
func agentCLI(exe string) []string {
	if filepath.Base(exe) != "coordd" {
		return []string{exe}
	}
	if beside := filepath.Join(filepath.Dir(exe), "greatminds"); isProgram(beside) {
		return []string{beside}
	}
	return []string{exe, CommandLine}
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func (w World) supervisor(p contract.Project, log *slog.Logger) supervisor.Options {
	return supervisor.Options{Project: p, Log: log, Now: w.Now, Getenv: w.Getenv, Environ: w.Environ, Version: w.Version,
		CLI: agentCLI(w.Exe), Seam: supervisor.SeamFromEnv(w.Getenv)}
}

// offline is how a call runs in process when no daemon holds the lease.
func offline(w World, p contract.Project) control.Offline {
	return func(ctx context.Context, c control.Call) (any, error) {
		return supervisor.Offline(ctx, w.supervisor(p, slog.New(slog.DiscardHandler)), c)
	}
}

// rebuildIndex makes the index of finished work again, under the lease.
func rebuildIndex(ctx context.Context, w World, p contract.Project) (lines int, err error) {
	return supervisor.RebuildIndex(ctx, w.supervisor(p, slog.New(slog.DiscardHandler)))
}

// judge is how dispatch sees tasks and accounts when the files are read.
func judge(w World, p contract.Project) func(*contract.Contract, *contract.Schema, *runstore.View, []tasks.Found) status.Dispatch {
	return func(c *contract.Contract, s *contract.Schema, v *runstore.View, found []tasks.Found) status.Dispatch {
		return supervisor.Judge(w.supervisor(p, slog.New(slog.DiscardHandler)), c, s, v, found)
	}
}

func runDaemon(ctx context.Context, w World, p contract.Project, once bool, log *slog.Logger) error {
	o := w.supervisor(p, log)
	o.Once = once
	return supervisor.Run(ctx, o)
}
