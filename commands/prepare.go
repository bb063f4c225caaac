package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"greatminds/contract"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/internal/sourceid"
	"greatminds/runstore"
)

const (
	// gitLimit bounds one git call of a source identity, identityLimit the whole identity.
	gitLimit      = 15 * time.Second
	identityLimit = 2 * time.Minute
	// maxListing bounds what git lists: half a million paths fit.
	maxListing = 128 << 20
)

// plan is all that is known about a request before its process exists.
type plan struct {
	receipt     *runstore.Command
	definition  contract.Command
	cwd         string
	environment []string
	program     sourceid.Executable
	source      sourceid.Source
	identity    runstore.EnvironmentID
}

// prepare finds what would fail after a process was started, and takes the identities.
func (s *Service) prepare(ctx context.Context, receipt *runstore.Command) (*plan, error) {
	definition, err := s.definition(receipt)
	if err != nil {
		return nil, err
	}
	p := &plan{receipt: receipt, definition: definition}
	if p.environment, err = s.environment(definition); err != nil {
		return nil, err
	}
	if p.cwd, err = folder(receipt.Workspace, definition.Cwd); err != nil {
		return nil, err
	}
	if p.identity, p.program, err = s.environmentID(ctx, definition, p.cwd, p.environment); err != nil {
		return nil, err
	}
	p.source, err = s.source(ctx, receipt.Workspace)
	return p, err
}

// definition is the command as the run pinned it, whatever the file says by now. E-081.
func (s *Service) definition(c *runstore.Command) (contract.Command, error) {
	pinned, err := s.o.Contract(c.ConfigSHA256)
	if err != nil {
		return contract.Command{}, fmt.Errorf("contract of command request %s: %w", c.ID, err)
	}
	definition, known := pinned.Command(c.CommandID)
	if !known || definition.SHA256() != c.DefinitionSHA256 {
		return contract.Command{}, refusal.New(refusal.CodeCommandUnknown, "read `configured_commands` in `greatminds run contract`",
			"the run's contract configures no command %q with definition %.12s", c.CommandID, c.DefinitionSHA256)
	}
	return definition, nil
}

// inherited names what every command inherits; nothing else of the daemon's environment does.
var inherited = []string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}

// environment is what the command sees, but for the mark that execgate adds. No other GREATMINDS_
// variable gets in, a run's credential least of all.
// Spec: E-087; DESIGN "GIT_* variables of the daemon's environment reach no … command".
func (s *Service) environment(c contract.Command) ([]string, error) {
	for _, name := range c.RequiredEnv {
		if value, ok := s.variable(name); !ok || value == "" {
			return nil, refusal.New(refusal.CodeCommandEnvironment, "set it for the daemon, and start the daemon again",
				"command %s requires the variable %s, which the daemon's environment lacks", c.ID, name)
		}
	}
	mapped := map[string]bool{}
	var env []string
	for _, ref := range c.Environment {
		value, ok := s.variable(ref.Parent)
		if !ok || strings.HasPrefix(ref.Child, "GREATMINDS_") {
			continue
		}
		mapped[ref.Child] = true
		env = append(env, ref.Child+"="+value)
	}
	for _, name := range inherited {
		// A value that begins like this is a shell function that bash exported.
		if value, ok := s.variable(name); ok && !mapped[name] && !strings.HasPrefix(value, "()") {
			env = append(env, name+"="+value)
		}
	}
	return env, nil
}

func (s *Service) variable(name string) (string, bool) {
	for _, variable := range s.o.Environ {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// folder is the command's working folder, which must be inside the workspace once all links are
// followed. Spec: E-083.
func folder(workspace, cwd string) (string, error) {
	refuse := func(format string, args ...any) (string, error) {
		return "", refusal.New(refusal.CodeCommandFolder, "correct `cwd` of the command in execution.yaml, or make the folder", format, args...)
	}
	root, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return refuse("the workspace cannot be used: %v", err)
	}
	if !filepath.IsLocal(cwd) {
		return refuse("the working folder %q is not relative, or leads out of the workspace", cwd)
	}
	full, err := filepath.EvalSymlinks(filepath.Join(root, cwd))
	if err != nil {
		return refuse("the working folder %q cannot be used: %v", cwd, err)
	}
	if full != root && !strings.HasPrefix(full, strings.TrimSuffix(root, "/")+"/") {
		return refuse("the working folder %q leads to %s, out of the workspace", cwd, full)
	}
	info, err := os.Stat(full)
	if err != nil || !info.IsDir() {
		return refuse("the working folder %q is no folder", cwd)
	}
	return full, nil
}

// environmentID identifies environment and executable. TERM is left out: it says where the daemon
// was started from, and no more.
func (s *Service) environmentID(ctx context.Context, c contract.Command, cwd string, env []string) (runstore.EnvironmentID, sourceid.Executable, error) {
	program, err := sourceid.Program(ctx, c.Argv[0], cwd, env)
	if err != nil {
		return runstore.EnvironmentID{}, program, err
	}
	key, err := s.evidenceKey()
	if err != nil {
		return runstore.EnvironmentID{}, program, err
	}
	counted := make([]string, 0, len(env))
	for _, variable := range env {
		if !strings.HasPrefix(variable, "TERM=") {
			counted = append(counted, variable)
		}
	}
	return runstore.EnvironmentID{
		EnvironmentHMAC: sourceid.EnvironmentHMAC(key, counted),
		Executable:      program.Path, ExecutableSHA256: program.SHA256,
	}, program, nil
}

// source identifies the workspace.
func (s *Service) source(ctx context.Context, workspace string) (sourceid.Source, error) {
	ctx, cancel := context.WithTimeout(ctx, identityLimit)
	defer cancel()
	return sourceid.Tree(ctx, workspace, s.git, s.metadata(workspace))
}

// metadata is what of the workspace belongs to us and is no source: the runtime folder, and the
// worktrees of other tasks beside it. E-096.
func (s *Service) metadata(workspace string) []string {
	root, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return nil // the identity fails by itself
	}
	runtime, err := filepath.EvalSymlinks(filepath.Dir(s.o.Dir))
	if err != nil {
		return nil
	}
	var out []string
	for _, path := range []string{runtime, filepath.Join(filepath.Dir(runtime), ".worktrees")} {
		if name, err := filepath.Rel(root, path); err == nil && name != "." && filepath.IsLocal(name) {
			out = append(out, name)
		}
	}
	return out
}

// git implements sourceid.Git.
func (s *Service) git(ctx context.Context, dir string, args ...string) ([]byte, int, error) {
	var base []string
	for _, name := range []string{"HOME", "PATH", "TMPDIR", "XDG_CONFIG_HOME"} {
		if value, ok := s.variable(name); ok {
			base = append(base, name+"="+value)
		}
	}
	out, err := s.o.RunTool(ctx, execgate.Tool{
		Argv: append([]string{"git"}, args...), Env: execgate.GitEnv(base), Dir: dir,
		Timeout: gitLimit, MaxOutput: maxListing,
	})
	if err == nil && out.Truncated {
		err = errors.New("git lists too many files")
	}
	if err == nil && out.Code > 1 {
		s.o.Log.Warn("git failed for a source identity", "dir", dir, "err", strings.TrimSpace(string(out.Stderr)))
	}
	return out.Stdout, out.Code, err
}
