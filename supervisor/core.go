package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"greatminds/commands"
	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/brief"
	"greatminds/supervisor/ops"
	"greatminds/supervisor/results"
	"greatminds/tasks"
)

// core is what a daemon and a command that runs in process have in common: the lease, the
// store, and the rooms that work on it.
type core struct {
	o           Options
	log         *slog.Logger
	lease       *lease
	disk        *durable.Disk
	schema      *contract.Schema
	contract    *contract.Contract
	contractSHA string
	worktrees   contract.Worktrees
	git         *tasks.Git
	tree        *tasks.Tree
	store       *runstore.Store
	commands    *commands.Service
	applier     *results.Applier
	owner       string
	// step performs a named durable step.
	step func(name string, f func() error) error
}

// open reads the contract, takes the lease and opens the store. Nothing is left held when it
// fails.
func open(ctx context.Context, o Options, who string) (_ *core, err error) {
	c := &core{o: o, log: o.Log, disk: durable.NewDisk(o.Seam), owner: runstore.NewID()}
	c.step = c.disk.Step
	if err := c.readDocuments(); err != nil {
		return nil, err
	}
	if err := c.disk.MkdirAll(o.Project.StoreDir(), 0o700); err != nil {
		return nil, &refusal.Refusal{Code: refusal.CodeStoreWrite, Err: err, What: "the runtime folder cannot be made: " + err.Error(),
			Remedy: "free space or mend the disk, then try again"}
	}
	if c.lease, err = takeLease(ctx, o.Project, who); err != nil {
		return nil, err
	}
	if err := c.openStore(ctx); err != nil {
		return nil, errors.Join(err, c.lease.release())
	}
	return c, nil
}

func (c *core) readDocuments() (err error) {
	if c.schema, err = contract.LoadSchema(c.o.Getenv); err != nil {
		return err
	}
	if c.contract, err = contract.Load(c.o.Project, c.o.Project.ExecutionPath(), c.schema); err != nil {
		return err
	}
	c.contractSHA = c.contract.SHA256()
	c.worktrees, err = contract.WorktreePolicy(c.o.Project, c.schema)
	return err
}

func (c *core) openStore(ctx context.Context) (err error) {
	p := c.o.Project
	c.store, err = runstore.Open(ctx, runstore.Options{Dir: p.StoreDir(), Disk: c.disk, Now: c.o.Now, Log: c.log,
		MaxEvents: c.contract.MaxRuntimeEvents, EagerHistory: c.o.EagerHistory, MinJournal: c.o.MinJournal})
	if err != nil {
		return err
	}
	if err = c.pin(); err == nil {
		err = c.openRooms()
	}
	if err != nil {
		return errors.Join(err, c.store.Close(ctx))
	}
	return nil
}

// pin keeps both documents for good before any run can refer to them. E-154, E-156.
func (c *core) pin() error {
	schema, err := runstore.SchemaDocument(c.schema.Text, c.schema.Version)
	if err != nil {
		return err
	}
	return errors.Join(c.store.PinDocument("execution", c.contractSHA, c.contract.Canonical()),
		c.store.PinDocument("schema", c.schema.SHA256, schema))
}

func (c *core) openRooms() (err error) {
	c.git = &tasks.Git{Env: execgate.GitEnv(c.o.Environ), Disk: c.disk, Run: c.o.RunTool}
	c.tree = tasks.Open(c.o.Project, c.schema, c.disk, c.o.Now)
	c.commands, err = commands.New(commands.Options{Store: c.store, Disk: c.disk, Dir: c.o.Project.StoreDir(), Now: c.o.Now,
		Log: c.log, Environ: c.o.Environ, Owner: c.owner, Contract: c.pinnedContract, RunTool: c.o.RunTool,
		Current: func() *contract.Contract { return c.contract }})
	if err != nil {
		return err
	}
	c.applier, err = results.New(results.Options{Project: c.o.Project, Store: c.store, Tree: c.tree, Disk: c.disk, Git: c.git,
		Schema: c.pinnedSchema, Contract: c.pinnedContract, Policy: c.worktrees, Commands: c.commands, Now: c.o.Now, Log: c.log})
	return err
}

// close writes the snapshot and gives the lease back, in this order.
func (c *core) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return errors.Join(c.store.Close(ctx), c.lease.release())
}

// recover brings everything that an earlier process left to a known state: commands, an
// operator's half-done changes of tasks, runs, half-applied results. It must end before anything new is started.
func (c *core) recover(ctx context.Context) error {
	if err := c.commands.Recover(ctx); err != nil {
		return err
	}
	if err := c.tree.FinishChanges(ctx); err != nil {
		return err
	}
	if err := recoverRuns(ctx, c); err != nil {
		return err
	}
	if err := c.applier.Recover(ctx); err != nil {
		return err
	}
	c.promises()
	return nil
}

func (c *core) queues() []contract.Queue {
	var out []contract.Queue
	for _, q := range c.schema.Queues {
		if q.Kind != contract.QueueState {
			out = append(out, q.Name)
		}
	}
	return out
}

// revision reads a task's revision as its file stands now.
func (c *core) revision(id runstore.TaskID) (runstore.Revision, error) {
	task, err := c.tree.ReadCurrent(tasks.ID(id))
	if err != nil {
		return "", err
	}
	return runstore.Revision(task.Revision), nil
}

// pinnedContract and pinnedSchema give a run's own documents, whatever the files say by now.
func (c *core) pinnedContract(sha string) (*contract.Contract, error) {
	if sha == c.contractSHA {
		return c.contract, nil
	}
	data, err := c.store.Pinned("execution", sha)
	if err != nil {
		return nil, err
	}
	return contract.FromCanonical(data)
}

func (c *core) pinnedSchema(sha string) (*contract.Schema, error) {
	if sha == c.schema.SHA256 {
		return c.schema, nil
	}
	data, err := c.store.Pinned("schema", sha)
	if err != nil {
		return nil, err
	}
	text, err := runstore.SchemaText(data)
	if err != nil {
		return nil, err
	}
	return contract.ParsePinnedSchema("schema-"+sha+".json", text)
}

// operations is the table's environment, the same in a daemon and in process.
func (c *core) operations(d ops.Daemon) *ops.Env {
	return &ops.Env{Project: c.o.Project, Contract: c.contract, Schema: c.schema, Store: c.store, Tree: c.tree, Now: c.o.Now,
		Log: c.log, OwnerID: c.owner, Daemon: d, Commands: c.commands, Results: c.applier, Brief: c.brief, DecisionSchema: c.decisionSchema,
		Dispatch: c.judge, Step: c.step, Hooks: c.applier, Evidence: c.applier}
}

// brief compiles a run's assigned context again from its pinned documents. E-171.
func (c *core) brief(run *runstore.Run) (any, error) {
	pinned, err := c.pinnedContract(run.ConfigSHA256)
	if err != nil {
		return nil, err
	}
	task, schema, err := c.assigned(run)
	if err != nil {
		return nil, err
	}
	return brief.Compile(brief.Assignment{RunID: string(run.ID), Task: task, Role: contract.Role(run.Role),
		Workspace: run.Workspace, CLI: c.o.CLI, Contract: pinned, Schema: schema}), nil
}

// decisionSchema describes what a run may submit, by its pinned schema.
func (c *core) decisionSchema(run *runstore.Run) (any, error) {
	task, schema, err := c.assigned(run)
	if err != nil {
		return nil, err
	}
	return tasks.DecisionSchema(schema, task, contract.Role(run.Role)), nil
}

// assigned is a run's task, as long as it stands where it was claimed, with the run's pinned schema.
func (c *core) assigned(run *runstore.Run) (*tasks.Task, *contract.Schema, error) {
	schema, err := c.pinnedSchema(run.SchemaSHA256)
	if err != nil {
		return nil, nil, err
	}
	task, err := c.tree.ReadCurrent(tasks.ID(run.TaskID))
	if err != nil {
		return nil, nil, err
	}
	if string(task.Revision) != string(run.TaskRevision) {
		return nil, nil, refusal.New(refusal.CodeNotFound, "the decision for the old revision no longer counts; end the turn",
			"task %s is at %.12s in %s, but run %s was given %.12s", run.TaskID, task.Revision, task.Queue, run.ID, run.TaskRevision)
	}
	return task, schema, nil
}

// SeamFromEnv is the fault seam of test binaries; nil in every other one.
func SeamFromEnv(getenv func(string) string) durable.Seam { return durable.SeamFromEnv(getenv) }
