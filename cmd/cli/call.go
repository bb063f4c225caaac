package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/supervisor/control"
	"greatminds/supervisor/ops"
)

// takesProject gives a command the flag --project-dir.
func (a *app) takesProject(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&a.projectDir, "project-dir", "", "project `folder` (default: found from the working folder)")
	return cmd
}

// project finds the project that the command is about: the explicit folder, else
// GREATMINDS_PROJECT_DIR, else upward from the working folder.
func (a *app) project() (contract.Project, error) {
	if a.projectDir != "" {
		return contract.OpenProject(a.absolute(a.projectDir))
	}
	return contract.FindProject(a.Cwd, a.Getenv)
}

func (a *app) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(a.Cwd, path)
}

// credential is the run credential of the environment. Run variables count only in the project
// that they name; without a name they count everywhere, so that dropping the name frees nobody.
func (a *app) credential(p contract.Project) (run, token string) {
	if named := a.Getenv("GREATMINDS_PROJECT_DIR"); named != "" && !sameFolder(named, p.Root) {
		return "", ""
	}
	return a.Getenv("GREATMINDS_RUN_ID"), a.Getenv("GREATMINDS_RUN_TOKEN")
}

func sameFolder(one, other string) bool {
	a, errA := os.Stat(one)
	b, errB := os.Stat(other)
	if errA != nil || errB != nil {
		return filepath.Clean(one) == filepath.Clean(other)
	}
	return os.SameFile(a, b)
}

// newCall is a call of this command's caller.
func (a *app) newCall(p contract.Project, op string, args any) (control.Call, error) {
	data, err := json.Marshal(args)
	if err != nil {
		return control.Call{}, err
	}
	c := control.Call{Version: control.Version, ID: control.NewID(), Op: op, Args: data, Role: a.role(), Cwd: a.Cwd}
	c.RunID, c.Token = a.credential(p)
	return c, ops.Permit(c)
}

// role is the caller's role for domain commands.
func (a *app) role() string { return a.Getenv("GREATMINDS_ROLE") }

// do performs an operation on the command's project: in the daemon, or in process under the lease.
func (a *app) do(ctx context.Context, op string, args any) (json.RawMessage, error) {
	p, err := a.project()
	if err != nil {
		return nil, err
	}
	return a.doIn(ctx, p, op, args)
}

func (a *app) doIn(ctx context.Context, p contract.Project, op string, args any) (json.RawMessage, error) {
	c, err := a.newCall(p, op, args)
	if err != nil {
		return nil, err
	}
	route := control.Route{Project: p, Offline: offline(a.World, p)}
	return route.Do(ctx, c)
}

// into performs an operation and decodes its answer.
func (a *app) into(ctx context.Context, op string, args, answer any) (json.RawMessage, error) {
	data, err := a.do(ctx, op, args)
	if err != nil {
		return nil, err
	}
	return data, json.Unmarshal(data, answer)
}

// needCredential refuses a run's own command outside a run.
func (a *app) needCredential(p contract.Project, what string) error {
	if run, token := a.credential(p); run != "" && token != "" {
		return nil
	}
	return refusal.New(refusal.CodeCredential, "call it from inside the run, with the environment that the run was started with",
		"`%s` needs a run's credential (GREATMINDS_RUN_ID and GREATMINDS_RUN_TOKEN)", what)
}
