package commands

import (
	"context"
	"slices"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
)

// Admit checks a request and stores its receipt as queued, or returns the receipt that the request
// id already has for the same command of the same run. c is the definition in the contract that the
// run pinned. Nothing is started.
//
// It is refused when the run's role is not listed, when a deployment or publication is not
// authorized, and for the reasons of [runstore.Tx.RequestCommand].
// Spec: "Configured commands and evidence"; E-075, E-078..E-080, E-082, E-088, E-089.
func (s *Service) Admit(ctx context.Context, run *runstore.Run, c contract.Command, id runstore.CommandID) (*runstore.Command, error) {
	if !slices.Contains(c.Roles, contract.Role(run.Role)) {
		return nil, refusal.New(refusal.CodeCommandRole, "ask for one of the commands in `greatminds run contract`",
			"role %s may not request command %s", run.Role, c.ID)
	}
	if c.Purpose != contract.PurposeValidation && !c.Authorized {
		return nil, refusal.New(refusal.CodeCommandAuthorization, "the operator can set `authorized: true` for it in execution.yaml",
			"command %s is for %s, which the project does not authorize", c.ID, c.Purpose)
	}
	var receipt *runstore.Command
	err := s.update(ctx, func(tx *runstore.Tx) error {
		var err error
		receipt, _, err = tx.RequestCommand(runstore.Command{
			ID: id, RunID: run.ID, TaskID: run.TaskID, TaskRevision: run.TaskRevision,
			CommandID: c.ID, DefinitionSHA256: c.SHA256(), ConfigSHA256: run.ConfigSHA256,
			SchemaSHA256: run.SchemaSHA256, Workspace: run.Workspace,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return receipt, nil
}
