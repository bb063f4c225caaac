package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// row is what was seen of one agent.
type row struct {
	Agent    string   `json:"agent"`
	Packages []string `json:"packages"`
	// AgentInfo is what the agent called itself on the wire, with its version.
	AgentInfo []string `json:"agent_info"`
	// Mode is the session mode that the binding sets; empty for the agent's own.
	Mode string `json:"mode"`
	// Pipeline is merged, failed or not run, PipelineAt when it began.
	Pipeline   string     `json:"pipeline"`
	PipelineAt *time.Time `json:"pipeline_at"`
	// PipelineError says why it failed.
	PipelineError string       `json:"pipeline_error,omitempty"`
	Permissions   []permission `json:"permissions"`
	// Merge is the merge commit, File the file in it that the agent wrote with its own tool, and
	// Changed all that the merge changed.
	Merge   string   `json:"merge"`
	File    string   `json:"file"`
	Changed []string `json:"changed"`
	// ModelRequests are all that the stand-in saw, AssignedRequests those with the assignment.
	ModelRequests    int64   `json:"model_requests"`
	AssignedRequests int64   `json:"assigned_requests"`
	InstallSeconds   float64 `json:"install_seconds"`
	Seconds          float64 `json:"seconds"`
	// Silent agents never ask for a permission.
	Silent bool   `json:"silent,omitempty"`
	Note   string `json:"note,omitempty"`
	// Lacks names a program that the agent would make use of and that is not here.
	Lacks string `json:"lacks,omitempty"`
	// Error is all that failed, empty for nothing.
	Error string `json:"error,omitempty"`
	// Kept is the folder of a pipeline that failed.
	Kept string `json:"kept,omitempty"`
	// Cells are the scenarios of one turn.
	Cells []cell `json:"cells"`
}

// cell is what was expected and seen of one agent in one scenario.
type cell struct {
	Scenario string `json:"scenario"`
	// At is when it began.
	At       time.Time `json:"at"`
	Expected facts     `json:"expected"`
	// Why says why this agent is expected to differ from the others; empty where it is not.
	Why         string       `json:"why,omitempty"`
	Seen        facts        `json:"seen"`
	Permissions []permission `json:"permissions"`
	Seconds     float64      `json:"seconds"`
	Error       string       `json:"error,omitempty"`
	Kept        string       `json:"kept,omitempty"`
}

// keeps says whether a folder of the agent is kept.
func (r row) keeps() bool {
	return r.Kept != "" || slices.ContainsFunc(r.Cells, func(c cell) bool { return c.Kept != "" })
}

// faults are the pipeline's and the cells' errors, one a line.
func (r row) faults() string {
	var all []string
	if r.PipelineError != "" {
		all = append(all, r.PipelineError)
	}
	for _, c := range r.Cells {
		if c.Error != "" {
			all = append(all, c.Scenario+": "+c.Error)
		}
	}
	return strings.Join(all, "\n")
}

// heard adds a name that the agent gave itself on the wire.
func (r *row) heard(name string) {
	if name != "" && !slices.Contains(r.AgentInfo, name) {
		r.AgentInfo = append(r.AgentInfo, name)
		slices.Sort(r.AgentInfo)
	}
}

// permission is one question of the agent and how the operator's command answered it.
type permission struct {
	Role    string   `json:"role"`
	Tool    string   `json:"tool_kind"`
	Options []option `json:"options"`
	Chosen  string   `json:"chosen"`
	// Status is the exit status of `run permission ID --option CHOSEN`; null when it never ran.
	Status *int `json:"exit_status"`
}

// What a row says of its pipeline.
const (
	merged = "merged"
	failed = "failed"
	notRun = "not run"
)

func newRow(r recipe) row {
	return row{Agent: r.name, Packages: r.packages, Mode: r.mode, Pipeline: notRun, Note: r.note, Silent: r.silent, AgentInfo: []string{}, Permissions: []permission{}, Changed: []string{}, Cells: []cell{}}
}

// missing says all that an agent still owes, as one error; nil when it did its part.
func (r row) missing() error {
	var owes []error
	owe := func(is bool, what string) {
		if is {
			owes = append(owes, errors.New(what))
		}
	}
	owe(r.ModelRequests == 0, "the model stand-in saw no request")
	owe(r.ModelRequests > 0 && r.AssignedRequests == 0, "the model stand-in saw no request with the assignment")
	owe(len(r.AgentInfo) == 0, "the agent did not say its name on the wire")
	owe(len(r.Permissions) == 0 && !r.Silent, "the agent asked for no permission")
	owe(len(r.Permissions) > 0 && r.Silent, "the agent asked for a permission, which it was not known to do")
	for _, p := range r.Permissions {
		owe(p.Status == nil || *p.Status != 0, "a permission was not answered")
	}
	owe(r.Merge == "" || r.File == "", "there is no merge with the agent's file")
	return errors.Join(owes...)
}

// document is the whole result as JSON.
type document struct {
	Version int   `json:"version"`
	Agents  []row `json:"agents"`
}

func jsonTable(rows []row) string {
	b, err := json.MarshalIndent(document{1, rows}, "", "  ")
	if err != nil {
		panic("realagents: plain rows do not encode: " + err.Error())
	}
	return string(b) + "\n"
}

// String is the question and its answer on one line.
func (p permission) String() string {
	offered := make([]string, 0, len(p.Options))
	for _, o := range p.Options {
		offered = append(offered, fmt.Sprintf("%s (%s)", o.ID, o.Kind))
	}
	status := "none"
	if p.Status != nil {
		status = fmt.Sprint(*p.Status)
	}
	return fmt.Sprintf("%s, %s: %s → %s, %s", p.Role, p.Tool, strings.Join(offered, ", "), p.Chosen, status)
}
