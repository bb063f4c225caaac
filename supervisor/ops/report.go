package ops

import (
	"slices"
	"strings"

	"greatminds/contract"
	"greatminds/supervisor/audit"
)

// Report is what `run doctor` prints. Its members up to Findings are the reference's, section 6.6;
// Disk, and What and Place of a finding, are ours.
type Report struct {
	Version      int    `json:"version"`
	Verification string `json:"verification"`
	// Status is findings or no_findings.
	Status  string         `json:"status"`
	Summary map[string]int `json:"summary"`
	// Checks says of each part whether it was inspected; unavailable is one that this version does
	// not look at.
	Checks   map[string]string `json:"checks"`
	Findings []ReportedFinding `json:"findings"`
	Disk     *DiskUse          `json:"disk"`

	root string
}

// ReportedFinding is one finding.
type ReportedFinding struct {
	Component string `json:"component"`
	Code      string `json:"code"`
	// Severity is error, warning or info.
	Severity string `json:"severity"`
	// Action is what helps, in words.
	Action string `json:"action"`
	// What says what is wrong, with the values; Place where.
	What            string            `json:"what"`
	Place           string            `json:"place"`
	Evidence        map[string]string `json:"evidence"`
	RecoveryActions []RecoveryAction  `json:"recovery_actions"`
}

// RecoveryAction is one command that leads out of a finding. Nothing runs by itself.
type RecoveryAction struct {
	ID            string            `json:"id"`
	Argv          []string          `json:"argv"`
	Effect        string            `json:"effect"`
	Preconditions []string          `json:"preconditions"`
	Required      []string          `json:"required_options"`
	Automatic     bool              `json:"automatic"`
	Cwd           string            `json:"cwd"`
	Environment   map[string]string `json:"environment"`
}

// parts are those that the reference names.
var parts = []string{"accounts", "agent_prerequisites", "agents", "assignments", "commands", "configuration", "dependencies",
	"deployments", "environment", "intents", "maintenance", "results", "runtime", "schema", "schema_mirror", "stale_tasks", "worktrees"}

func newReport(p contract.Project) *Report {
	r := &Report{Version: 1, Verification: "local_inspection", Status: "no_findings", root: p.Root, Findings: []ReportedFinding{},
		Summary: map[string]int{audit.Error: 0, audit.Warning: 0, audit.Info: 0}, Checks: map[string]string{}}
	for _, part := range parts {
		r.Checks[part] = "unavailable"
	}
	return r
}

// Errors is how many findings are errors.
func (r *Report) Errors() int { return r.Summary[audit.Error] }

func (r *Report) add(f audit.Finding) {
	out := ReportedFinding{Component: f.Component, Code: f.Code, Severity: f.Severity, Action: f.Remedy, What: f.What, Place: f.Place,
		Evidence: map[string]string{"place": f.Place}, RecoveryActions: []RecoveryAction{}}
	for _, line := range f.Commands {
		out.RecoveryActions = append(out.RecoveryActions, r.action(line))
	}
	r.Status = "findings"
	r.Summary[f.Severity]++
	r.Findings = append(r.Findings, out)
}

// action is a command line as one of the reference's recovery actions.
func (r *Report) action(line string) RecoveryAction {
	argv := strings.Fields(line)
	a := RecoveryAction{Argv: argv, Effect: "changes the record", Preconditions: []string{}, Required: []string{}, Cwd: r.root, Environment: map[string]string{}}
	if len(argv) > 2 {
		a.ID = argv[2]
	}
	switch {
	case a.ID == "command-status":
		a.Effect = "reads only"
	case slices.Contains(argv, "--abandon"):
		a.ID, a.Effect = "abandon", "gives the operation up"
	}
	if slices.Contains(argv, "TEXT") {
		a.Required = append(a.Required, "--reason")
	}
	return a
}
