package ops

import (
	"context"
	"os"
	"time"

	"greatminds/commands"
	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/control"
	"greatminds/supervisor/status"
	"greatminds/tasks"
)

// Files answers calls that change nothing from the files of a project. It needs no lease, so it
// works beside a daemon that hangs; what it tells is the last durable state.
type Files struct {
	Project contract.Project
	Getenv  func(string) string
	Now     func() time.Time
	// Dispatch judges tasks and accounts; see [Env].
	Dispatch func(c *contract.Contract, s *contract.Schema, v *runstore.View, found []tasks.Found) status.Dispatch
}

// Serve performs one call of the table for this process's own user. Operations that change
// something are refused, and so are those of a run.
func (f Files) Serve(ctx context.Context, c control.Call) (any, error) {
	op, known := table[c.Op]
	if !known || op.Changing || op.Authority == Assigned || op.Authority == Either && c.Assigned() {
		return nil, refusal.New(refusal.CodeUnknownOperation, "ask the daemon", "%s cannot be answered from the files alone", c.Op)
	}
	e, err := f.env(c.Op)
	if err != nil {
		return nil, err
	}
	self := execgate.Peer{PID: os.Getpid(), UID: uint32(os.Geteuid()), Known: true}
	return e.Serve(ctx, self, c)
}

func (f Files) env(op string) (*Env, error) {
	if op == "run.events" { // they need no contract, and are followed while somebody edits it
		view, err := runstore.Read(f.Project.StoreDir())
		return &Env{Project: f.Project, files: view}, err
	}
	schema, err := contract.LoadSchema(f.Getenv)
	if err != nil {
		return nil, err
	}
	agreed, err := contract.Load(f.Project, "", schema)
	if err != nil {
		return nil, err
	}
	view, err := runstore.Read(f.Project.StoreDir())
	if err != nil {
		return nil, err
	}
	return &Env{
		Project: f.Project, Contract: agreed, Schema: schema, Now: f.Now, files: view,
		Tree:     tasks.Open(f.Project, schema, durable.NewDisk(nil), f.Now),
		Commands: reader{commands.Reader{Dir: f.Project.StoreDir()}},
		Dispatch: func(v *runstore.View, found []tasks.Found) status.Dispatch {
			return f.Dispatch(agreed, schema, v, found)
		},
	}, nil
}

// reader previews output, and requests nothing.
type reader struct{ commands.Reader }

// Admit refuses: a request needs the daemon.
func (reader) Admit(context.Context, *runstore.Run, contract.Command, runstore.CommandID) (*runstore.Command, error) {
	return nil, refusal.New(refusal.CodeDaemonSilent, "start the daemon", "no daemon takes the request")
}
