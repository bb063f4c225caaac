package commands

import (
	"context"
	"errors"
	"fmt"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
)

// Stale says why the receipt of a finished command does not count as evidence, and is empty while it
// does: its definition, source, environment, executable and captured output are what they were. Only
// a plain exit counts. An error means that this could not be found out.
// Spec: "Configured commands and evidence"; E-100..E-104, E-111, E-120.
func (s *Service) Stale(ctx context.Context, run *runstore.Run, c *runstore.Command) (string, error) {
	if why := unfinished(c); why != "" {
		return why, nil
	}
	if c.RunID != run.ID || c.Workspace != run.Workspace {
		return fmt.Sprintf("it belongs to run %s in %s", c.RunID, c.Workspace), nil
	}
	for _, check := range []func(context.Context, *runstore.Command) (string, error){
		s.staleRevision, s.staleEnvironment, s.staleOutput, s.staleSource,
	} {
		if why, err := check(ctx, c); why != "" || err != nil {
			return why, err
		}
	}
	return "", nil
}

func unfinished(c *runstore.Command) string {
	switch {
	case c.Status == statusStale:
		return "the source changed while the command ran"
	case c.Status != statusSucceeded && c.Status != statusFailed || c.Reason != reasonExit || c.ExitCode == nil:
		return fmt.Sprintf("the command is %s (%s) and has no exit status of its own", c.Status, detailOf(c))
	case c.SourceBefore == nil || c.SourceAfter == nil || c.EnvironmentIdentity == nil || c.Output == nil:
		return "the receipt lacks identities"
	}
	return ""
}

// staleRevision compares the operator's own label of what a command depends on with the one in force:
// hashes cannot see a service or a stand. E-104.
func (s *Service) staleRevision(_ context.Context, c *runstore.Command) (string, error) {
	pinned, err := s.definition(c)
	if err != nil {
		if _, ok := refusal.Find(err); ok {
			return err.Error(), nil
		}
		return "", err
	}
	if s.o.Current == nil {
		return "", nil
	}
	if now, ok := s.o.Current().Command(c.CommandID); ok && now.EnvironmentRevision != pinned.EnvironmentRevision {
		return fmt.Sprintf("environment_revision of %s is %q now and was %q", c.CommandID, now.EnvironmentRevision, pinned.EnvironmentRevision), nil
	}
	return "", nil
}

// staleEnvironment takes environment and executable once more. E-102.
func (s *Service) staleEnvironment(ctx context.Context, c *runstore.Command) (string, error) {
	pinned, err := s.definition(c)
	if err != nil {
		return "", err
	}
	env, err := s.environment(pinned)
	var cwd string
	if err == nil {
		cwd, err = folder(c.Workspace, pinned.Cwd)
	}
	var now runstore.EnvironmentID
	if err == nil {
		now, _, err = s.environmentID(ctx, pinned, cwd, env)
	}
	var missing *execgate.ExecError
	if r, ok := refusal.Find(err); ok && r.Code != refusal.CodeEvidenceKey || errors.As(err, &missing) {
		return err.Error(), nil
	}
	if err != nil {
		return "", err
	}
	was := c.EnvironmentIdentity
	switch {
	case now.EnvironmentHMAC != was.EnvironmentHMAC:
		return "the environment changed", nil
	case now.Executable != was.Executable:
		return fmt.Sprintf("%s stands for %s now and stood for %s", pinned.Argv[0], now.Executable, was.Executable), nil
	case now.ExecutableSHA256 != was.ExecutableSHA256:
		return fmt.Sprintf("the executable %s changed", was.Executable), nil
	}
	return "", nil
}

// staleOutput checks the captured streams. E-103.
func (s *Service) staleOutput(_ context.Context, c *runstore.Command) (string, error) {
	for _, name := range streamNames {
		if _, err := s.readStream(c, name, 0); err != nil {
			if r, ok := refusal.Find(err); ok && r.Code == refusal.CodeCommandOutput {
				return r.What, nil
			}
			return "", err
		}
	}
	return "", nil
}

// staleSource takes the source identity once more. A command that failed counts as it left the
// source; one that succeeded has left it as it was. E-101.
func (s *Service) staleSource(ctx context.Context, c *runstore.Command) (string, error) {
	now, err := s.source(ctx, c.Workspace)
	if r, ok := refusal.Find(err); ok {
		return r.What, nil
	}
	if err != nil {
		return "", err
	}
	was := c.SourceAfter
	switch {
	case now.Commit != was.Commit:
		return fmt.Sprintf("the source is at commit %.12s now and was at %.12s", now.Commit, was.Commit), nil
	case now.SHA256 != was.SourceSHA256:
		return fmt.Sprintf("the source is %.12s now and was %.12s", now.SHA256, was.SourceSHA256), nil
	}
	return "", nil
}
