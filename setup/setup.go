// Package setup prepares a project: runtime folders, ignore entries, the schema's copy, the
// default branch, and the execution contract; and it fills in bindings from presets.
//
// The invariant kept: everything is checked before anything is written, and the contract is
// published last, as a complete file, and never over another one. So a project with a contract is
// completely set up, and a setup that was refused or cut short can simply be run again. Nothing
// is written outside the project, and no agent or service is started.
package setup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/refusal"
)

// Request is one call of setup.
type Request struct {
	// ProjectDir is the folder to set up; it must exist and lie inside a git work tree.
	ProjectDir string
	// ExecutionConfig is the file of a contract to install, empty for an empty contract.
	ExecutionConfig string
	// Schema is the workflow schema in force; nil for the embedded one.
	Schema *contract.Schema
	Disk   *durable.Disk
	// Git runs git, see [GitTool].
	Git Git
}

// Report is the answer of setup. A second setup of the same project gives the same answer.
type Report struct {
	Project         string `json:"project"`
	ExecutionSHA256 string `json:"execution_sha256"`
	Bindings        int    `json:"bindings"`
	Agents          int    `json:"agents"`
	SchemaSHA256    string `json:"schema_sha256"`
	// SchemaMirror is current, drifted, missing or unreadable.
	SchemaMirror string `json:"schema_mirror"`
	NextStep     string `json:"next_step"`
	// DefaultBranch is the branch that verified work will be merged into.
	DefaultBranch string `json:"default_branch"`
}

// emptyContract is what plain setup installs.
const emptyContract = `# Who works on this project: agents (how to start them) and bindings (their roles).
version: 1
agents: {}
bindings: {}
`

// plan is everything that setup decided before it writes.
type plan struct {
	project contract.Project
	schema  *contract.Schema
	// agreed is the contract that will be in force, text what to install, nil for nothing.
	agreed *contract.Contract
	text   []byte
	branch string
	// coordPath and coord are the file of overrides with the branch in it; nil for no change.
	coordPath string
	coord     []byte
	// ignore is the new .gitignore, nil for no change.
	ignore []byte
}

// Run sets the project up, or completes or repeats an earlier setup. It refuses: a folder outside
// git, a git older than 2.38, a detached HEAD where no default branch is known, a contract that
// is invalid or differs from the installed one, runtime state whose contract is gone, and task
// data in coordination. After a refusal nothing has been written.
// Spec: "Bootstrap"; E-363 to E-370, E-471 to E-474.
func Run(ctx context.Context, q Request) (Report, error) {
	if q.Schema == nil {
		q.Schema = contract.EmbeddedSchema()
	}
	p, err := q.plan(ctx)
	if err != nil {
		return Report{}, err
	}
	if err := q.write(ctx, p); err != nil {
		return Report{}, err
	}
	return p.report(), nil
}

// plan reads and checks everything.
func (q Request) plan(ctx context.Context) (*plan, error) {
	project, err := place(q.ProjectDir)
	if err != nil {
		return nil, err
	}
	p := &plan{project: project, schema: q.Schema}
	if err := checkGit(ctx, q.Git, project.Root); err != nil {
		return nil, err
	}
	if err := checkLayout(project); err != nil {
		return nil, err
	}
	if err := p.contract(q.ExecutionConfig); err != nil {
		return nil, err
	}
	if err := p.defaultBranch(ctx, q.Git); err != nil {
		return nil, err
	}
	return p, p.gitignore()
}

// contract settles which contract will be in force.
func (p *plan) contract(supplied string) error {
	var wanted *contract.Contract
	text := []byte(emptyContract)
	if supplied != "" {
		data, err := contract.ReadFile(supplied)
		if err != nil {
			return err
		}
		if wanted, err = contract.Parse(supplied, data, p.schema); err != nil {
			return err
		}
		text = data
	}
	path := p.project.ExecutionPath()
	if _, err := os.Lstat(path); err == nil {
		return p.installed(wanted, supplied)
	}
	if state := stateFile(p.project); state != "" {
		return refusal.New(refusal.CodeSetupOrphanState,
			"restore coordination/execution.yaml, or move the runtime state away",
			"%s exists, but %s is gone", state, path)
	}
	if wanted == nil {
		var err error
		if wanted, err = contract.Parse("the empty contract", text, p.schema); err != nil {
			return err
		}
	}
	p.agreed, p.text = wanted, text
	return nil
}

// installed compares a supplied contract with the one that is there.
func (p *plan) installed(wanted *contract.Contract, supplied string) error {
	there, err := contract.Load(p.project, "", p.schema)
	if err != nil {
		return err
	}
	if wanted != nil && wanted.SHA256() != there.SHA256() {
		return refusal.New(refusal.CodeSetupDiffers,
			"edit coordination/execution.yaml instead, or set up without --execution-config",
			"%s has fingerprint %.12s, but %s is installed with %.12s", supplied, wanted.SHA256(),
			p.project.ExecutionPath(), there.SHA256())
	}
	p.agreed = there
	return nil
}

// stateFile is a file of the durable store, empty for none.
func stateFile(p contract.Project) string {
	for _, name := range []string{"state.json", "journal.jsonl"} {
		path := filepath.Join(p.StoreDir(), name)
		if _, err := os.Lstat(path); err == nil {
			return path
		}
	}
	return ""
}

func (p *plan) report() Report {
	next := "run `greatminds coordd`"
	if len(p.agreed.Bindings) == 0 {
		next = "configure agents and bindings in coordination/execution.yaml, then run `greatminds coordd`"
	}
	return Report{
		Project:         p.project.Root,
		ExecutionSHA256: p.agreed.SHA256(),
		Bindings:        len(p.agreed.Bindings),
		Agents:          len(p.agreed.Agents),
		SchemaSHA256:    p.schema.SHA256,
		SchemaMirror:    contract.MirrorOf(p.project, p.schema).Status,
		NextStep:        next,
		DefaultBranch:   p.branch,
	}
}

// failed is a write that did not succeed.
func failed(err error) error {
	return &refusal.Refusal{Code: refusal.CodeSetupWrite, What: fmt.Sprintf("cannot set the project up: %v", err),
		Remedy: "put right what the message names, then run `greatminds setup` again", Err: err}
}
